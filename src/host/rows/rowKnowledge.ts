import type { DriftRow } from "../../domain/drift/drift.ts";
import { compareWith, orderedDrift, ownReference, withProbeSet, type Comparison, type OpenedSet, type ProbeSet } from "../../domain/drift/driftSelection.ts";
import { columnsOf, probeAt } from "../../domain/drift/traceData.ts";
import { filmstrip, type Filmstrip } from "../../domain/drift/filmstrip.ts";
import { ReplayMembership, type ReplayRecord } from "../../domain/rows/membership.ts";
import type { Chain } from "../../domain/run/chain.ts";
import { replayRuns } from "../../domain/run/replayRuns.ts";
import type { ReplaySpec } from "../../protocol/runSpec.ts";
import type { TraceReader, TraceStore } from "../../storage/traces/traceStore.ts";
import { messageOf } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";
import type { PipelineView } from "../workspaceModel.ts";
import { rolesOf, sameFile, scoresKey, type FileRole } from "./rowRoles.ts";
import { worstTokens, type WorstToken } from "./worstToken.ts";

/** A probe set with more rows is only compared with its own file: any other is most likely not a copy of it. */
const copyLimit = 5000;

export interface KnowledgeHost {
  views(): readonly PipelineView[];
  traces(): Promise<TraceStore>;
  ledgers(folders: readonly { dir: string; run: string; stage: string }[]): Promise<{ records: ReplayRecord[]; problems: string[] }>;
}

/** A row as a probe of one set. */
export interface KnownProbe {
  pipeline: string;
  set: ProbeSet;
  /** What it is compared with: `start`, or a label. */
  against: string;
  row: DriftRow;
}

/** One run that replays, with the spec its buffer was built by. */
export interface ReplayRun {
  spec: ReplaySpec;
  record: ReplayRecord;
}

/** What is known about the rows of one file. The same answers as `seesaw replay` and `seesaw drift`, from the same code. */
export interface RowKnowledge {
  role: FileRole;
  /** Whose replay and whose scores these are, where several pipelines name the file; else null. */
  sources: { replay: string; scores: string } | null;
  membership: ReplayMembership;
  /** The runs whose buffers draw from this very file. */
  replay: ReplayRun[];
  /** What `probes` and what follows was made from: while it is the same, the traces are not read again. */
  scoresKey: string;
  /** By full row hash. */
  probes: ReadonlyMap<string, KnownProbe[]>;
  /** Rows that were not scored, with the reason, by full row hash. */
  skipped: ReadonlyMap<string, string>;
  /** True when the file's probes were scored: then a row that is not among them is new or edited. */
  scored: boolean;
  scoreProblems: string[];
  problems: string[];
  /** The token of each probe that fell most, beyond the noise; null where none did. */
  worst(probes: readonly KnownProbe[]): (WorstToken | null)[];
  film(probe: KnownProbe): Filmstrip | null;
}

/** Null: the file belongs to no pipeline of the workspace. What cannot be read is a problem, not the end. `before`: what was known. `roles`: what the file is to the pipelines. */
export async function readKnowledge(path: string, host: KnowledgeHost, before: RowKnowledge | null = null, roles: readonly FileRole[] = rolesOf(path, host.views())): Promise<RowKnowledge | null> {
  const role = roles.find(hasReplay) ?? roles[0];
  if (role?.view.chain == null || role.view.shown === null) return null;
  const replayed = await readReplay(role, path, role.view.chain, host);
  const scoredRole = roles.find(hasScores);
  const sources = roles.length > 1 ? { replay: role.view.label, scores: (scoredRole ?? role).view.label } : null;
  const scores = await scoresOf(scoredRole, host, before);
  return { role, sources, ...replayed, ...scores, problems: [...replayed.problems, ...scores.scoreProblems] };
}

async function scoresOf(role: FileRole | undefined, host: KnowledgeHost, before: RowKnowledge | null): Promise<Probes> {
  const key = role === undefined ? "" : scoresKey(role);
  // What could not be read may be readable by now.
  if (before?.scoresKey === key && before.scoreProblems.length === 0) {
    const { probes, skipped, scored, scoreProblems, worst, film } = before;
    return { scoresKey: key, probes, skipped, scored, scoreProblems, worst, film };
  }
  if (role === undefined) return noScores(key);
  try {
    return await readProbes(role, await host.traces());
  } catch (error) {
    return { ...noScores(key), scoreProblems: [t("Drift is not shown: {0}", messageOf(error))] };
  }
}

