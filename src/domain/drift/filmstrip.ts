import type { ProbeRow, TokenScores } from "../../protocol/trace.ts";
import type { TokenText } from "./tokenText.ts";
import type { TokenVerdict } from "./tokenClasses.ts";
import type { ComparedTrace, TraceData } from "./traceData.ts";
import { compatibility } from "./compatibility.ts";
import { tokenDrift } from "./drift.ts";
import { showBytes, tokenTexts } from "./tokenText.ts";

/** A token that the checkpoint could have written instead. */
export interface Alternative {
  id: number;
  /** As shown: blanks visible, incomplete characters as bytes. */
  display: string;
  logprob: number;
  probability: number;
  /** True for the reference's own token. */
  isReference: boolean;
}

export interface FilmToken extends TokenText {
  id: number;
  segment: string | null;
}

/** One token under one checkpoint. */
export interface FilmCell extends TokenVerdict {
  logprob: number;
  /** Change of the log-probability; null when there is nothing to compare with. */
  delta: number | null;
  /** 0 = most likely. */
  rank: number;
  entropy: number;
  klStart: number | null;
  klBase: number | null;
  alternatives: Alternative[];
}

export interface FilmFrame {
  label: string;
  /** null: this checkpoint has no scores for the prompt; `why` says so. */
  cells: FilmCell[] | null;
  why: string | null;
  /** What differs in the settings, if anything. */
  note: string | null;
  nll: number | null;
  /** ΔNLL against the reference checkpoint. */
  delta: number | null;
  correct: boolean | null;
  generated: string | null;
  finish: ProbeRow["finish"];
}

/** One prompt across checkpoints: a row per checkpoint, a column per token. */
export interface Filmstrip {
  probe: Pick<ProbeRow, "row" | "line" | "hash" | "prompt" | "reference" | "tags">;
  tokens: FilmToken[];
  frames: FilmFrame[];
}

/** The filmstrip of the probe with this row hash (`occurrence` 0 for the first copy); null when no checkpoint scored it. */
export function filmstrip(reference: TraceData | null, checkpoints: readonly ComparedTrace[], hash: string, occurrence = 0): Filmstrip | null {
  const sources = [reference, ...checkpoints.map((checkpoint) => checkpoint.trace)];
  const anchor = sources.find((trace) => trace != null && findProbe(trace, hash, occurrence) !== null) ?? null;
  const probe = anchor === null ? null : findProbe(anchor, hash, occurrence);
  const scores = probe === null ? null : anchor?.tokens(probe.row) ?? null;
  if (anchor === null || probe === null || scores === null) return null;
  const texts = tokenTexts(probe.reference, scores.ends, (index) => anchor.tokenBytes(scores.ids[index] as number));
  const tokens = texts.map((text, index) => ({ ...text, id: scores.ids[index] as number, segment: anchor.segments[scores.segment[index] as number] ?? null }));
  const frames = checkpoints.map((checkpoint) => frame(checkpoint, reference, scores, hash, occurrence));
  const { row, line, prompt, reference: text, tags } = probe;
  return { probe: { row, line, hash, prompt, reference: text, tags }, tokens, frames };
}

function findProbe(trace: TraceData, hash: string, occurrence: number): ProbeRow | null {
  return trace.probes().filter((probe) => probe.hash === hash && probe.status === "ok")[occurrence] ?? null;
}

function frame(checkpoint: ComparedTrace, common: TraceData | null, anchor: TokenScores, hash: string, occurrence: number): FilmFrame {
  const { label, trace } = checkpoint;
  const probe = trace === null ? null : findProbe(trace, hash, occurrence);
  const scores = probe === null ? null : trace?.tokens(probe.row) ?? null;
  const none = { label, cells: null, note: null, nll: null, delta: null, correct: null, generated: null, finish: null };
  if (trace === null || probe === null || scores === null) return { ...none, why: `${label} has not been scored on this prompt.` };
  if (scores.ids.length !== anchor.ids.length || scores.ids.some((id, index) => id !== anchor.ids[index])) {
    return { ...none, why: `${label} was scored with other tokens: its tokenizer or chat template differs.` };
  }
  const reference = checkpoint.reference === undefined ? common : checkpoint.reference;
  const settings = reference === null ? null : compatibility(reference.meta, trace.meta);
  const before = reference === null || settings?.comparable !== true ? null : findProbe(reference, hash, occurrence);
  const drift = reference === null || before === null ? null : tokenDrift(reference, trace, before.row, probe.row);
  const { nll, correct, generated, finish } = probe;
  return { label, cells: cellsOf(trace, scores, drift), why: null, note: settings?.message ?? null, nll, delta: before === null ? null : nll - before.nll, correct, generated, finish };
}

function cellsOf(trace: TraceData, scores: TokenScores, drift: ReturnType<typeof tokenDrift>): FilmCell[] {
  const uncompared: TokenVerdict = { class: "kept", change: "same", coloured: false };
  return Array.from(scores.ids, (_, index) => ({
    ...(drift?.verdicts[index] ?? uncompared),
    logprob: scores.logprob[index] as number,
    delta: drift?.delta[index] ?? null,
    rank: scores.rank[index] as number,
    entropy: scores.entropy[index] as number,
    klStart: scores.klStart?.[index] ?? null,
    klBase: scores.klBase?.[index] ?? null,
    alternatives: alternativesOf(trace, scores, index),
  }));
}

function alternativesOf(trace: TraceData, scores: TokenScores, index: number): Alternative[] {
  const k = scores.topkIds.length / Math.max(1, scores.ids.length);
  return Array.from({ length: k }, (_, place) => {
    const id = scores.topkIds[index * k + place] as number;
    const logprob = scores.topkLogprob[index * k + place] as number;
    return { id, display: showBytes(trace.tokenBytes(id)), logprob, probability: Math.exp(logprob), isReference: id === scores.ids[index] };
  });
}
