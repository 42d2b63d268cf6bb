import { t } from "../../util/l10n.ts";
import { formatBytes, formatCount, formatNumber, formatPercent } from "../format.ts";
import type { CostInput, StageCost } from "./stageCost.ts";
import { batchWidths, type MemoryMoment } from "./memory.ts";
import { attentionShare } from "./work.ts";

/** When the peak is reached, as a part of a sentence. */
export function momentName(moment: MemoryMoment): string {
  const names: Record<MemoryMoment, string> = {
    start: t("while the start checkpoint is scored"),
    generate: t("while answers are generated"),
    forward: t("at the end of the forward pass"),
    backward: t("at the end of the backward pass"),
  };
  return names[moment];
}

/** Where the numbers come from, one sentence each: what was counted, what was assumed, and what was left out. */
export function assumptionsOf(cost: Omit<StageCost, "assumptions">, { stage, model, teachers }: CostInput): string[] {
  const { settings, data, memory, time, work } = cost;
  if (cost.recipe === "command") return ["A command is your own program: what it needs cannot be told from here. Its checkpoints are scored beside it."];
  const sentences: string[] = [];
  if (model.source === "config") sentences.push("Parameters are computed from config.json: the weights themselves are not on this machine.");
  if (data === null) sentences.push("The rows could not be read, so their lengths are not known: every row counts as long as max_length, and tokens and hours are not told.");
  else if (data.by === "bytes") sentences.push(`Lengths are guessed at 3.6 bytes a token from ${formatCount(data.sampled)} of ${formatCount(data.rows)} rows: the tokenizer could not be used here.`);
  else sentences.push(`Lengths are those of ${formatCount(data.sampled)} of ${formatCount(data.rows)} rows in the model's own tokens; the longest row is ${data.sampled < data.rows ? "estimated from its bytes" : "counted"}.`);
  if (memory !== null && memory.parts.activations > 0 && cost.model.trainable > 0) {
    const { width } = batchWidths(settings, data, model.shape.positions);
    sentences.push(`Weights are float32${settings.mixed ? " under 16-bit autocast" : ""}, activations ${settings.checkpointing ? "recomputed (gradient checkpointing)" : "kept"}, ${formatCount(settings.batch)} × ${formatCount(width)} tokens at once; the peak is ${momentName(memory.moment)}.`);
    const share = attentionShare(model, width);
    if (work.length > 0) sentences.push(`FLOPs are ${[...new Set(work.map(({ rule }) => rule))].join(" and ")} over the parameters that multiply; attention's own part (${formatPercent(share, 0)} more at ${formatCount(width)} tokens) is left out.`);
  }
  const written = work.find(({ what }) => what === "generate");
  if (written !== undefined) sentences.push(`How long answers get is not known before they are written: ${formatCount(written.tokens.low)} to ${formatCount(written.tokens.high)} tokens, and ${formatCount(written.tokens.nominal)} where they are as long as the data's own.`);
  if (settings.processes > 1) sentences.push(`Memory is that of each of the ${settings.processes} processes, which each hold the whole model${stage.launch.kind === "torchrun" ? "" : `: what ${stage.launch.kind} splits among them is not taken off`}.`);
  if (cost.recipe === "distill" && teachers.length === 0) sentences.push("The teachers answer from elsewhere: their memory and time are not counted.");
  if (time !== null) sentences.push(time.why);
  if (memory !== null && cost.device?.cuda !== false) sentences.push(`A device's CUDA context takes about ${formatBytes(0.6 * 2 ** 30)} besides, which “fits” has taken off.`);
  if (memory !== null && cost.device?.cuda === false) sentences.push("Python and its libraries come on top: they take about as much whatever the model.");
  if (model.shape.experts !== null) sentences.push(`Of ${formatNumber(model.parameters / 1e9, 1)} billion parameters ${formatNumber(model.active / 1e9, 1)} work on a token; all of them take memory.`);
  return sentences;
}
