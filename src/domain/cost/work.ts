import type { DataFacts } from "./dataFacts.ts";
import { batchWidths, trainableParameters } from "./memory.ts";
import type { ModelFacts } from "./modelFacts.ts";
import type { StageSettings } from "./stageSettings.ts";

/** One kind of work of a stage: which model does what with how many tokens. */
export interface WorkItem {
  what: "train" | "forward" | "generate";
  /** `student`, `reference`, or a teacher's name. */
  model: string;
  /** Tokens; padding is not counted. `low` and `high` where lengths of answers are not known before they are written. */
  tokens: { low: number; nominal: number; high: number };
  /** Model FLOPs of the nominal tokens, by the rule in `rule`. */
  flops: number;
  rule: string;
  /** FLOPs the device really does: with the forward pass that checkpointing repeats. */
  computed: number;
}

/** Parameters that take part in a multiplication: an embedding table is looked up, but a tied one is the LM head too. */
export function multiplied({ active, embedding, shape }: ModelFacts): number {
  return active - embedding + (shape.tied ? shape.vocabulary * shape.hidden : 0);
}

/**
 * FLOPs of one token. Forward 2N, forward and backward 6N (Kaplan et al. 2020, arXiv 2001.08361, §2.1; Hoffmann et al. 2022,
 * arXiv 2203.15556): two a multiply-add, once forward and twice back. With LoRA the frozen weights need no gradients of
 * their own: 4N, and 6n for the adapter. Attention's own part, quadratic in the length, is left out: see `attentionShare`.
 */
export function flopsPerToken(what: WorkItem["what"], model: ModelFacts, settings: StageSettings | null): { flops: number; rule: string; computed: number } {
  const n = multiplied(model);
  if (what !== "train" || settings === null) return { flops: 2 * n, rule: "2ND", computed: 2 * n };
  const repeated = settings.checkpointing ? 2 * n : 0;
  if (settings.adapter === null) return { flops: 6 * n, rule: "6ND", computed: 6 * n + repeated };
  const adapter = 6 * trainableParameters(model, settings);
  return { flops: 4 * n + adapter, rule: "4ND + 6nD (LoRA)", computed: 4 * n + adapter + repeated };
}

/** FLOPs of attention scores and their sum beside those of the weights: 4 · layers · width · length for a token, over 2N. */
export function attentionShare(model: ModelFacts, length: number): number {
  const { layers, heads, headSize } = model.shape;
  return (2 * layers * heads * headSize * length) / (2 * multiplied(model)); // causal: half of the square
}

export interface WorkInput {
  model: ModelFacts;
  settings: StageSettings;
  data: DataFacts | null;
  steps: number | null;
  teachers: readonly { name: string; facts: ModelFacts }[];
  /** A router asks every expert and the base: how many they are, and how many probes they answer besides the rows. */
  router: { arms: number; probes: number } | null;
}

/** Everything a stage computes, as far as its recipe says so. Empty where the steps or the data are not known. */
export function workOf({ model, settings, data, steps, teachers, router }: WorkInput): WorkItem[] {
  const items: WorkItem[] = [];
  const add = (what: WorkItem["what"], name: string, facts: ModelFacts, tokens: WorkItem["tokens"]): void => {
    const each = flopsPerToken(what, facts, what === "train" ? settings : null);
    items.push({ what, model: name, tokens, flops: each.flops * tokens.nominal, rule: each.rule, computed: each.computed * tokens.nominal });
  };
  if (router !== null && data !== null && settings.newTokens !== null) {
    const { low, nominal, high } = answerTokens(settings.newTokens, data);
    const asked = router.arms * (data.rows + router.probes);
    add("generate", "experts and base", model, { low: asked * low, nominal: asked * nominal, high: asked * high });
    return items;
  }
  if (data === null || steps === null) return items;
  const { width } = batchWidths(settings, data, model.shape.positions);
  const sequences = steps * settings.batch * settings.accumulation * settings.processes;
  const fixed = (tokens: number): WorkItem["tokens"] => ({ low: tokens, nominal: tokens, high: tokens });
  const length = Math.min(data.mean, width);
  const { newTokens, samples, recipe } = settings;
  if (newTokens === null) {
    add("train", "student", model, fixed(sequences * length));
    if (settings.reference !== "none") add("forward", "reference", model, fixed(sequences * length));
    return items;
  }
  const answers = answerTokens(newTokens, data);
  const scaled = (count: number, extra = 0): WorkItem["tokens"] => ({ low: count * (answers.low + extra), nominal: count * (answers.nominal + extra), high: count * (answers.high + extra) });
  const prompt = Math.min(data.prompt, width);
  if (recipe === "grpo" || recipe === "distill") {
    if (!settings.offline) add("generate", "student", model, scaled(sequences));
    if (settings.reference !== "none") add("forward", "reference", model, scaled(sequences, prompt));
    // Each row belongs to the one teacher of its domain: on average each has its share, of every step or once of all rows.
    for (const { name, facts } of teachers) {
      const rows = (settings.offline ? data.rows : sequences) / teachers.length;
      if (settings.offline) add("generate", name, facts, scaled(rows));
      add("forward", name, facts, scaled(rows, prompt));
    }
    add("train", "student", model, scaled(sequences, prompt));
    return items;
  }
  const written = data.rows * samples;
  const writers = teachers.length > 0 ? teachers : [{ name: "student", facts: model }];
  for (const { name, facts } of writers) add("generate", name, facts, scaled(written / writers.length));
  add("train", "student", model, scaled(sequences, prompt));
  return items;
}

/** Length of an answer before it is written: as long as the data's own answers, if it has any; at most the limit. */
export function answerTokens(limit: number, data: Pick<DataFacts, "answer"> | null): WorkItem["tokens"] {
  const like = data?.answer ?? null;
  const nominal = like === null ? limit / 2 : Math.min(limit, like);
  return { low: Math.min(nominal, limit / 8), nominal, high: limit };
}
