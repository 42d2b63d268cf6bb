import { availableParallelism, totalmem } from "node:os";
import { join } from "node:path";
import type { InferenceSession, Tensor } from "onnxruntime-node";
import { AppError, messageOf } from "../util/errors.ts";
import { findGraph, type ScoringGraph } from "./architecture.ts";
import { bytesOf, findWeights, loadWeights } from "./checkpointWeights.ts";
import { encodeRow, type EncodedRow } from "./encodeRow.ts";
import { readChat, type RowChat } from "./rowChat.ts";
import type { CheckpointScores, ScoredRow, ScoreRequest } from "./scorer.ts";
import { loadTokenizer, type TextTokenizer } from "./textTokenizer.ts";
import { isFile, stampOf } from "./weightFiles.ts";

type Runtime = typeof import("onnxruntime-node");
type Feeds = Record<string, Tensor>;

interface Loaded {
  stamp: string;
  bytes: number;
  feeds: Feeds;
}

/** Weights kept in memory at most: a quarter of the machine's memory, and never more than 4 GiB. */
export function defaultBudget(): number {
  return Math.min(4 * 2 ** 30, totalmem() / 4);
}

/**
 * Scores rows with ONNX Runtime: one session per architecture, and each checkpoint's weights as inputs of the run. Lives
 * in a thread of its own, because a run blocks.
 */
export class OnnxScorer {
  private readonly budget: number;
  private runtime: Runtime | null = null;
  private readonly sessions = new Map<string, Promise<InferenceSession>>();
  /** Weights by folder, the one used last at the end. */
  private readonly loaded = new Map<string, Loaded>();
  private readonly tokenizers = new Map<string, { stamp: string; tokenizer: TextTokenizer }>();

  constructor(budget = defaultBudget()) {
    this.budget = budget;
  }

  /** Throws AppError: "bad-input" for the row itself, "not-found" without a library, "cancelled". */
  async score({ row, checkpoints, graphs, topK }: ScoreRequest, isCancelled: () => boolean = () => false, onScored: (count: number) => void = () => {}): Promise<CheckpointScores[]> {
    const chat = readChat(row);
    this.runtime ??= await loadRuntime();
    const results: CheckpointScores[] = [];
    for (const { label, folder } of checkpoints) {
      // A cancel message gets its turn here: a run itself cannot be interrupted.
      await new Promise((resolve) => setImmediate(resolve));
      if (isCancelled()) throw new AppError("cancelled", "Live scoring was cancelled.");
      try {
        results.push({ label, scored: await this.scoreOne(chat, folder, graphs, topK, this.runtime), why: null });
      } catch (error) {
        results.push({ label, scored: null, why: messageOf(error) });
      }
      onScored(results.length);
    }
    return results;
  }

  /** Frees the sessions. */
  async dispose(): Promise<void> {
    const sessions = [...this.sessions.values()];
    this.sessions.clear();
    this.loaded.clear();
    for (const session of sessions) await session.then((open) => open.release(), () => {});
  }

  private async scoreOne(chat: RowChat, folder: string, graphs: string, topK: number, runtime: Runtime): Promise<ScoredRow> {
    const files = await findWeights(folder);
    const graph = await findGraph(graphs, files.layers.base);
    const tokenizer = await this.tokenizer((await isFile(join(folder, "tokenizer.json"))) ? folder : files.layers.base);
    const row = encodeRow(chat, tokenizer);
    refuseLong(row, graph, this.budget);
    const outside = row.ids.find((id) => id >= graph.vocabulary);
    if (outside !== undefined) throw new AppError("bad-input", `The tokenizer in ${folder} gives the id ${outside}, and the model has ${graph.vocabulary}.`);
    const known = this.loaded.get(folder);
    this.loaded.delete(folder);
    const weights = known?.stamp === files.stamp ? known : await this.load(folder, files, graph, runtime);
    this.loaded.set(folder, weights);
    const session = await this.session(graph, runtime);
    return scoresOf(row, await session.run({ ...weights.feeds, ...feedsOf(row, graph, topK, runtime) }), tokenizer);
  }

  private async load(folder: string, files: Awaited<ReturnType<typeof findWeights>>, graph: ScoringGraph, { Tensor: TensorOf }: Runtime): Promise<Loaded> {
    const bytes = bytesOf(graph);
    if (bytes > this.budget) {
      throw new AppError("bad-input", `The weights of ${folder} need ${gibibytes(bytes)} of memory as float32, and live scoring takes ${gibibytes(this.budget)} at most. Score it with the runner instead.`);
    }
    let total = [...this.loaded.values()].reduce((sum, one) => sum + one.bytes, bytes);
    for (const [oldest, one] of this.loaded) {
      if (total <= this.budget) break;
      this.loaded.delete(oldest);
      total -= one.bytes;
    }
    const weights = await loadWeights(files, graph);
    const feeds = Object.fromEntries([...weights].map(([name, data]) => [name, new TensorOf("float32", data, graph.tensors.get(name) ?? [])]));
    return { stamp: files.stamp, bytes, feeds };
  }

