import type { Stage } from "../pipeline/pipelineModel.ts";
import { allProcesses } from "../pipeline/targetSettings.ts";

/** What of a stage decides its memory and work. */
export type CostStage = Pick<Stage, "id" | "recipe" | "args" | "adapter" | "launch" | "probe" | "replay"> & { options?: Readonly<Record<string, unknown>> | null };

/** How the loss sees the vocabulary: in pieces of 256 tokens (TRL's default for SFT), or all logits of the batch at once. */
export type LossLogits = "chunked" | "nll" | "pair" | "policy" | "distill";

/** The arguments of a stage with TRL's and the recipes' defaults filled in. */
export interface StageSettings {
  recipe: string;
  /** Sequences of one process in one forward pass. */
  batch: number;
  accumulation: number;
  processes: number;
  /** Tokens a sequence is cut to; null: the model's context only. */
  maxLength: number | null;
  /** 16-bit autocast; weights stay float32 (`runner/seesaw_runner/training/device.py`). */
  mixed: boolean;
  checkpointing: boolean;
  optimizer: string;
  /** Bytes the optimizer keeps for one trainable parameter. */
  optimizerBytes: number;
  adapter: { rank: number; targets: unknown } | null;
  logits: LossLogits;
  /** Every answer token of a batch may be generated: at most so many; null where nothing is. */
  newTokens: number | null;
  /** Answers for one prompt. */
  samples: number;
  /** Answers that one process writes together; 0 where nothing is generated. */
  together: number;
  /** A distillation whose teachers were asked before the training. */
  offline: boolean;
  /** A second model of the student's size that only runs forward: none, a copy, or the model itself with its adapter off. */
  reference: "none" | "copy" | "adapter-off";
}

const trained = new Set(["sft", "dpo", "grpo", "self-distill", "oracle-sft", "distill", "experts", "replay"]);

/** Recipes that train the model; `merge`, `router` and `command` have no training of a known kind. */
export function isTrained(recipe: string): boolean {
  return trained.has(recipe);
}

/**
 * Defaults: TRL 1.13 (`sft_config.py`, `dpo_config.py`, `grpo_config.py`), transformers 5.17 (`training_args.py`: 8 rows,
 * adamw_torch_fused) and the recipes' own. `cuda`: what an accelerator changes: bf16 autocast and gradient checkpointing.
 */
export function stageSettings(stage: CostStage, cuda: boolean): StageSettings {
  const { recipe, args, adapter, launch } = stage;
  const options = stage.options ?? {};
  const lora = adapter ?? (recipe === "experts" ? {} : null);
  const optimizer = typeof args["optim"] === "string" ? args["optim"] : "adamw_torch_fused";
  const newTokens = generates(recipe) ? (whole(args["max_completion_length"]) ?? whole(options["max_new_tokens"]) ?? 256) : null;
  const offline = recipe === "distill" && options["offline"] === true;
  return {
    recipe,
    batch: (whole(args["per_device_train_batch_size"]) ?? 8) * (recipe === "dpo" ? 2 : 1),
    accumulation: whole(args["gradient_accumulation_steps"]) ?? 1,
    processes: allProcesses(launch),
    maxLength: args["max_length"] === null ? null : (whole(args["max_length"]) ?? (recipe === "grpo" ? null : 1024)),
    mixed: cuda && args["bf16"] !== false || args["bf16"] === true || args["fp16"] === true,
    checkpointing: typeof args["gradient_checkpointing"] === "boolean" ? args["gradient_checkpointing"] : cuda,
    optimizer,
    optimizerBytes: optimizerBytes(optimizer, args),
    adapter: lora === null ? null : { rank: whole(lora["r"]) ?? 8, targets: lora["target_modules"] },
    logits: lossLogits(recipe, args),
    newTokens,
    offline,
    together: newTokens === null || offline ? 0 : togetherOf(stage, options),
    samples: Math.max(1, whole(args["num_generations"]) ?? whole(options["samples"]) ?? (recipe === "grpo" ? 8 : 1)),
    reference: referenceOf(recipe, args, options, lora !== null),
  };
}

function generates(recipe: string): boolean {
  return ["grpo", "self-distill", "oracle-sft", "distill", "router"].includes(recipe);
}

/** TRL's GRPO generates for `steps_per_generation` batches at once (default: the accumulated ones); the other recipes for 32 prompts. */
function togetherOf({ recipe, args, probe, launch }: CostStage, options: Readonly<Record<string, unknown>>): number {
  const batch = whole(args["per_device_train_batch_size"]) ?? 8;
  const shared = whole(args["generation_batch_size"]);
  if (recipe === "grpo" && shared !== null) return Math.ceil(shared / allProcesses(launch));
  if (recipe === "grpo") return batch * (whole(args["steps_per_generation"]) ?? whole(args["gradient_accumulation_steps"]) ?? 1);
  if (recipe === "router") return probe.batch_size;
  return whole(options["batch_size"]) ?? (recipe === "distill" ? batch : 32);
}

function lossLogits(recipe: string, args: CostStage["args"]): LossLogits {
  if (recipe === "dpo") return "pair";
  if (recipe === "grpo") return "policy";
  if (recipe === "distill") return "distill";
  return args["loss_type"] === undefined || args["loss_type"] === "chunked_nll" ? "chunked" : "nll";
}

function referenceOf(recipe: string, args: CostStage["args"], options: Readonly<Record<string, unknown>>, adapter: boolean): StageSettings["reference"] {
  const needed = recipe === "dpo" || (recipe === "grpo" && Number(args["beta"] ?? 0) > 0);
  if (!needed) return "none";
  return adapter && (options["reference"] ?? "start") === "start" ? "adapter-off" : "copy";
}

/**
 * State per trainable parameter: two float32 moments for Adam (Kingma & Ba 2014), one for momentum SGD and Lion, two bytes
 * for the 8-bit ones (Dettmers et al. 2021, arXiv 2110.02861), rows and columns only for Adafactor (Shazeer & Stern 2018).
 */
function optimizerBytes(name: string, args: CostStage["args"]): number {
  if (/8bit/.test(name)) return /lion/.test(name) ? 1 : 2;
  if (/adafactor/.test(name)) return 0.1;
  if (/^sgd/.test(name)) return /momentum/.test(String(args["optim_args"] ?? "")) ? 4 : 0;
  if (/lion|rmsprop|adagrad/.test(name)) return 4;
  return 8;
}

function whole(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) && value > 0 ? Math.trunc(value) : null;
}
