import { scoredCheckpoints, startReference, withProbeSet } from "../../domain/drift/driftSelection.ts";
import { probeSets } from "../../domain/report/scoredChain.ts";
import { formatPlural } from "../../domain/format.ts";
import type { DriftSelection } from "../../protocol/webview.ts";
import type { TraceStore } from "../../storage/traces/traceStore.ts";
import { AppError } from "../../util/errors.ts";
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
  if (pipeline === null || chain === null) throw new AppError("bad-pipeline", `${view.label} has errors: see the Problems view.`);
  const notes: string[] = [];
  if (link.run !== undefined) {
    const { run: wanted } = link;
    const run = view.listing.runs.find(({ id }) => id === wanted);
    if (run === undefined) throw new AppError("not-found", `There is no run ${JSON.stringify(wanted)} of ${view.label} here: run folders are not part of a repository, ask for it or run the stage yourself.`);
    const shown = chain.checkpoints.find((checkpoint) => checkpoint.stage === run.stage);
    if (shown?.run?.id !== run.id) notes.push(`Run ${run.id} is not what ${shown?.label ?? run.stage} stands for now${shown?.run == null ? "" : `: that is ${shown.run.id}`}. What is shown is the chain as it is now.`);
  }
  // The first of a skill's sets where the link names none; unknown names are refused here.
  if (link.skill !== undefined || link.split !== undefined) probeSets(pipeline, link.skill, link.split);
  const asked = { pipeline: view.uri.fsPath, skill: link.skill ?? null, split: link.split ?? null, reference: link.checkpoint ?? null, row: null, token: null };
  const { resolved } = resolveSelection(views, asked);
  if (resolved === null) throw new AppError("not-found", `${view.label} has no skills to show.`);
  const set = { skill: resolved.skill, split: resolved.split };
  const scored = scoredCheckpoints(chain, set);
  if (link.checkpoint !== undefined && link.checkpoint !== startReference && !scored.some(({ label }) => label === link.checkpoint)) {
    const known = scored.map(({ label }) => label).join(", ");
    throw new AppError("not-found", `${link.checkpoint} has not been scored on ${set.skill}.${set.split}${known === "" ? ": run a stage first" : `: ${known} have`}.`);
  }
  if (link.row !== undefined) mustHaveRow(link.row, chain, set, await traces());
  return { selection: { ...asked, skill: set.skill, split: set.split, reference: link.checkpoint ?? null, row: link.row ?? null }, notes };
}

/** The pipeline at a path. One outside of every workspace folder is refused before anything is looked at. */
function viewOf(pipeline: string, views: readonly PipelineView[], folders: readonly Folder[]): PipelineView {
  if (folders.length === 0) throw new AppError("not-found", "Open the folder of the project first: the link names a pipeline in it.");
  const [first = "", ...rest] = pipeline.split("/");
  const named = folders.filter(({ name }) => name === first).map(({ path }) => joinPath(path, rest.join("/")));
  const candidates = isAbsolutePath(pipeline) ? [joinPath(pipeline, ".")] : [...named, ...folders.map(({ path }) => joinPath(path, pipeline))];
  const inside = candidates.filter((candidate) => folders.some(({ path }) => isInside(candidate, path)));
  if (inside.length === 0) throw new AppError("not-found", `The link leads to ${JSON.stringify(pipeline)}, which is outside of this workspace: open its folder first.`);
  const view = views.find(({ uri }) => inside.includes(joinPath(uri.fsPath, ".")));
  if (view !== undefined) return view;
  throw new AppError("not-found", `There is no pipeline ${JSON.stringify(pipeline)} in this workspace${views.length === 0 ? "" : `: it has ${views.map(({ label }) => label).join(", ")}`}.`);
}

function isInside(path: string, folder: string): boolean {
  const root = joinPath(folder, ".");
  return path.startsWith(root.endsWith("/") || root.endsWith("\\") ? root : root + (root.includes("\\") ? "\\" : "/"));
}

function mustHaveRow(row: number, chain: NonNullable<PipelineView["chain"]>, set: { skill: string; split: "id" | "ood" }, store: TraceStore): void {
  withProbeSet(chain, set, (path) => store.open(path), ({ readers, problems }) => {
    const probes = [...readers.values()].map((reader) => reader.probes());
    const probe = probes.flatMap((list) => list.find((one) => one.row === row) ?? []).at(0);
    if (probe?.status === "skipped") throw new AppError("not-found", `Row ${row} of ${set.skill}.${set.split} was not scored: ${probe.reason ?? "it was skipped."}`);
    if (probe !== undefined) return;
    for (const problem of probes.length === 0 ? problems.values() : []) throw new AppError("trace-unreadable", problem);
    throw new AppError("not-found", probes.length === 0 ? `No checkpoint has scored ${set.skill}.${set.split} yet: run a stage first.` : `${set.skill}.${set.split} has no row ${row}: it has ${formatPlural(probes[0]?.length ?? 0, "row")}, counted from 0.`);
  });
}
