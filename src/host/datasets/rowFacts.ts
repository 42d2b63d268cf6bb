import { hash } from "node:crypto";
import { isAbsolute, relative, sep } from "node:path";
import { compareWith, orderedDrift, ownReference, probeSetsOf, withProbeSet, type ProbeSet } from "../../domain/drift/driftSelection.ts";
import type { DriftRow } from "../../domain/drift/drift.ts";
import type { Pipeline } from "../../domain/pipeline/pipelineModel.ts";
import { rowHashes } from "../../domain/rows/canonical.ts";
import type { JsonValue } from "../../domain/rows/jsonText.ts";
import { ReplayMembership, type ReplayRecord } from "../../domain/rows/membership.ts";
import type { Chain } from "../../domain/run/chain.ts";
import { replayRuns } from "../../domain/run/replayRuns.ts";
import type { DatasetProbe } from "../../protocol/datasets.ts";
import { encodeNumber } from "../../protocol/numbers.ts";
import type { TraceStore } from "../../storage/traces/traceStore.ts";
import { messageOf } from "../../util/errors.ts";
import type { PipelineView } from "../workspaceModel.ts";

/** What is known about rows from outside the file: buffers and scores. The same answers as `seesaw replay` and `seesaw drift`. */
export interface RowFacts {
  columns: { label: string; title: string }[];
  /** Whether any run has replayed anything. */
  replay: boolean;
  problems: string[];
  of(value: JsonValue): { replay: string | null; probe: KnownProbe | null };
}

/** A probe's drift, and where Token Drift shows it. */
export type KnownProbe = DatasetProbe & { pipeline: string; probeRow: number };

export interface RowFactsHost {
  views(): readonly PipelineView[];
  traces(): Promise<TraceStore>;
  /** The replay records of run folders. */
  ledgers(folders: readonly { dir: string; run: string; stage: string }[]): Promise<{ records: ReplayRecord[]; problems: string[] }>;
}

/** A probe set with more rows is only compared with its own file: any other is most likely not a copy of it. */
const copyLimit = 5000;

/** The pipeline a file belongs to: the one with the nearest root above it, else the first. */
export function viewOf(path: string, views: readonly PipelineView[]): PipelineView | null {
  const usable = views.filter(({ shown, chain }) => shown !== null && chain !== null);
  const inside = usable.filter(({ shown }) => isInside(path, shown?.root ?? "")).sort((a, b) => (b.shown?.root.length ?? 0) - (a.shown?.root.length ?? 0));
  return inside[0] ?? usable[0] ?? null;
}

/** Changes exactly when the facts of a file may have changed. */
export function factsKey(path: string, views: readonly PipelineView[]): string {
  const view = viewOf(path, views);
  if (view === null) return "";
  const runs = view.listing.runs.map(({ id, state }) => [id, state.attempt, state.status]);
  return JSON.stringify([view.uri.fsPath, runs, view.chain?.checkpoints.map(({ status, traces }) => [status, traces])]);
}

/** Reads buffers, ledgers and the probe sets that a file's rows may be of. What cannot be read is a problem, not the end. */
export async function readFacts(path: string, host: RowFactsHost): Promise<RowFacts> {
  const view = viewOf(path, host.views());
  if (view === null || view.shown === null || view.chain === null) return { columns: [], replay: false, problems: [], of: () => ({ replay: null, probe: null }) };
  const { shown: pipeline, chain } = view;
  const { records, problems } = await host.ledgers(replayRuns(chain).map(({ dir, id, stage }) => ({ dir, run: id, stage })));
  const membership = new ReplayMembership(records);
  // Without the rows' texts: a probe set may be large.
  const probes = new Map<string, KnownProbe>();
  const columns = chain.checkpoints.filter(({ traces }) => Object.keys(traces).length > 0).map(({ label, stage }) => ({ label, title: `${label} ${stage ?? "base"}` }));
  if (columns.length > 0) {
    try {
      const traces = await host.traces();
      const labels = columns.map(({ label }) => label);
      const keep = (row: DriftRow, set: ProbeSet): unknown => probes.set(row.hash, { ...probeOf(row, set, labels), pipeline: view.uri.fsPath, probeRow: row.row });
      for (const set of wantedSets(path, pipeline)) {
        readProbes(set, pipeline, chain, traces, problems, keep);
        // Reading a set runs without a pause: let the editor breathe between them.
        await new Promise((resolve) => setImmediate(resolve));
      }
    } catch (error) {
      problems.push(`Drift is not shown: ${messageOf(error)}`);
    }
  }
  return {
    columns,
    replay: membership.size > 0,
    problems,
    of(value) {
      const hashes = rowHashes(value, (text) => hash("sha256", text, "hex"));
      return { replay: membership.relate({ line: 0, ...hashes })?.label ?? null, probe: probes.get(hashes.full) ?? null };
    },
  };
}

/** The sets whose file this is; where it is no probe file, all: it may be a copy of one. */
function wantedSets(path: string, pipeline: Pipeline): (ProbeSet & { own: boolean })[] {
  const all = pipeline.skills.flatMap((skill) => probeSetsOf(skill).map((set) => ({ ...set, own: (set.split === "ood" ? skill.probes.ood : skill.probes.id) === path })));
  const own = all.filter((set) => set.own);
  return own.length > 0 ? own : all;
}

function readProbes({ own, ...set }: ProbeSet & { own: boolean }, pipeline: Pipeline, chain: Chain, traces: TraceStore, problems: string[], keep: (row: DriftRow, set: ProbeSet) => void): void {
  withProbeSet(chain, set, (path) => traces.open(path), (opened) => {
    for (const [label, message] of opened.problems) problems.push(`${label}: ${message}`);
    const size = Math.max(0, ...[...opened.readers.values()].flatMap((reader) => reader.summary().filter(({ kind }) => kind === "all").map(({ rows }) => rows)));
    if (!own && size > copyLimit) return;
    const { rows } = orderedDrift(compareWith(pipeline, opened, ownReference(chain, set), true));
    for (const row of rows) keep(row, set);
  });
}

function probeOf({ cells }: DriftRow, { skill, split }: ProbeSet, labels: readonly string[]): DatasetProbe {
  const byLabel = new Map(cells.map((cell) => [cell.label, cell]));
  const inOrder = labels.map((label) => byLabel.get(label));
  return {
    skill,
    split,
    changes: inOrder.map((cell) => (cell?.delta == null ? null : encodeNumber(-cell.delta))),
    beyondNoise: inOrder.map((cell) => cell?.delta != null && !cell.withinNoise),
    checks: inOrder.map((cell) => (cell?.correct == null ? "not-run" : cell.correct ? "passed" : "failed")),
  };
}

function isInside(path: string, root: string): boolean {
  const way = relative(root, path);
  return way !== "" && way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}