  private async session({ path }: ScoringGraph, { InferenceSession: SessionOf }: Runtime): Promise<InferenceSession> {
    const found = this.sessions.get(path);
    if (found !== undefined) return found;
    const opened = SessionOf.create(path, { executionProviders: ["cpu"], intraOpNumThreads: Math.max(1, Math.min(4, availableParallelism() - 1)), interOpNumThreads: 1, logSeverityLevel: 3 });
    this.sessions.set(path, opened);
    try {
      return await opened;
    } catch (error) {
      this.sessions.delete(path);
      throw new AppError("bad-input", `The scoring graph ${path} cannot be opened: ${messageOf(error)}. Delete it and run a stage once: the runner writes it anew.`, { cause: error });
    }
  }

  private async tokenizer(folder: string): Promise<TextTokenizer> {
    const files = ["tokenizer.json", "tokenizer_config.json", "chat_template.jinja"].map((name) => join(folder, name));
    const there = (await Promise.all(files.map(async (path) => ((await isFile(path)) ? [path] : [])))).flat();
    const stamp = await stampOf(new Map(there.map((path) => [path, { path }])));
    const found = this.tokenizers.get(folder);
    if (found?.stamp === stamp) return found.tokenizer;
    const tokenizer = await loadTokenizer(folder);
    this.tokenizers.set(folder, { stamp, tokenizer });
    return tokenizer;
  }
}

async function loadRuntime(): Promise<Runtime> {
  try {
    return await import("onnxruntime-node");
  } catch (error) {
    throw new AppError("not-found", `ONNX Runtime cannot be loaded on ${process.platform}-${process.arch}, so nothing is scored live here; the scores of runs are not affected. (${messageOf(error).split("\n")[0]})`, { cause: error });
  }
}

function refuseLong({ ids }: EncodedRow, { maxPositions }: ScoringGraph, budget: number): void {
  if (ids.length - 1 > maxPositions) throw new AppError("bad-input", `The row has ${ids.length} tokens, and the model can be scored up to ${maxPositions}. Shorten it.`);
  // One layer's attention, for 64 heads: more than this machine should spend on a look.
  const attention = ids.length ** 2 * 64 * 4;
  if (attention > budget) throw new AppError("bad-input", `The row has ${ids.length} tokens: scoring it here could need ${gibibytes(attention)} of memory. Shorten it.`);
}

function feedsOf({ ids, scored }: EncodedRow, { vocabulary }: ScoringGraph, topK: number, { Tensor: TensorOf }: Runtime): Feeds {
  const vector = (values: number[]): Tensor => new TensorOf("int32", Int32Array.from(values), [values.length]);
  const single = (value: number): Tensor => new TensorOf("int64", BigInt64Array.of(BigInt(value)), [1]);
  return {
    input_ids: vector(ids.slice(0, -1)),
    positions: vector(scored.map((place) => place - 1)),
    targets: vector(scored.map((place) => ids[place] as number)),
    vocabulary: single(vocabulary),
    top_k: single(Math.max(1, Math.min(topK, vocabulary))),
  };
}

function scoresOf(row: EncodedRow, out: InferenceSession.OnnxValueMapType, { bytes }: TextTokenizer): ScoredRow {
  const values = (name: string): unknown => out[name]?.data;
  const scores = {
    ids: Uint32Array.from(row.scored, (place) => row.ids[place] as number),
    ends: Uint32Array.from(row.ends),
    logprob: values("logprob") as Float32Array,
    entropy: values("entropy") as Float32Array,
    rank: Uint32Array.from(values("rank") as Int32Array),
    topkIds: Uint32Array.from(values("topk_ids") as Int32Array),
    topkLogprob: values("topk_logprob") as Float32Array,
  };
  const vocabulary = new Map([...scores.ids, ...scores.topkIds].map((id) => [id, bytes(id)]));
  return { prompt: row.prompt, reference: row.reference, mask: row.mask, note: row.note, scores, vocabulary };
}

function gibibytes(bytes: number): string {
  return `${(bytes / 2 ** 30).toFixed(bytes < 2 ** 30 ? 2 : 1)} GiB`;
}
