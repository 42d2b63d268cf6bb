import { decodeNumber } from "../../protocol/numbers.ts";
import type { CardPanel, LeadSteps, ReportCard } from "../../protocol/reportCard.ts";
import { t } from "../../util/l10n.ts";
import { conformalP, fewestHealthyRuns } from "../flags/conformal.ts";
import { formatNumber, formatPercent, formatPlural, formatSigned } from "../format.ts";
import type { ChainRun } from "./chain.ts";
import { checkedText } from "./checkedFlag.ts";
import type { FlagRecord } from "./runState.ts";

/** One thing to know about a flag. */
export interface FlagFact {
  id: "loss" | "checked" | "visible" | "budget" | "moved" | "replay" | "record" | "lead" | "unusual" | "weak";
  label: string;
  text: string;
}

/** What replay did for the rows that moved: rows of the stage's buffer that are most like them. `unread`: there is a buffer, its rows were not looked at. */
export type ReplayFact =
  | { kind: "none" }
  | { kind: "unread"; buffer: string; ratio: number }
  | { kind: "rows"; buffer: string; ratio: number; rows: { source: string; line: number; similarity: number }[]; drawn: number | null };

/** What is known of flags besides their journals. */
export interface FlagFacts {
  card: ReportCard | null;
  replay(run: ChainRun, flag: FlagRecord): ReplayFact;
}

/** Where nothing was read. */
export const noFlagFacts: FlagFacts = { card: null, replay: unreadReplay };

export interface FlagCardInput {
  flag: FlagRecord;
  run: ChainRun;
  /** All runs of the project, for what is usual. */
  runs: readonly ChainRun[];
  /** null: the installation has none. */
  card: ReportCard | null;
  replay: ReplayFact;
}

/** What a flag means, fact by fact. Nothing is said that the report card does not support (earlywarning research §11). */
export function flagCard(input: FlagCardInput): FlagFact[] {
  const facts: (FlagFact | null)[] = [lossFact(input), checkedFact(input), visibleFact(input), weakFact(input), budgetFact(input), movedFact(input), replayFact(input), ...recordFacts(input), unusualFact(input)];
  return facts.filter((fact) => fact !== null);
}

/** Before anybody read the run's buffer. */
export function unreadReplay({ spec }: Pick<ChainRun, "spec">): ReplayFact {
  return spec.replay == null ? { kind: "none" } : { kind: "unread", buffer: spec.replay.buffer, ratio: spec.replay.ratio };
}

function lossFact({ flag }: FlagCardInput): FlagFact | null {
  const { points } = flag;
  const estimate = decodeNumber(points?.estimate);
  if (points === undefined || estimate === undefined) return null;
  return { id: "loss", label: t("Expected loss"), text: t("{0} (90 % band {1} to {2})", pointsText(estimate), formatNumber(decodeNumber(points.low), 1), formatNumber(decodeNumber(points.high), 1)) };
}

function checkedFact({ run, flag }: FlagCardInput): FlagFact | null {
  const checked = checkedText(run, flag.skill);
  return checked === null ? null : { id: "checked", label: t("Checked again"), text: checked };
}

function visibleFact({ flag }: FlagCardInput): FlagFact | null {
  const { smallest_drop: drop, n } = flag;
  if (drop === undefined) return null;
  const text = drop === null ? t("with {0} no drop of any size could be shown by the check", formatPlural(n, "prompt")) : t("on these {0} it shows drops of {1} or more in 4 of 5 cases, smaller ones less often", formatPlural(n, "prompt"), pointsText(drop));
  return { id: "visible", label: t("What the check can see"), text };
}

function weakFact({ flag }: FlagCardInput): FlagFact | null {
  return flag.weak === true ? { id: "weak", label: t("Weak panel"), text: t("{0}: enough to warn, too few to rely on a calm. 64 or more are better.", formatPlural(flag.n, "prompt")) } : null;
}

function budgetFact({ flag, run }: FlagCardInput): FlagFact | null {
  const { alpha } = run.spec.flags;
  if (flag.spent === undefined) return null;
  if (flag.detector === "limit") return { id: "budget", label: t("False-alarm budget"), text: t("{0} per run: so it was on the battery's bank A, which set the limit; the track record tells how often it is wrong elsewhere", formatPercent(alpha, 0)) };
  return { id: "budget", label: t("False-alarm budget"), text: t("{0} per run, {1} of it spent here so far", formatPercent(alpha, 0), formatPercent(flag.spent, 0)) };
}

function movedFact({ flag }: FlagCardInput): FlagFact | null {
  const { moved } = flag;
  if (moved === undefined || moved.length === 0) return null;
  const rows = moved.map(({ line, change, tokens }) => {
    const by = formatSigned(decodeNumber(change), 1);
    return tokens.length === 0 ? t("line {0} ({1} nats)", line, by) : t("line {0} ({1} nats, at {2})", line, by, tokens.length === 1 ? t("token {0}", (tokens[0] ?? 0) + 1) : t("tokens {0}", tokens.map((token) => token + 1).join(", ")));
  });
  return { id: "moved", label: t("Moved most"), text: rows.join("; ") };
}

