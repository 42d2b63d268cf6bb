import { decodeNumber } from "../../protocol/numbers.ts";
import type { FlagRecord } from "../run/runState.ts";
import type { Recomputed, RecomputedSeries } from "./recompute.ts";

/** Where the journal and the traces do not agree. `step` null: about the series as a whole. */
export interface FlagDifference {
  id: string;
  step: number | null;
  journal: string;
  traces: string;
}

/** Both sides are computed in float64 from the same float32 scores, in two languages: the last digits may differ. */
const relative = 1e-6;

/** Compares what the runner journalled with what its traces give: states at every look, and the numbers of each event. Empty: equal. */
export function compareFlags({ series }: Recomputed, history: readonly FlagRecord[]): FlagDifference[] {
  const ids = [...new Set([...series.map(({ id }) => id), ...history.map(({ id }) => id)])];
  return ids.flatMap((id) => compareSeries(id, series.find((one) => one.id === id), history.filter((flag) => flag.id === id)));
}

function compareSeries(id: string, found: RecomputedSeries | undefined, flags: readonly FlagRecord[]): FlagDifference[] {
  if (found === undefined) return [{ id, step: null, journal: "watched", traces: "no trace of the start" }];
  const unmeasured = flags.find(({ state }) => state === "not-measurable");
  if (unmeasured !== undefined || found.reason !== null) {
    const journal = unmeasured?.reason ?? "measurable";
    const traces = found.reason ?? "measurable";
    return sameReason(journal, traces) ? [] : [{ id, step: null, journal, traces }];
  }
  const steps = [...new Set([...flags.map(({ step }) => step), ...found.looks.map(({ step }) => step)])].sort((a, b) => a - b);
  return steps.flatMap((step): FlagDifference[] => {
    const told = flags.filter((flag) => flag.step === step);
    const look = found.looks.find((one) => one.step === step);
    const journal = told.map(({ state }) => state).join(", ") || "no change";
    const traces = look?.entered.join(", ") || "no change";
    if (journal !== traces) return [{ id, step, journal, traces: look === undefined ? "not scored" : traces }];
    const [flag] = told;
    if (flag === undefined || look === undefined) return [];
    const { estimate, low, threshold } = look.verdict;
    const pairs: [string, unknown, number][] = [["value", flag.value, estimate], ["lower", flag.lower, low], ["threshold", flag.threshold, threshold]];
    return pairs.flatMap(([name, wire, now]) => {
      const was = decodeNumber(wire) ?? NaN;
      return Math.abs(was - now) <= relative * Math.max(1, Math.abs(now)) ? [] : [{ id, step, journal: `${name} ${was}`, traces: `${name} ${now}` }];
    });
  });
}

/** Sentences may be worded anew by a later version; the numbers in them are what was found. */
function sameReason(journal: string, traces: string): boolean {
  if (journal === traces) return true;
  const kind = (text: string): string => [/not there at the stage's start/, /could be scored|rows are left/, /[Nn]oise/, /margins/, /occur in this run/].findIndex((pattern) => pattern.test(text)).toString();
  const numbers = (text: string): string => (text.match(/\d+(\.\d+)?/g) ?? []).join(" ");
  return journal !== "measurable" && traces !== "measurable" && kind(journal) !== "-1" && kind(journal) === kind(traces) && numbers(journal) === numbers(traces);
}
