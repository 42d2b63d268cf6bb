import type { TraceSummaryRow } from "../../protocol/trace.ts";
import type { ComparedTrace, TraceData } from "./traceData.ts";
import { compatibility } from "./compatibility.ts";

/** One class of tokens (a segment), one tag of rows, or all of them, under one checkpoint. */
export interface SummaryCell {
  label: string;
  /** Token-weighted: exp(sum of NLL / tokens). */
  perplexity: number | null;
  /** Change of the mean log-probability of a token against the reference checkpoint; negative: less likely. */
  deltaPerToken: number | null;
  meanEntropy: number | null;
  klStart: number | null;
  klBase: number | null;
  accuracy: number | null;
}

export interface SummaryLine {
  kind: TraceSummaryRow["kind"];
  name: string;
  rows: number;
  tokens: number;
  cells: SummaryCell[];
  /** The largest fall of the mean log-probability of a token over the checkpoints, as a positive number. */
  worst: number | null;
}

/** Perplexity, KL, entropy and change per segment and per tag: `all` first, then segments, then tags, the most fallen first. */
export function summaryDrift(reference: TraceData | null, checkpoints: readonly ComparedTrace[]): SummaryLine[] {
  const lines = new Map<string, SummaryLine>();
  for (const source of [reference, ...checkpoints.map((checkpoint) => checkpoint.trace)]) {
    for (const { kind, name, rows, tokens } of source?.summary() ?? []) {
      const key = keyOf(kind, name);
      if (!lines.has(key)) lines.set(key, { kind, name, rows, tokens, cells: [], worst: null });
    }
  }
  for (const checkpoint of checkpoints) addColumn(lines, checkpoint, reference);
  for (const line of lines.values()) {
    const falls = line.cells.flatMap((cell) => (cell.deltaPerToken === null ? [] : [-cell.deltaPerToken]));
    line.worst = falls.length === 0 ? null : Math.max(...falls);
  }
  const kinds = ["all", "segment", "tag"];
  return [...lines.values()].sort((a, b) => kinds.indexOf(a.kind) - kinds.indexOf(b.kind) || (b.worst ?? -Infinity) - (a.worst ?? -Infinity) || (a.name < b.name ? -1 : 1));
}

function addColumn(lines: Map<string, SummaryLine>, checkpoint: ComparedTrace, common: TraceData | null): void {
  const reference = checkpoint.reference === undefined ? common : checkpoint.reference;
  const comparable = reference !== null && checkpoint.trace !== null && compatibility(reference.meta, checkpoint.trace.meta).comparable;
  const before = new Map((comparable ? reference.summary() : []).map((row) => [keyOf(row.kind, row.name), row]));
  const now = new Map((checkpoint.trace?.summary() ?? []).map((row) => [keyOf(row.kind, row.name), row]));
  for (const [key, line] of lines) {
    const row = now.get(key);
    const start = before.get(key);
    line.cells.push({
      label: checkpoint.label,
      perplexity: known(row?.perplexity),
      deltaPerToken: known(Math.log(start?.perplexity ?? NaN) - Math.log(row?.perplexity ?? NaN)),
      meanEntropy: known(row?.mean_entropy),
      klStart: row?.kl_start ?? null,
      klBase: row?.kl_base ?? null,
      accuracy: row === undefined || row.correct === null || row.checked === 0 ? null : row.correct / row.checked,
    });
  }
}

function known(value: number | undefined): number | null {
  return value === undefined || Number.isNaN(value) ? null : value;
}

function keyOf(kind: string, name: string): string {
  return JSON.stringify([kind, name]);
}
