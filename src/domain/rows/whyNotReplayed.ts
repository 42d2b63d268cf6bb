import type { ReplaySpec } from "../../protocol/runSpec.ts";
import { t } from "../../util/l10n.ts";
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
  if (!(row.value instanceof Map)) return t("not an object");
  const { quality } = spec;
  if (quality !== null && "field" in quality) {
    const score = rowScore(row.value, quality.field);
    const name = quality.field ?? "reward";
    if (score === null) return t("no {0} to judge it by", name);
    if (!(score >= quality.min)) return t("below the quality threshold ({0} {1}, at least {2})", name, score, quality.min);
  }
  if (row.isProbe) return t("it is also a probe, and training on probes would hide forgetting");
  const reasons: string[] = [];
  if (quality !== null && "check" in quality && record.dropped?.quality !== 0) reasons.push(t("its answer did not pass the check"));
  if (quality !== null && "reward_model" in quality && record.dropped?.quality !== 0) reasons.push(t("below {0} by the reward model {1}", quality.min, quality.reward_model));
  if (record.dropped?.probe !== 0) reasons.push(t("its prompt is a probe's"));
  if (record.dropped?.duplicate !== 0) reasons.push(spec.diversity?.minhash === undefined ? t("a copy of another row") : t("a near-duplicate of another row"));
  const source = record.sources?.find((one) => one.stage === stage);
  if (source === undefined) reasons.push(t("not taken"));
  else if (source.taken < source.kept) {
    const near = record.nearness?.find((one) => one.stage === stage)?.rows ?? 0;
    const counts = [formatCount(source.taken - near), formatCount(source.kept - near)] as const;
    const { k_center: center, clusters } = spec.diversity ?? {};
    const far = near === 0 ? "" : t("not among the {0} of {1} nearest to the rows that \"near\" names, and ", formatCount(near), formatCount(source.kept));
    if (center !== undefined) reasons.push(far + t("not among the {0} of {1} that stand for the others (k-center)", ...counts));
    else if (clusters !== undefined) reasons.push(far + t("not among the {0} of {1} taken in equal shares from {2} clusters", ...counts, clusters.count));
    else reasons.push(far + t("not among the {0} of {1} taken at random", ...counts));
  }
  return reasons.length === 0 ? t("it was not in the file when the buffer was frozen") : reasons.join(t(", or "));
}

/** `row_score` of Python: the named field, else `reward`, else `score`, if that is a number. */
export function rowScore(row: ReadonlyMap<string, JsonValue>, field: string | null): number | null {
  for (const name of field === null ? ["reward", "score"] : [field]) {
    const value = row.get(name);
    if (value instanceof JsonNumber) return value.toNumber();
  }
  return null;
}
