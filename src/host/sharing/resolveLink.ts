import { scoredCheckpoints, startReference, withProbeSet } from "../../domain/drift/driftSelection.ts";
import { probeSets } from "../../domain/report/scoredChain.ts";
import { formatPlural } from "../../domain/format.ts";
import type { DriftSelection } from "../../protocol/webview.ts";
import type { TraceStore } from "../../storage/traces/traceStore.ts";
import { AppError } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";
import { isAbsolutePath, joinPath } from "../../util/paths.ts";
import { resolveSelection } from "../drift/driftChoices.ts";
import type { PipelineView } from "../workspaceModel.ts";
import type { DriftLink } from "./link.ts";

/** Where a link leads. */
export interface LinkTarget {
  selection: Partial<DriftSelection>;
  /** What is shown instead of what the link was made of, in sentences. */
  notes: string[];
}

/** A workspace folder: links name pipelines from here. */
export interface Folder {
  name: string;
  path: string;
}

/**
 * Finds what a link names among the pipelines of the workspace. Nothing is opened that the workspace does not show anyway;
 * what does not exist is an AppError("not-found") with a sentence.
 */
export async function resolveLink(link: DriftLink, views: readonly PipelineView[], folders: readonly Folder[], traces: () => Promise<TraceStore>): Promise<LinkTarget> {
  const view = viewOf(link.pipeline, views, folders);
  const { shown: pipeline, chain } = view;
  if (pipeline === null || chain === null) throw new AppError("bad-pipeline", t("{0} has errors: see the Problems view.", view.label));
  const notes: string[] = [];
  if (link.run !== undefined) {
    const { run: wanted } = link;
    const run = view.listing.runs.find(({ id }) => id === wanted);
    if (run === undefined) throw new AppError("not-found", t("There is no run {0} of {1} here: run folders are not part of a repository, ask for it or run the stage yourself.", JSON.stringify(wanted), view.label));
    const shown = chain.checkpoints.find((checkpoint) => checkpoint.stage === run.stage);
    if (shown?.run?.id !== run.id) notes.push(shown?.run == null ? t("Run {0} is not what {1} stands for now. What is shown is the chain as it is now.", run.id, shown?.label ?? run.stage) : t("Run {0} is not what {1} stands for now: that is {2}. What is shown is the chain as it is now.", run.id, shown.label, shown.run.id));
  }
  // The first of a skill's sets where the link names none; unknown names are refused here.
  if (link.skill !== undefined || link.split !== undefined) probeSets(pipeline, link.skill, link.split);
  const asked = { pipeline: view.uri.fsPath, skill: link.skill ?? null, split: link.split ?? null, reference: link.checkpoint ?? null, row: null, token: null };
  const { resolved } = resolveSelection(views, asked);
  if (resolved === null) throw new AppError("not-found", t("{0} has no skills to show.", view.label));
  const set = { skill: resolved.skill, split: resolved.split };
  const scored = scoredCheckpoints(chain, set);
  if (link.checkpoint !== undefined && link.checkpoint !== startReference && !scored.some(({ label }) => label === link.checkpoint)) {
    const known = scored.map(({ label }) => label).join(", ");
    throw new AppError("not-found", known === "" ? t("{0} has not been scored on {1}: run a stage first.", link.checkpoint, `${set.skill}.${set.split}`) : t("{0} has not been scored on {1}: {2} have.", link.checkpoint, `${set.skill}.${set.split}`, known));
  }
  if (link.row !== undefined) mustHaveRow(link.row, chain, set, await traces());
  return { selection: { ...asked, skill: set.skill, split: set.split, reference: link.checkpoint ?? null, row: link.row ?? null }, notes };
}

/** The pipeline at a path. One outside of every workspace folder is refused before anything is looked at. */
function viewOf(pipeline: string, views: readonly PipelineView[], folders: readonly Folder[]): PipelineView {
  if (folders.length === 0) throw new AppError("not-found", t("Open the folder of the project first: the link names a pipeline in it."));
  const [first = "", ...rest] = pipeline.split("/");
  const named = folders.filter(({ name }) => name === first).map(({ path }) => joinPath(path, rest.join("/")));
  const candidates = isAbsolutePath(pipeline) ? [joinPath(pipeline, ".")] : [...named, ...folders.map(({ path }) => joinPath(path, pipeline))];
  const inside = candidates.filter((candidate) => folders.some(({ path }) => isInside(candidate, path)));
  if (inside.length === 0) throw new AppError("not-found", t("The link leads to {0}, which is outside of this workspace: open its folder first.", JSON.stringify(pipeline)));
  const view = views.find(({ uri }) => inside.includes(joinPath(uri.fsPath, ".")));
  if (view !== undefined) return view;
  throw new AppError("not-found", views.length === 0 ? t("There is no pipeline {0} in this workspace.", JSON.stringify(pipeline)) : t("There is no pipeline {0} in this workspace: it has {1}.", JSON.stringify(pipeline), views.map(({ label }) => label).join(", ")));
}

function isInside(path: string, folder: string): boolean {
  const root = joinPath(folder, ".");
  return path.startsWith(root.endsWith("/") || root.endsWith("\\") ? root : root + (root.includes("\\") ? "\\" : "/"));
}

function mustHaveRow(row: number, chain: NonNullable<PipelineView["chain"]>, set: { skill: string; split: "id" | "ood" }, store: TraceStore): void {
  withProbeSet(chain, set, (path) => store.open(path), ({ readers, problems }) => {
    const probes = [...readers.values()].map((reader) => reader.probes());
    const probe = probes.flatMap((list) => list.find((one) => one.row === row) ?? []).at(0);
    if (probe?.status === "skipped") throw new AppError("not-found", t("Row {0} of {1} was not scored: {2}", row, `${set.skill}.${set.split}`, probe.reason ?? t("it was skipped when scored")));
    if (probe !== undefined) return;
    for (const problem of probes.length === 0 ? problems.values() : []) throw new AppError("trace-unreadable", problem);
    throw new AppError("not-found", probes.length === 0 ? t("No checkpoint has scored {0} yet: run a stage first.", `${set.skill}.${set.split}`) : t("{0} has no row {1}: it has {2}, counted from 0.", `${set.skill}.${set.split}`, row, formatPlural(probes[0]?.length ?? 0, "row")));
  });
}
