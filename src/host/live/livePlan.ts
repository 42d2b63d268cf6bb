import { probeSetsOf } from "../../domain/drift/driftSelection.ts";
import type { ScoreRequest } from "../../inference/scorer.ts";
import { AppError } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";
import { joinPath } from "../../util/paths.ts";
import type { PipelineView } from "../workspaceModel.ts";

export interface PlannedCheckpoint {
  label: string;
  /** Null for the base. */
  stage: string | null;
  folder: string;
  /** The one it is compared with, its stage's start; null: none is here. */
  against: string | null;
  /** Why its weights are not of the newest chain; null: they are. */
  stale: string | null;
}

/** The checkpoints of a chain that are on this disk, and what else scoring a row under them takes. */
export interface LivePlan {
  checkpoints: PlannedCheckpoint[];
  graphs: string;
  topK: number;
  /** Recorded traces that may know the noise of scoring: of the file's own probe set, else of any. One for each checkpoint. */
  traces: string[];
}

/** What a file is scored under. AppError("not-found") when no pipeline is meant. */
export function planFor(views: readonly PipelineView[], file: string): LivePlan {
  const view = viewOf(views, file);
  const [pipeline, chain] = [view?.shown ?? null, view?.chain ?? null];
  if (pipeline === null || chain === null) throw new AppError("not-found", t("There is no pipeline with checkpoints for this file. Open the folder with its seesaw.yaml."));
  const there = chain.checkpoints.flatMap(({ label, stage, path, status, reason }) => {
    const folder = stage === null ? pipeline.base : path;
    if (folder === null) return [];
    const from = pipeline.stages.find(({ id }) => id === stage)?.from ?? null;
    const start = chain.checkpoints.find((one) => one.stage === from)?.label ?? null;
    return [{ label, stage, folder, against: stage === null ? null : start, stale: status === "stale" ? reason : null }];
  });
  const labels = new Set(there.map(({ label }) => label));
  const sets = pipeline.skills.flatMap((skill) => probeSetsOf(skill).map(({ split }) => ({ key: `${skill.id}.${split}`, own: (split === "ood" ? skill.probes.ood : skill.probes.id) === file })));
  const wanted = sets.some(({ own }) => own) ? sets.filter(({ own }) => own) : sets;
  return {
    checkpoints: there.map((one) => ({ ...one, against: one.against !== null && labels.has(one.against) ? one.against : null })),
    graphs: joinPath(pipeline.root, ".seesaw/cache/graphs"),
    topK: pipeline.stages[0]?.probe.top_k ?? 8,
    traces: chain.checkpoints.flatMap(({ traces }) => wanted.flatMap(({ key }) => traces[key] ?? []).slice(0, 1)),
  };
}

/** One row under the plan's checkpoints. */
export function requestFor({ checkpoints, graphs, topK }: LivePlan, row: string): ScoreRequest {
  return { row, checkpoints: checkpoints.map(({ label, folder }) => ({ label, folder })), graphs, topK };
}

/** True for a file with probes of a pipeline. */
export function isProbeFile(views: readonly PipelineView[], file: string): boolean {
  return views.some(({ shown }) => shown?.skills.some(({ probes }) => probes.id === file || probes.ood === file) ?? false);
}

/** The pipeline that probes or trains with a file, else the one in whose folder it lies, the innermost first. */
function viewOf(views: readonly PipelineView[], file: string): PipelineView | undefined {
  const usable = views.filter(({ shown }) => shown !== null);
  const naming = usable.find((view) => isProbeFile([view], file)) ?? usable.find(({ shown }) => shown?.stages.some(({ data }) => data === file));
  const around = usable.filter(({ shown }) => file.startsWith(joinPath(shown?.root ?? "", "/"))).sort((a, b) => (b.shown?.root.length ?? 0) - (a.shown?.root.length ?? 0));
  return naming ?? around[0] ?? (usable.length === 1 ? usable[0] : undefined);
}
