import { tokenDrift, type DriftRow } from "../../domain/drift/drift.ts";
import type { Comparison } from "../../domain/drift/driftSelection.ts";
import type { TokenClass } from "../../domain/drift/tokenClasses.ts";
import { tokenTexts } from "../../domain/drift/tokenText.ts";
import type { TraceData } from "../../domain/drift/traceData.ts";
import type { ProbeRow } from "../../protocol/trace.ts";

/** The token of a reference answer that fell most under any checkpoint. */
export interface WorstToken {
  /** As shown: blanks and control characters are visible. */
  display: string;
  index: number;
  label: string;
  /** Change of its log-probability: negative. */
  delta: number;
  tokenClass: TokenClass;
}

/** A reader keeps its rows: looking one up must not mean going through a hundred thousand of them again. */
const indexes = new WeakMap<readonly ProbeRow[], ReadonlyMap<string, ProbeRow>>();

/** In traces of the same probes a row has the same number; elsewhere it is looked for. */
function probeOf(trace: TraceData, { row, hash }: DriftRow): ProbeRow | null {
  const same = trace.probe?.(row) ?? null;
  if (same?.hash === hash) return same.status === "ok" ? same : null;
  const probes = trace.probes();
  let index = indexes.get(probes);
  if (index === undefined) {
    const made = new Map<string, ProbeRow>();
    for (const probe of probes) if (probe.status === "ok" && !made.has(probe.hash)) made.set(probe.hash, probe);
    indexes.set(probes, (index = made));
  }
  return index.get(hash) ?? null;
}

/** For each row the token that fell most, beyond the noise, under a checkpoint that can be compared; null where none did. */
export function worstTokens({ reference, compared }: Comparison, rows: readonly DriftRow[]): (WorstToken | null)[] {
  return rows.map((row) => {
    const { cells } = row;
    let worst: WorstToken | null = null;
    for (const { label, trace, reference: own } of compared) {
      const anchor = own === undefined ? reference : own;
      // Whether the two may be compared at all was decided when the row's drift was.
      if (trace === null || anchor === null || cells.find((cell) => cell.label === label)?.delta == null) continue;
      const [before, now] = [probeOf(anchor, row), probeOf(trace, row)];
      const drift = before === null || now === null ? null : tokenDrift(anchor, trace, before.row, now.row);
      if (now === null || drift === null) continue;
      const [index, delta] = lowest(drift);
      if (index < 0 || delta >= (worst?.delta ?? 0)) continue;
      worst = { display: displayOf(trace, now, index), index, label, delta, tokenClass: drift.verdicts[index]?.class ?? "kept" };
    }
    return worst;
  });
}

function lowest({ delta, verdicts }: NonNullable<ReturnType<typeof tokenDrift>>): [index: number, delta: number] {
  let [place, least] = [-1, 0];
  for (const [index, { coloured }] of verdicts.entries()) {
    const value = delta[index] ?? 0;
    if (coloured && value < least) [place, least] = [index, value];
  }
  return [place, least];
}

function displayOf(trace: TraceData, { row, reference }: ProbeRow, index: number): string {
  const scores = trace.tokens(row);
  if (scores === null) return "";
  const token = tokenTexts(reference, scores.ends, (place) => trace.tokenBytes(scores.ids[place] as number))[index];
  return token?.display ?? "";
}
