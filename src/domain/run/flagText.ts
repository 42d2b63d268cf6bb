import type { FlagState } from "../../protocol/journal.ts";
import type { ReportCard } from "../../protocol/reportCard.ts";
import type { Split } from "../../protocol/runSpec.ts";
import { t } from "../../util/l10n.ts";
import type { Chain, ChainRun } from "./chain.ts";
import type { FlagRecord } from "./runState.ts";
import { decodeNumber } from "../../protocol/numbers.ts";
import { formatNats, formatNumber, formatP, formatPercent, formatPlural } from "../format.ts";

/** One change of a flag, worded. */
export interface FlagEntry {
  run: string;
  stage: string;
  id: string;
  skill: string;
  split: Split;
  step: number;
  state: FlagState;
  /** `math is drifting` : short enough for a badge or a tree. */
  title: string;
  /** The finding with its numbers. */
  text: string;
  t: number;
  flag: FlagRecord;
}

/** `math (in-domain)`, `math (OOD)`. */
export function probeSetName(skill: string, split: Split): string {
  return split === "id" ? t("{0} (in-domain)", skill) : t("{0} (OOD)", skill);
}

/** What became of all flags of the chain's runs: by stage, then in the order of the journal, one entry per flag and step. */
export function flagsInTimeOrder(chain: Chain): FlagEntry[] {
  return chain.checkpoints.flatMap((checkpoint) => (checkpoint.run === null || checkpoint.stage === null ? [] : lastOfEachStep(flagsOfRun(checkpoint.run))));
}

/** A flag that was raised and then tested at the same step is one finding: the newest state says it all. */
export function lastOfEachStep(entries: readonly FlagEntry[]): FlagEntry[] {
  return entries.filter(({ id, step }, index) => !entries.slice(index + 1).some((later) => later.id === id && later.step === step));
}

/** All changes of all flags of one run, in the order of the journal. */
export function flagsOfRun(run: Pick<ChainRun, "id" | "stage" | "state">): FlagEntry[] {
  return run.state.flagHistory.map((flag) => {
    const { id, skill, split, step, state, t } = flag;
    return { run: run.id, stage: run.stage, id, skill, split, step, state, title: flagTitle(flag), text: flagText(flag, run.stage, testRuns(run, flag)), t, flag };
  });
}

/** The check is tried at the step that raised a flag: while the run is still there, its result is on the way. */
function testRuns({ state }: Pick<ChainRun, "state">, flag: FlagRecord): boolean {
  return state.status === "running" && state.step <= flag.step && state.flagHistory.findLast(({ id }) => id === flag.id) === flag;
}

/** A few words. Never "forgotten" before a paired test confirmed it (earlywarning research §11). */
export function flagTitle(flag: Pick<FlagRecord, "skill" | "split" | "state">): string {
  const name = probeSetName(flag.skill, flag.split);
  switch (flag.state) {
    case "drifting":
      return t("{0} is drifting", name);
    case "confirmed":
      return t("{0}: loss confirmed", name);
    case "recovered":
      return t("{0} has recovered", name);
    case "not-measurable":
      return t("{0} is not measurable", name);
  }
}

/** The finding as sentences, with every number that led to it. `testing`: the check runs on it now. */
export function flagText(flag: FlagRecord, stage: string, testing = false): string {
  const name = probeSetName(flag.skill, flag.split);
  const where = t("step {0} of {1}", flag.step, stage);
  const measured = measuredText(flag);
  switch (flag.state) {
    case "drifting":
      return `${t("Correct answers are losing ground on {0} at {1}: {2}.", name, where, measured)} ${flag.test !== undefined ? t("Not confirmed by the check{0}.", testText(flag)) : testing ? t("The check is run on it now.") : t("The check was not run at this step.")}`;
    case "confirmed":
      return t("{0} has lost accuracy at {1}, confirmed by a paired test of the check{2}. What was watched: {3}.", name, where, testText(flag), measured);
    case "recovered":
      return t("{0} has recovered at {1}: the loss is back within {2} (now {3}; {4}).", name, where, amount(flag, flag.threshold), amount(flag, flag.value), formatPlural(flag.n, "prompt"));
    case "not-measurable":
      return t("{0} cannot be watched in {1}: {2}", name, stage, flag.reason ?? t("the reason was not recorded."));
  }
}

/** What the detector measured, and against what. */
function measuredText(flag: FlagRecord): string {
  const prompts = formatPlural(flag.n, "prompt");
  const high = decodeNumber(flag.high);
  if (flag.detector === undefined || flag.detector === "nll" || high === undefined) {
    return t("{0} less likely on average than at the start of the stage (at least {1}; threshold {2}; {3})", formatNats(decodeNumber(flag.value)), formatNumber(decodeNumber(flag.lower)), formatNats(decodeNumber(flag.threshold)), prompts);
  }
  const digits = flag.unit === "points" ? 1 : 2;
  const band = [formatNumber(decodeNumber(flag.lower), digits), formatNumber(high, digits)] as const;
  if (flag.unit === "points") return t("expected accuracy {0} below the start of the stage (90 % band {1} to {2}; tolerated {3}; {4})", amount(flag, flag.value), ...band, amount(flag, flag.threshold), prompts);
  return t("margin of right answers {0} below the start of the stage (90 % band {1} to {2}; tolerated {3}; {4})", amount(flag, flag.value), ...band, amount(flag, flag.threshold), prompts);
}

/** `2.1 points`, `0.31 nats`: in the unit of the flag. */
function amount({ unit }: FlagRecord, wire: FlagRecord["value"]): string {
  const value = decodeNumber(wire);
  if (unit !== "points") return formatNats(value);
  const text = formatNumber(value, 1);
  return text === "1.0" ? t("1 point") : t("{0} points", text);
}

function testText(flag: FlagRecord): string {
  const { test } = flag;
  if (test === undefined) return "";
  const p = decodeNumber(test.p);
  return t(": {0} at the start, {1} now ({2} lost, {3} gained of {4}; {5} against {6}, Holm's correction over the skills tested)", formatPercent(test.accuracy_start), formatPercent(test.accuracy_now), test.lost, test.gained, test.n, formatP(p), formatNumber(test.level, 3));
}

/** What the flags promise, and what the battery measured: to be shown wherever they are. */
export function falseAlarmText(alpha: number, card: ReportCard | null = null): string {
  const oneIn = alpha > 0 ? 1 / alpha : Infinity;
  const share = Math.abs(oneIn - Math.round(oneIn)) < 0.05 ? `1 in ${Math.round(oneIn)} runs` : `${formatPercent(alpha)} of the runs`;
  const measured = card?.panels[0]?.false_alarms;
  if (measured === undefined || card === null) return `The limits are set so that at most ${share} without loss would show any flag.`;
  return `The limits are set so that at most ${share} without loss would show any flag. Measured in the battery for the detector ${card.detector.family}: ${measured.hits} of ${measured.of} (95 % interval ${formatPercent(measured.low)} to ${formatPercent(measured.high)}).`;
}
