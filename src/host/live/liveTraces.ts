import { filmstrip, type Filmstrip } from "../../domain/drift/filmstrip.ts";
import type { ComparedTrace, TraceData } from "../../domain/drift/traceData.ts";
import type { ProbeRow, TokenScores, TraceMeta } from "../../protocol/trace.ts";
import type { CheckpointScores, ScoredRow } from "../../inference/scorer.ts";
import type { NoiseFloor } from "./noiseFloor.ts";

/** Scores of one row under one checkpoint, and the label of the checkpoint it is compared with. */
export interface LiveScores extends CheckpointScores {
  /** Null: compared with none, as M0. */
  against: string | null;
}

/** What live scores have no trace for that would know it. */
export interface LivePlace {
  /** The row's line in its file. */
  line: number;
  noise: NoiseFloor | null;
}

const hash = "live";

/** Live scores as the same filmstrip that traces give; null when no checkpoint could score the row. */
export function liveFilmstrip(results: readonly LiveScores[], place: LivePlace): Filmstrip | null {
  const traces = new Map(results.flatMap(({ label, scored }) => (scored === null ? [] : [[label, liveTrace(scored, place)] as const])));
  const compared: ComparedTrace[] = results.map(({ label, against }) => ({ label, trace: traces.get(label) ?? null, reference: against === null ? null : traces.get(against) ?? null }));
  const strip = filmstrip(null, compared, hash);
  if (strip === null) return null;
  const why = new Map(results.map((result) => [result.label, result.why]));
  return { ...strip, frames: strip.frames.map((frame) => ({ ...frame, why: why.get(frame.label) ?? frame.why })) };
}

/** One row's scores in the form that the drift maths reads. */
function liveTrace({ scores, vocabulary, prompt, reference, mask }: ScoredRow, { line, noise }: LivePlace): TraceData {
  const count = scores.ids.length;
  const nll = -scores.logprob.reduce((sum, value) => sum + value, 0);
  const worst = scores.logprob.reduce((low, value, index) => (value < (scores.logprob[low] as number) ? index : low), 0);
  const probe: ProbeRow = {
    row: 0, line, hash, prompt, reference, tags: [], status: "ok", reason: null, tokens: count, nll, worst,
    mean_entropy: scores.entropy.reduce((sum, value) => sum + value, 0) / Math.max(1, count),
    kl_start: null, kl_base: null, correct: null, generated: null, finish: null,
  };
  const tokens: TokenScores = { ...scores, segment: new Uint8Array(count), klStart: null, klBase: null };
  const meta: TraceMeta = {
    schema: "1.0", run: "", stage: "", step: 0, skill: "", split: "id", engine: "onnxruntime", dtype: "float32", attention: "graph", batch_size: 1, temperature: 1,
    tokenizer_hash: "", template_hash: "", probe_set_hash: "", top_k: scores.topkIds.length / Math.max(1, count), mask, weights_hash: "", device: "cpu",
    ...(noise === null ? {} : { noise }),
  };
  return { meta, segments: [], probes: () => [probe], tokens: () => tokens, tokenBytes: (id) => vocabulary.get(id) ?? null, summary: () => [] };
}
