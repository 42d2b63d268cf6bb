import type { Pipeline } from "../pipeline/pipelineModel.ts";
import { compatibility } from "../drift/compatibility.ts";
import { pairProbes, tokenDrift } from "../drift/drift.ts";
import { compareWith, type ClosableTrace, type OpenedSet } from "../drift/driftSelection.ts";
import { tokenTexts } from "../drift/tokenText.ts";
import type { ComparedTrace, TraceData } from "../drift/traceData.ts";
import type { ProbeRow } from "../../protocol/trace.ts";
import { csvLine, type CsvCell } from "./csv.ts";

const header = [
  "skill", "split", "checkpoint", "stage", "reference_checkpoint", "row", "line", "row_hash", "check_passed", "answer_nll", "answer_delta_nll",
  "token_index", "token_id", "token", "segment", "logprob", "logprob_change", "rank", "entropy", "kl_start", "kl_base", "class", "beyond_noise", "note",
] as const;

/**
 * Probes × checkpoints × tokens of one probe set as CSV, one line at a time: a large set is never in memory as a whole.
 * Ranks count from 1. Where two checkpoints were scored with unlike settings there is no change, and `note` says why.
 */
export function* driftCsv(pipeline: Pipeline, opened: OpenedSet<ClosableTrace>, against: string): Generator<string> {
  yield csvLine(header);
  const { compared, reference } = compareWith(pipeline, opened, against);
  for (const [index, one] of compared.entries()) {
    const stage = opened.shown[index]?.stage ?? null;
    const problem = opened.problems.get(one.label);
    if (one.trace === null) yield csvLine([...Array.from(header, (_, column): CsvCell => [opened.skill, opened.split, one.label, stage][column] ?? null).slice(0, -1), problem ?? `${one.label} has not been scored on these prompts.`]);
    else yield* checkpointLines([opened.skill, opened.split, one.label, stage, against], one, one.trace, one.reference === undefined ? reference : one.reference);
  }
}

function* checkpointLines(head: readonly CsvCell[], { label }: ComparedTrace, trace: TraceData, reference: TraceData | null): Generator<string> {
  const settings = reference === null ? null : compatibility(reference.meta, trace.meta);
  const before = new Map<number, ProbeRow>(reference === null || settings?.comparable !== true ? [] : pairProbes(reference.probes(), trace.probes()).map((pair) => [pair.other.row, pair.reference]));
  for (const probe of trace.probes()) {
    const place = [...head, probe.row, probe.line, probe.hash];
    const scores = probe.status === "ok" ? trace.tokens(probe.row) : null;
    if (scores === null) {
      yield csvLine([...place, ...Array<null>(header.length - place.length - 1).fill(null), probe.reason ?? `${label} has not scored this prompt.`]);
      continue;
    }
    const start = before.get(probe.row);
    const drift = start === undefined || reference === null ? null : tokenDrift(reference, trace, start.row, probe.row);
    const answer = [probe.correct === null ? null : String(probe.correct), probe.nll, start === undefined ? null : probe.nll - start.nll];
    const texts = tokenTexts(probe.reference, scores.ends, (index) => trace.tokenBytes(scores.ids[index] as number));
    for (const { index, display } of texts) {
      const verdict = drift?.verdicts[index];
      yield csvLine([
        ...place, ...answer, index, scores.ids[index] ?? null, display, trace.segments[scores.segment[index] ?? -1] ?? null,
        single(scores.logprob[index]), single(drift?.delta[index]), (scores.rank[index] ?? 0) + 1, single(scores.entropy[index]), single(scores.klStart?.[index]), single(scores.klBase?.[index]),
        verdict?.class ?? null, verdict === undefined ? null : String(verdict.coloured), settings?.message ?? null,
      ]);
    }
  }
}

/** Traces hold single precision: more digits than that say nothing. */
function single(value: number | undefined): number | null {
  return value === undefined ? null : Number(value.toPrecision(7));
}
