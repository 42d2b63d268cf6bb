import type { Stage } from "../pipeline/pipelineModel.ts";
import { allProcesses } from "../pipeline/targetSettings.ts";

/** TRL's and the recipe's own defaults (`runner/seesaw_runner/recipes/sft.py`). */
const defaults = { per_device_train_batch_size: 8, gradient_accumulation_steps: 1, num_train_epochs: 3 };

/** What a stage will do, as far as it can be said before anything is loaded. */
export interface PlannedSteps {
  steps: number;
  /** Where the number comes from; null when the stage itself says `max_steps`. */
  from: { rows: number; epochs: number; batch: number } | null;
}

/**
 * Optimizer steps of a stage: `max_steps` when positive, else the epochs rounded up to whole steps. The rule of `total_steps`
 * in `runner/seesaw_runner/training/plan.py`; both are tested against test/fixtures/protocol/steps.json.
 */
export function totalSteps(rows: number, perStep: number, maxSteps: number, epochs: number): number {
  return maxSteps > 0 ? maxSteps : Math.max(1, Math.ceil((epochs * rows) / perStep));
}

/** True when the number of rows is needed to tell the steps of a stage. */
export function needsRows(stage: Pick<Stage, "args">): boolean {
  return !(Number(stage.args["max_steps"] ?? -1) > 0);
}

/** The steps of a stage, or null where they cannot be told: no rows, or an argument that is no number. */
export function plannedSteps(stage: Pick<Stage, "args" | "launch">, rows: number | null): PlannedSteps | null {
  const maxSteps = wholeNumber(stage.args["max_steps"] ?? -1);
  if (maxSteps === null) return null;
  if (maxSteps > 0) return { steps: maxSteps, from: null };
  const size = wholeNumber(stage.args["per_device_train_batch_size"] ?? defaults.per_device_train_batch_size);
  const accumulation = wholeNumber(stage.args["gradient_accumulation_steps"] ?? defaults.gradient_accumulation_steps);
  const epochs = Number(stage.args["num_train_epochs"] ?? defaults.num_train_epochs);
  if (size === null || accumulation === null || !Number.isFinite(epochs)) return null;
  const batch = size * accumulation * allProcesses(stage.launch);
  if (rows === null || rows <= 0 || batch <= 0 || epochs <= 0) return null;
  return { steps: totalSteps(rows, batch, -1, epochs), from: { rows, epochs, batch } };
}

/** As Python's `int()` reads it. */
function wholeNumber(value: unknown): number | null {
  const number = typeof value === "number" || typeof value === "string" ? Number(value) : Number.NaN;
  return Number.isFinite(number) ? Math.trunc(number) : null;
}
