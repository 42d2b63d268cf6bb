/** What `python -m seesaw_runner.weights` prints: the weight drift from one checkpoint to another. */

/** Numbers of a tensor, a module, a layer or the whole model. null: a norm is zero, or there is nothing to compare with. */
export interface WeightNumbers {
  /** Entries. */
  count: number;
  /** Share of entries that are unlike. */
  changed: number;
  /** ‖W‖ before. */
  norm: number;
  /** ‖ΔW‖. */
  delta_norm: number;
  /** ‖ΔW‖/‖W‖. */
  relative: number | null;
  /** Cosine of this update and the one before it. */
  cosine: number | null;
}

export interface LayerDrift extends WeightNumbers {
  /** null: outside the layers (embedding, last norm, head). */
  layer: number | null;
}

export interface ModuleDrift extends LayerDrift {
  /** `self_attn.q_proj`. */
  module: string;
}

export interface TensorDrift extends ModuleDrift {
  name: string;
  shape: number[];
  /** exp of the entropy of the update's singular values; only on request. */
  effective_rank?: number | null;
  /** ‖ΔW‖²/σ₁². */
  stable_rank?: number | null;
}

export interface WeightSide {
  path: string;
  kind: "full" | "adapter";
  /** As in safetensors: F32, BF16 … */
  dtypes: string[];
  tied: boolean;
}

export interface WeightDrift {
  v: 1;
  a: WeightSide;
  b: WeightSide;
  /** The checkpoint before `a`, for the cosine. */
  with: WeightSide | null;
  total: WeightNumbers;
  layers: LayerDrift[];
  modules: ModuleDrift[];
  tensors: TensorDrift[];
  only_a: string[];
  only_b: string[];
  /** Sentences. */
  notes: string[];
  seconds: number;
}

/** The answer among whatever else was printed; null when it is none of this version. */
export function parseWeightDrift(text: string): WeightDrift | null {
  const value = lastObject(text);
  const fits = value !== null && value["v"] === 1 && Array.isArray(value["modules"]) && Array.isArray(value["tensors"]) && typeof value["total"] === "object";
  return fits ? (value as unknown as WeightDrift) : null;
}

/** The runner's own sentence about what went wrong, or null. */
export function parseWeightsError(text: string): string | null {
  const value = lastObject(text);
  return value !== null && typeof value["error"] === "string" && typeof value["message"] === "string" ? value["message"] : null;
}

/** The whole text as an object, else its last line: libraries may have said something before. */
function lastObject(text: string): Record<string, unknown> | null {
  const whole = text.trim();
  for (const part of new Set([whole, whole.split("\n").at(-1) ?? ""])) {
    try {
      const value: unknown = JSON.parse(part);
      if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
    } catch {
      // not this one
    }
  }
  return null;
}
