import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { join } from "node:path";
import { recomputeFlags, type Recomputed, type RecomputeInput } from "../../domain/flags/recompute.ts";
import { messageOf } from "../../util/errors.ts";
import { readRowGroups } from "../rows/rowGroups.ts";
import type { RowIndex } from "../rows/rowIndex.ts";
import type { TraceReader, TraceStore } from "../traces/traceStore.ts";
import { LedgerReader } from "./ledgers.ts";
import type { RunRecord } from "./runStore.ts";

/** The verdicts of a run, made again from its traces, and what could not be looked up for it: sentences. */
export interface RecomputedRun {
  result: Recomputed;
  notes: string[];
}

/** Reads a run's traces, and of its probe and training files which rows belong together or are trained on. */
export async function recomputeRun(traces: TraceStore, rows: RowIndex, run: RunRecord, change: Pick<RecomputeInput, "detector" | "tolerance"> = {}): Promise<RecomputedRun> {
  const notes: string[] = [];
  const groups = new Map<string, Map<number, string>>();
  const found = new Map<string, Map<number, string>>();
  const trained = await trainedHashes(rows, run, notes);
  for (const { id, probes } of run.spec.skills) {
    for (const [split, path] of Object.entries(probes)) {
      try {
        const read = await readRowGroups(path);
        if (!isInput(run, path, read.sha256)) {
          notes.push(`${path} was changed since the run scored it: groups of its rows, and which of them are trained on, are not looked up.`);
          continue;
        }
        groups.set(`${id}.${split}`, read.groups);
        found.set(`${id}.${split}`, await trained(path));
      } catch (error) {
        notes.push(`${path} cannot be read (${messageOf(error)}): groups of its rows, and which of them are trained on, are not looked up.`);
      }
    }
  }
  const opened = new Map<string, TraceReader>();
  const open = (trace: string): TraceReader => {
    const reader = opened.get(trace) ?? traces.open(join(run.dir, trace));
    opened.set(trace, reader);
    return reader;
  };
  try {
    const result = recomputeFlags({
      spec: run.spec, state: run.state, open, ...change,
      groupOf: ({ skill, split }, line) => groups.get(`${skill}.${split}`)?.get(line),
      foundIn: ({ skill, split }, line) => found.get(`${skill}.${split}`)?.get(line) ?? null,
    });
    if (run.state.resumes.length > 0) notes.push(`The run was resumed: looks that a later attempt made void count for nothing here, while the runner keeps their share of the budget spent.`);
    return { result, notes };
  } finally {
    for (const reader of opened.values()) reader.close();
  }
}

/** For a probe file: the lines whose prompt is in the stage's data or its replay buffer, and where it is. */
async function trainedHashes(rows: RowIndex, run: RunRecord, notes: string[]): Promise<(path: string) => Promise<Map<number, string>>> {
  const { data } = run.spec;
  let indexed = false;
  if (data !== null) {
    try {
      if (isInput(run, data, await sha256Of(data))) {
        await rows.update(data, { turns: true });
        indexed = true;
      } else notes.push(`${data} was changed since the run: which probes are trained on is not looked up in it.`);
    } catch (error) {
      notes.push(`${data} cannot be read (${messageOf(error)}): which probes are trained on is not looked up in it.`);
    }
  }
  const { records } = await new LedgerReader().read([{ dir: run.dir, run: run.id, stage: run.stage }]);
  const buffered = new Map(records.flatMap((record) => record.rows.map(({ hash, prompt_hash, source }) => [prompt_hash ?? hash, source])));
  return async (path) => {
    const summary = await rows.update(path, { turns: true });
    const lines = rows.rows(path, 1, summary.lines).flatMap(({ line, full, prompt }) => (full === null ? [] : [{ line, full, prompt: prompt ?? null }]));
    const prompts = indexed && data !== null ? rows.places(lines.flatMap(({ prompt }) => prompt ?? []), "prompt", data) : new Map<string, unknown[]>();
    const whole = indexed && data !== null ? rows.places(lines.flatMap(({ full, prompt }) => (prompt === null ? full : [])), "full", data) : new Map<string, unknown[]>();
    return new Map(lines.flatMap(({ line, full, prompt }): [number, string][] => {
      const hits = prompt === null ? whole.get(full) : prompts.get(prompt);
      if (hits !== undefined && hits.length > 0) return [[line, data ?? ""]];
      const source = buffered.get(prompt ?? full);
      return source === undefined ? [] : [[line, source]];
    }));
  };
}

/** True where the run was frozen with exactly this file. */
function isInput({ spec }: RunRecord, path: string, sha256: string): boolean {
  return spec.inputs.some((input) => input.path === path && input.sha256 === sha256);
}

async function sha256Of(path: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20 })) hash.update(chunk as Buffer);
  return hash.digest("hex");
}
