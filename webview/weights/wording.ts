import type { WeightMeasure } from "../../src/domain/weights/weightGrid.ts";
import { t } from "../../src/util/l10n.ts";

/** What a measure is called. */
export function measureName(measure: WeightMeasure): string {
  const names: Record<WeightMeasure, string> = {
    relative: t("Relative change ‖ΔW‖/‖W‖"),
    changed: t("Share of changed numbers"),
    cosine: t("Cosine with the update before"),
    effective_rank: t("Effective rank of the update"),
  };
  return names[measure];
}

/** What its numbers mean, in a sentence. */
export function measureHelp(measure: WeightMeasure, before: string | null, from: string): string {
  const help: Record<WeightMeasure, string> = {
    relative: t("How far the weights went. It says nothing about which skill was lost: a description, never an alarm."),
    changed: t("Entries that are not exactly what they were; rounding to a small type can leave most of them alone."),
    cosine: before === null ? t("There is no update before the base model.") : t("Between this update and the one before it ({0} to {1}): near −1 it is taken back, near 0 it is new.", before, from),
    effective_rank: t("How many directions the update really uses: the exponential of the entropy of its singular values."),
  };
  return help[measure];
}
