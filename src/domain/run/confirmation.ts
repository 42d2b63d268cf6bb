import { formatNumber, formatP, formatPercent, formatPlural, formatSigned } from "../format.ts";
import { mcnemarExact, tangoInterval } from "../statistics/pairs.ts";
import { AppError } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";
import { joinPath } from "../../util/paths.ts";
import type { ChainRun } from "./chain.ts";
import { raisedAt } from "./flagEpisode.ts";
import type { FlagRecord } from "./runState.ts";

/** The level of the test, by itself: what a run tests while it trains has a level of its own. */
export const confirmationLevel = 0.05;

/** What a confirmation compares: the checkpoint that the stage started from, and the first one saved since the flag was raised. */
export interface ConfirmationPlan {
  run: ChainRun;
  skill: string;
  step: number;
  /** Folders of the two checkpoints. */
  start: string;
  now: string;
}

/** What `python -m seesaw_runner.confirm` prints. */
export interface ConfirmationAnswer {
  rows: { line: number; before: boolean; now: boolean }[];
  left_out: { unusable: number; trained: number; more: number };
}

export interface Confirmation {
  n: number;
  lost: number;
  gained: number;
  before: number;
  now: number;
  /** 95 %, of the change of the share that passes. */
  interval: { low: number; high: number };
  /** McNemar's exact test, one-sided: lost. */
  p: number;
  confirmed: boolean;
  left_out: ConfirmationAnswer["left_out"];
}

/** The checkpoints to ask about a skill's flag. AppError("not-found" | "not-finished") where there is nothing to ask. */
export function planConfirmation(run: ChainRun, skill: string | undefined): ConfirmationPlan {
  const raised = run.state.flags.filter(({ state }) => state === "drifting" || state === "confirmed");
  const names = [...new Set(raised.map((flag) => flag.skill))];
  const chosen = skill ?? (names.length === 1 ? names[0] : undefined);
  if (chosen === undefined) throw new AppError(names.length === 0 ? "not-found" : "usage", names.length === 0 ? t("No flag stands in {0}: name the skill to check.", run.id) : t("Flags stand for {0} in {1}: name one of them.", names.join(", "), run.id));
  if (!run.spec.skills.some(({ id }) => id === chosen)) throw new AppError("not-found", t("Run {0} has no skill {1}: its skills are {2}.", run.id, chosen, run.spec.skills.map(({ id }) => id).join(", ")));
  const flag: FlagRecord | undefined = raised.find((one) => one.skill === chosen);
  const since = flag === undefined ? 1 : (raisedAt(run, flag.id) ?? flag.step);
  const saved = run.state.checkpoints.find(({ step }) => step >= since) ?? null;
  if (saved === null) throw new AppError("not-finished", t("Run {0} has saved no checkpoint since step {1}, where the flag was raised: wait for its next one.", run.id, since));
  return { run, skill: chosen, step: saved.step, start: run.spec.start.checkpoint, now: joinPath(run.dir, saved.path) };
}

/** A file whose rows would measure memory: it trained the skill, or another stage. The stage's own data is looked through row by row. */
export function trainsOn(stages: readonly { id: string; data: string | null }[], prompts: string): string | null {
  return stages.find(({ data }) => data === prompts)?.id ?? null;
}

export function judgeConfirmation({ rows, left_out }: ConfirmationAnswer): Confirmation {
  const n = rows.length;
  const lost = rows.filter(({ before, now }) => before && !now).length;
  const gained = rows.filter(({ before, now }) => !before && now).length;
  const p = mcnemarExact(lost, gained, "lost");
  const share = (which: "before" | "now"): number => rows.filter((row) => row[which]).length / Math.max(1, n);
  return { n, lost, gained, before: share("before"), now: share("now"), interval: tangoInterval({ lost, gained, n }), p, confirmed: n > 0 && p <= confirmationLevel, left_out };
}

/** The finding in one or two sentences. */
export function confirmationText({ skill, step, stage }: Pick<ConfirmationPlan, "skill" | "step"> & { stage: string }, found: Confirmation): string {
  const { n, lost, gained, before, now, interval, p, confirmed, left_out: left } = found;
  if (n === 0) return t("No prompt was left to check {0} on.", skill);
  const numbers = t("{0} at the start of {1}, {2} at step {3} ({4} lost, {5} gained of {6}; change {7} points, 95 % interval {8} to {9}; {10})", formatPercent(before), stage, formatPercent(now), step, lost, gained, formatPlural(n, "prompt"), formatSigned(100 * (now - before), 1), formatNumber(100 * interval.low, 1), formatNumber(100 * interval.high, 1), formatP(p));
  const verdict = confirmed ? t("The loss of {0} is confirmed: {1}.", skill, numbers) : t("The loss of {0} is not confirmed: {1}.", skill, numbers);
  const out = [left.trained > 0 ? t("{0} trained on in this stage", formatPlural(left.trained, "prompt")) : "", left.unusable > 0 ? t("{0} not usable", formatPlural(left.unusable, "prompt")) : ""].filter(Boolean).join(", ");
  return out === "" ? verdict : `${verdict} ${t("Left out: {0}.", out)}`;
}
