import { cacheBytes } from "./activations.ts";
import { lateLibraries, noMemory, probeScoring, total, weightBytes, type MemoryEstimate, type MemoryInput, type MemoryMoment, type MemoryParts } from "./memory.ts";

/** Memory of recipes that do not train the model itself: base and experts of a router, or a merge that streams tensors. null for others. */
export function untrainedMemory(recipe: string, input: MemoryInput, merge: { models: number; largestTensor: number }): MemoryEstimate | null {
  const { model, settings, data, others, cuda } = input;
  const weights = model.parameters * weightBytes;
  const scored: MemoryParts = { ...noMemory, weights, activations: probeScoring(input) };
  // One tensor of every model and of the result at a time in float32, some more for what TIES sorts; the start's memory is free by then.
  if (recipe === "merge") return worst({ start: scored, forward: { ...noMemory, copies: merge.largestTensor * 4 * (merge.models + 3) } }, cuda);
  if (recipe !== "router") return null;
  const width = (data?.longestPrompt ?? 512) + (settings.newTokens ?? 0);
  const adapters = others.experts.reduce((sum, one) => sum + one.parameters * weightBytes, 0);
  const answering: MemoryParts = { ...noMemory, weights, adapters, cache: settings.together * width * cacheBytes(model.shape, weightBytes), activations: settings.together * width * 12 * model.shape.hidden };
  return worst({ start: scored, generate: answering }, cuda);
}

function worst(moments: Partial<Record<MemoryMoment, MemoryParts>>, cuda: boolean): MemoryEstimate {
  const [moment, largest] = (Object.entries(moments) as [MemoryMoment, MemoryParts][]).reduce((a, b) => (total(b[1]) > total(a[1]) ? b : a));
  const parts = cuda ? largest : { ...largest, heap: lateLibraries };
  const peak = total(parts);
  const rough = parts.activations + parts.cache + parts.copies;
  return { moment, parts, peak, low: peak - 0.3 * rough, high: (peak + rough * (cuda ? 0.2 : 1.5)) * 1.05, moments: Object.fromEntries(Object.entries(moments).map(([name, one]) => [name, total(one)])) };
}
