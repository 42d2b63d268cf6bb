import type { ReplaySpec } from "../../protocol/runSpec.ts";
import { formatCount } from "../format.ts";
import { JsonNumber, type JsonValue } from "./jsonText.ts";
import type { ReplayRecord } from "./membership.ts";

/** What is known of the row: its score is read as the runner's `_quality` does. */
export interface CandidateRow {
  value: JsonValue;
  /** The row was scored as a probe, or a probe has its prompt. */
  isProbe: boolean;
}

/**
 * Why a row of a file that a buffer draws from is not among its rows: a few words. The runner keeps no reason per row, so
 * what cannot be worked out again (a near-duplicate, the luck of being taken) is said as the alternatives that are left.
 */
export function whyNotReplayed(row: CandidateRow, spec: ReplaySpec, stage: string, record: ReplayRecord): string {
  if (!(row.value instanceof Map)) return "not an object";
  const { quality } = spec;
  if (quality !== null && "min" in quality) {
    const score = rowScore(row.value, quality.field);
    const name = quality.field ?? "reward";
    if (score === null) return `no ${name} to judge it by`;
    if (!(score >= quality.min)) return `below the quality threshold (${name} ${score}, at least ${quality.min})`;
  }
  if (row.isProbe) return "it is also a probe, and training on probes would hide forgetting";
  const reasons: string[] = [];
  if (quality !== null && "check" in quality && record.dropped?.quality !== 0) reasons.push("its answer did not pass the check");
  if (record.dropped?.probe !== 0) reasons.push("its prompt is a probe's");
  if (record.dropped?.duplicate !== 0) reasons.push(spec.diversity === null ? "a copy of another row" : "a near-duplicate of another row");
  const source = record.sources?.find((one) => one.stage === stage);
  if (source === undefined || source.taken < source.kept) reasons.push(source === undefined ? "not taken" : `not among the ${formatCount(source.taken)} of ${formatCount(source.kept)} taken at random`);
  return reasons.length === 0 ? "it was not in the file when the buffer was frozen" : reasons.join(", or ");
}

/** `row_score` of Python: the named field, else `reward`, else `score`, if that is a number. */
export function rowScore(row: ReadonlyMap<string, JsonValue>, field: string | null): number | null {
  for (const name of field === null ? ["reward", "score"] : [field]) {
    const value = row.get(name);
    if (value instanceof JsonNumber) return value.toNumber();
  }
  return null;
}
