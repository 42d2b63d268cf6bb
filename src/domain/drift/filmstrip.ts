import type { ProbeRow, TokenScores } from "../../protocol/trace.ts";
import { t } from "../../util/l10n.ts";
import type { TokenText } from "./tokenText.ts";
import type { TokenVerdict } from "./tokenClasses.ts";
import { probeAt, type ComparedTrace, type TraceData } from "./traceData.ts";
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

/** Finds the probe of a strip in a trace; null where it has not scored it. */
type Find = (trace: TraceData) => ProbeRow | null;

/** The filmstrip of the probe with this row hash (`occurrence` 0 for the first copy); null when no checkpoint scored it. */
export function filmstrip(reference: TraceData | null, checkpoints: readonly ComparedTrace[], hash: string, occurrence = 0): Filmstrip | null {
  return strip(reference, checkpoints, (trace) => copiesOf(trace, hash)[occurrence] ?? null);
}

/**
 * The filmstrip of a probe of `anchor`. Traces of the same probe set have it at the same row, so that of a hundred thousand
 * probes one is read; in another set the n-th copy stands for the n-th.
 */
export function filmstripOf(anchor: TraceData, row: number, reference: TraceData | null, checkpoints: readonly ComparedTrace[]): Filmstrip | null {
  const probe = probeAt(anchor, row);
  if (probe === null) return null;
  return strip(reference, checkpoints, (trace) => {
    const same = trace.meta.probe_set_hash === anchor.meta.probe_set_hash ? probeAt(trace, row) : null;
    if (same?.hash === probe.hash) return same.status === "ok" ? same : null;
    const occurrence = copiesOf(anchor, probe.hash).findIndex((copy) => copy.row === row);
    return copiesOf(trace, probe.hash)[Math.max(0, occurrence)] ?? null;
  });
}

function copiesOf(trace: TraceData, hash: string): ProbeRow[] {
  return trace.probes().filter((probe) => probe.hash === hash && probe.status === "ok");
}

function strip(reference: TraceData | null, checkpoints: readonly ComparedTrace[], find: Find): Filmstrip | null {
  const sources = [reference, ...checkpoints.map((checkpoint) => checkpoint.trace)];
  const anchor = sources.find((trace) => trace != null && find(trace) !== null) ?? null;
  const probe = anchor === null ? null : find(anchor);
  const scores = probe === null ? null : anchor?.tokens(probe.row) ?? null;
  if (anchor === null || probe === null || scores === null) return null;
  const texts = tokenTexts(probe.reference, scores.ends, (index) => anchor.tokenBytes(scores.ids[index] as number));
  const tokens = texts.map((text, index) => ({ ...text, id: scores.ids[index] as number, segment: anchor.segments[scores.segment[index] as number] ?? null }));
  const frames = checkpoints.map((checkpoint) => frame(checkpoint, reference, scores, find));
  const { row, line, hash, prompt, reference: text, tags } = probe;
  return { probe: { row, line, hash, prompt, reference: text, tags }, tokens, frames };
}

function frame(checkpoint: ComparedTrace, common: TraceData | null, anchor: TokenScores, find: Find): FilmFrame {
  const { label, trace } = checkpoint;
  const probe = trace === null ? null : find(trace);
  const scores = probe === null ? null : trace?.tokens(probe.row) ?? null;
  const none = { label, cells: null, note: null, nll: null, delta: null, correct: null, generated: null, finish: null };
  if (trace === null || probe === null || scores === null) return { ...none, why: t("{0} has not been scored on this prompt.", label) };
  if (scores.ids.length !== anchor.ids.length || scores.ids.some((id, index) => id !== anchor.ids[index])) {
    return { ...none, why: t("{0} was scored with other tokens: its tokenizer or chat template differs.", label) };
  }
  const reference = checkpoint.reference === undefined ? common : checkpoint.reference;
  const settings = reference === null ? null : compatibility(reference.meta, trace.meta);
  const before = reference === null || settings?.comparable !== true ? null : find(reference);
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