function replayFact({ flag, replay }: FlagCardInput): FlagFact {
  const label = t("Replay");
  if (replay.kind === "none") return { id: "replay", label, text: t("no replay in this stage: no row of {0} was repeated", flag.skill) };
  const share = formatPercent(replay.ratio, 0);
  if (replay.kind === "unread") return { id: "replay", label, text: t("{0} of each batch from {1}", share, replay.buffer) };
  if (replay.rows.length === 0) return { id: "replay", label, text: t("{0} of each batch from {1}, which has no row like those that moved", share, replay.buffer) };
  const rows = replay.rows.map(({ source, line, similarity }) => t("{0} line {1} (similarity {2})", baseName(source), line, formatNumber(similarity, 2))).join("; ");
  const drawn = replay.drawn === null ? "" : ` ${replay.drawn === 0 ? t("None of them was drawn by then.") : t("They were drawn {0} by then.", replay.drawn === 1 ? t("once") : t("{0} times", replay.drawn))}`;
  return { id: "replay", label, text: `${t("{0} of each batch from {1}; nearest to what moved, and should have protected it: {2}.", share, replay.buffer, rows)}${drawn}` };
}

/** What the battery says of the detector: how often it is wrong, and whether it is early at all. */
function recordFacts({ flag, card }: FlagCardInput): FlagFact[] {
  const label = t("Track record");
  const record = (text: string): FlagFact => ({ id: "record", label, text });
  if (card === null) return [record(t("this installation has no report card, so how often it is wrong, and how far ahead it is, is not known"))];
  const detector = flag.detector ?? "nll";
  if (card.detector.family !== detector) return [record(t("the report card is about the detector {0}, not about {1}: how often it is wrong is not known", card.detector.family, detector))];
  const panel = nearestPanel(card.panels, flag.n);
  const wrong = t("{0} of {1} runs without loss raised a flag ({2}, 95 % interval {3} to {4})", panel.false_alarms.hits, panel.false_alarms.of, formatPercent(panel.false_alarms.share), formatPercent(panel.false_alarms.low), formatPercent(panel.false_alarms.high));
  const tested = card.tested ? "" : ` ${t("These are the runs it was chosen on, so the figures flatter it.")}`;
  const facts = [record(`${t("in the battery, {0}.", wrong)}${tested}`)];
  if (card.ships === "descriptive") return [record(`${t("descriptive only: the battery does not support it as an alarm, {0}.", wrong)}${tested}`)];
  facts.push({ id: "lead", label: t("Lead"), text: leadText(panel, card.early) });
  return facts;
}

function leadText({ lead: { median, q1, q3, events }, rows }: CardPanel, early: boolean): string {
  const span = t("median {0}, quartiles {1} and {2}, over {3} with a loss of 5 points and {4}", leadSteps(median), leadSteps(q1), leadSteps(q3), formatPlural(events, "skill"), formatPlural(rows, "prompt"));
  return early ? t("before the loss reached 5 points in the battery: {0}", span) : t("none to speak of; against the step at which the loss reached 5 points in the battery: {0}", span);
}

function leadSteps(lead: LeadSteps): string {
  if (lead === null) return t("not known");
  if (lead === "missed") return t("no alarm");
  if (lead === "unmatched") return t("an alarm where the benchmark showed nothing");
  return lead === 1 || lead === -1 ? t("{0} step", formatSigned(lead, 0)) : t("{0} steps", formatSigned(lead, 0));
}

/** The figures for the panel that is nearest in size, rather a smaller one. */
function nearestPanel(panels: readonly CardPanel[], n: number): CardPanel {
  const sorted = [...panels].sort((a, b) => a.rows - b.rows);
  return sorted.findLast(({ rows }) => rows <= n) ?? (sorted[0] as CardPanel);
}

/** How far the run drifts among the project's finished runs of the same recipe that raised no flag. */
function unusualFact({ run, runs, flag }: FlagCardInput): FlagFact {
  const label = t("For runs like yours");
  const same = runs.filter((one) => one.id !== run.id && one.spec.recipe === run.spec.recipe && one.state.status === "done");
  const healthy = same.filter(({ state }) => !state.flagHistory.some((one) => one.state === "drifting" || one.state === "confirmed"));
  const scores = healthy.flatMap((one) => worstDrift(one) ?? []);
  const own = worstDrift(run, flag.step);
  const p = own === null ? null : conformalP(own, scores);
  if (p === null) return { id: "unusual", label, text: t("no history yet: {0} of the {1} healthy runs of {2} that are needed", scores.length, fewestHealthyRuns, run.spec.recipe) };
  const more = scores.filter((score) => score >= (own as number)).length;
  return { id: "unusual", label, text: t("{0} of {1} healthy runs of {2} drifted as far (p = {3})", more, scores.length, run.spec.recipe, formatNumber(p, 2)) };
}

/** The largest rise of the references' NLL at any look, over the probe sets that were watched; null where nothing was. */
function worstDrift({ state }: ChainRun, until = Infinity): number | null {
  const unwatched = new Set(state.flags.flatMap((flag) => (flag.state === "not-measurable" ? [flag.id] : [])));
  const rises = state.probes.flatMap(({ step, skill, split, summary }) => {
    const rise = step > 0 && step <= until && !unwatched.has(`${skill}.${split}`) ? decodeNumber(summary.delta_nll) : undefined;
    return rise === undefined || Number.isNaN(rise) ? [] : [rise];
  });
  return rises.length === 0 ? null : rises.reduce((most, rise) => Math.max(most, rise), -Infinity);
}

function pointsText(points: number): string {
  const text = formatNumber(points, 1);
  return text === "1.0" ? t("1 point") : t("{0} points", text);
}

function baseName(path: string): string {
  return path.split(/[\\/]/).at(-1) ?? path;
}