function noScores(key: string): Probes {
  return { scoresKey: key, probes: new Map(), skipped: new Map(), scored: false, scoreProblems: [], worst: (probes) => probes.map(() => null), film: () => null };
}

export function hasScores({ view, probes }: FileRole): boolean {
  return view.chain?.checkpoints.some(({ traces }) => probes.some(({ skill, split }) => traces[`${skill}.${split}`] !== undefined)) === true;
}

function hasReplay({ view }: FileRole): boolean {
  return view.chain !== null && replayRuns(view.chain).some(({ spec }) => spec.replay != null);
}

async function readReplay({ view }: FileRole, path: string, chain: Chain, host: KnowledgeHost): Promise<Pick<RowKnowledge, "membership" | "replay" | "problems">> {
  const runs = replayRuns(chain);
  const { records, problems } = await host.ledgers(runs.map(({ dir, id, stage }) => ({ dir, run: id, stage })));
  const replay = records.flatMap((record): ReplayRun[] => {
    const spec = runs.find(({ id }) => id === record.run)?.spec.replay ?? null;
    return spec === null || !spec.from.some(({ data }) => sameFile(path, data)) ? [] : [{ spec, record }];
  });
  return { membership: new ReplayMembership(records), replay, problems: problems.map((problem) => `${view.label}: ${problem}`) };
}

type Probes = Pick<RowKnowledge, "scoresKey" | "probes" | "skipped" | "scored" | "scoreProblems" | "worst" | "film">;

async function readProbes(role: FileRole, traces: TraceStore): Promise<Probes> {
  const { view, probes: sets } = role;
  const { shown: pipeline, chain } = view;
  const key = scoresKey(role);
  if (pipeline === null || chain === null) return noScores(key);
  const probes = new Map<string, KnownProbe[]>();
  const skipped = new Map<string, string>();
  const problems: string[] = [];
  /** Opens the traces for one answer: the store behind keeps those that are asked for again and again. */
  const use = <T>(set: ProbeSet, answer: (comparison: Comparison, opened: OpenedSet<TraceReader>) => T): T =>
    withProbeSet(chain, set, (path) => traces.open(path), (opened) => answer(compareWith(pipeline, opened, ownReference(chain, set), true), opened));
  let scored = false;
  for (const set of sets) {
    use(set, (comparison, opened) => {
      for (const [label, message] of opened.problems) problems.push(`${label}: ${message}`);
      if (role.copies === true && [...opened.readers.values()].some((reader) => columnsOf(reader).rows.length > copyLimit)) return;
      scored ||= opened.readers.size > 0 && role.copies !== true;
      for (const row of orderedDrift(comparison).rows) {
        // Copies of a row have the same scores: the first stands for them.
        const known = probes.get(row.hash) ?? [];
        if (!known.some((one) => one.set === set)) probes.set(row.hash, [...known, { pipeline: view.uri.fsPath, set, against: comparison.against, row }]);
      }
      for (const reader of opened.readers.values()) {
        const { rows, scored: known } = columnsOf(reader);
        const places = Array.from(known.keys()).filter((place) => known[place] === 0);
        for (const probe of places.map((place) => probeAt(reader, rows[place] as number))) if (probe !== null) skipped.set(probe.hash, probe.reason ?? t("it was skipped when scored"));
      }
    });
    // Reading a set runs without a pause: let the editor breathe between them.
    await new Promise((resolve) => setImmediate(resolve));
  }
  return {
    scoresKey: key,
    probes,
    skipped,
    scored,
    scoreProblems: problems,
    worst(some) {
      const found = new Map<KnownProbe, WorstToken | null>();
      for (const set of sets) {
        const own = some.filter((probe) => probe.set === set);
        if (own.length > 0) use(set, (comparison) => worstTokens(comparison, own.map(({ row }) => row)).forEach((token, index) => found.set(own[index] as KnownProbe, token)));
      }
      return some.map((probe) => found.get(probe) ?? null);
    },
    film: ({ set, row }) => use(set, ({ reference, compared }) => filmstrip(reference, compared, row.hash)),
  };
}
