import type { WeightDrift } from "../../protocol/weights.ts";
import { csvLine } from "../report/csv.ts";
import type { CapabilityVector } from "./capabilities.ts";

const header = ["from", "to", "tensor", "layer", "module", "shape", "entries", "changed_share", "norm", "delta_norm", "relative", "cosine_with_update_before", "effective_rank", "stable_rank"];

/** One line a tensor. */
export function weightCsv(drift: WeightDrift, from: string, to: string): string {
  const lines = drift.tensors.map((one) => [
    from, to, one.name, one.layer, one.module, one.shape.join("x"), one.count, one.changed, one.norm, one.delta_norm, one.relative, one.cosine, one.effective_rank ?? null, one.stable_rank ?? null,
  ]);
  return [header, ...lines].map(csvLine).join("");
}

/** One line a checkpoint and coordinate. */
export function capabilityCsv(vectors: readonly CapabilityVector[]): string {
  const lines = vectors.flatMap(({ label, stage, values }) =>
    values.map(({ skill, split, n, correct, accuracy, interval }) => [label, stage, skill, split, n, correct, accuracy, interval?.low ?? null, interval?.high ?? null]),
  );
  return [["checkpoint", "stage", "skill", "split", "answers", "correct", "accuracy", "low_95", "high_95"], ...lines].map(csvLine).join("");
}
