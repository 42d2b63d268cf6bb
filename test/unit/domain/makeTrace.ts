import type { TraceData } from "../../../src/domain/drift/traceData.ts";
import type { ProbeRow, TokenScores, TraceMeta, TraceSummaryRow } from "../../../src/protocol/trace.ts";

/** A trace written by hand: one probe per list of log-probabilities, one ASCII letter per token. */
export interface HandMadeProbe {
  hash: string;
  logprob: number[];
  rank?: number[];
  correct?: boolean | null;
  reason?: string;
}

export const meta: TraceMeta = {
  schema: "1.0", run: "r", stage: "s", step: 0, skill: "math", split: "id", engine: "transformers", dtype: "float32", attention: "sdpa", batch_size: 16,
  temperature: 1, tokenizer_hash: "t", template_hash: "c", probe_set_hash: "p", top_k: 1, mask: "generation-block", weights_hash: "w", device: "cpu",
  noise: { nll_q99: 0.05, token_q99: 0.01 },
};

export function makeTrace(probes: HandMadeProbe[], changes: Partial<TraceMeta> = {}, summary: TraceSummaryRow[] = []): TraceData {
  const rows = probes.map((probe, row): ProbeRow => ({
    row, line: row + 1, hash: probe.hash, prompt: `prompt ${probe.hash}`, reference: "abcdefgh".slice(0, probe.logprob.length), tags: [],
    status: probe.reason === undefined ? "ok" : "skipped", reason: probe.reason ?? null, tokens: probe.logprob.length,
    nll: -probe.logprob.reduce((sum, value) => sum + value, 0), mean_entropy: 0, kl_start: null, kl_base: null, worst: null,
    correct: probe.correct ?? null, generated: null, finish: null,
  }));
  return {
    meta: { ...meta, ...changes },
    segments: ["answer"],
    probes: () => rows,
    tokens: (row) => scores(probes[row] as HandMadeProbe),
    tokenBytes: (id) => Uint8Array.of(id),
    summary: () => summary,
  };
}

function scores({ logprob, rank }: HandMadeProbe): TokenScores {
  const n = logprob.length;
  const ids = Uint32Array.from({ length: n }, (_, index) => 97 + index);
  return {
    ids, ends: Uint32Array.from({ length: n }, (_, index) => index + 1), logprob: Float32Array.from(logprob), entropy: new Float32Array(n), rank: Uint32Array.from(rank ?? Array<number>(n).fill(0)),
    topkIds: ids, topkLogprob: Float32Array.from(logprob), segment: new Uint8Array(n), klStart: null, klBase: null,
  };
}
