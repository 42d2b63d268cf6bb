import { relative, sep } from "node:path";
import { probeSetsOf, type ProbeSet } from "../../domain/drift/driftSelection.ts";
import { replayRuns } from "../../domain/run/replayRuns.ts";
import type { PipelineView } from "../workspaceModel.ts";

/** What a file is to one pipeline. */
export interface FileRole {
  view: PipelineView;
  /** The probe sets whose file it is. */
  probes: ProbeSet[];
  /** True where these are not the file's own: its rows may be copies of them. */
  copies?: boolean;
  /** The stages that train on it, or whose buffer draws from it. */
  stages: string[];
}

/** The pipelines that name a file, those with runs first, then the nearest. Empty: the file is none of ours. */
export function rolesOf(path: string, views: readonly PipelineView[]): FileRole[] {
  return views
    .flatMap((view): FileRole[] => {
      const { shown: pipeline, chain } = view;
      if (pipeline === null || chain === null) return [];
      const probes = pipeline.skills.flatMap((skill) => probeSetsOf(skill).filter(({ split }) => sameFile(path, split === "ood" ? skill.probes.ood : skill.probes.id)));
      const stages = new Set(pipeline.stages.filter(({ data }) => sameFile(path, data ?? undefined)).map(({ id }) => id));
      for (const { spec } of replayRuns(chain)) for (const origin of spec.replay?.from ?? []) if (sameFile(path, origin.data)) stages.add(origin.stage);
      return probes.length > 0 || stages.size > 0 ? [{ view, probes, stages: [...stages] }] : [];
    })
    .sort((a, b) => Number(b.view.listing.runs.length > 0) - Number(a.view.listing.runs.length > 0) || distance(path, a.view) - distance(path, b.view));
}

/** Changes exactly when what is known about the rows may have changed: not with every step of a live run. */
export function knowledgeKey(roles: readonly FileRole[]): string {
  return JSON.stringify(roles.map((role) => [scoresKey(role), role.stages, replayKey(role)]));
}

/** Changes exactly when the scores of a file's probes must be read again. A live run draws replay rows far more often. */
export function scoresKey({ view, probes }: FileRole): string {
  const checkpoints = view.chain?.checkpoints.map(({ label, status, traces, run }) => [label, status, probes.map(({ skill, split }) => traces[`${skill}.${split}`]), run?.id, run?.state.attempt]);
  return JSON.stringify([view.uri.fsPath, probes, view.shown?.stages.map(({ id, from }) => [id, from]), checkpoints]);
}

function replayKey({ view: { chain } }: FileRole): unknown {
  return chain === null ? [] : replayRuns(chain).map(({ id, state }) => [id, state.attempt, state.status, state.ledger.length]);
}

function distance(path: string, { shown }: PipelineView): number {
  return shown === null ? Infinity : relative(shown.root, path).split(sep).length;
}

/** Windows and macOS give the same file with other letters, such as the drive's. */
export function sameFile(path: string, named: string | undefined): boolean {
  if (named === undefined) return false;
  return path === named || (process.platform === "win32" && relative(named, path) === "");
}
