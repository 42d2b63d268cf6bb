import { fromName, type ChainCheckpoint, type ChainRun } from "../domain/run/chain.ts";
import { readableCheck } from "../domain/run/checkedFlag.ts";
import { raisedAt } from "../domain/run/flagEpisode.ts";
import { flagText, flagTitle } from "../domain/run/flagText.ts";
import { seedLabel } from "../domain/run/seedOf.ts";
import { formatBytes, formatPlural } from "../domain/format.ts";
import type { Stage } from "../domain/pipeline/pipelineModel.ts";
import type { FlagRecord, RunStatus } from "../domain/run/runState.ts";
import type { Split } from "../protocol/runSpec.ts";
import type { TreeContext } from "../ids.ts";
import { t } from "../util/l10n.ts";
import { joinPath } from "../util/paths.ts";
import { factLines, factsOf, fullHover } from "./flags/flagFacts.ts";
import type { PipelineView } from "./workspaceModel.ts";
import { emptyQueue, queueNote, queuePosition, type QueueView } from "./runQueue.ts";
import { endText, isLive, isResumable, runLine, statusWords, whereLines } from "./runWords.ts";

/** What a command needs to know about the item it was called on. */
export interface NodeTarget {
  file: string;
  stage?: string;
  run?: string;
  skill?: string;
  split?: Split;
  /** A probe of the set. */
  row?: number;
  /** A target of `seesaw.yaml`. */
  on?: string;
  /** A checkpoint of the run. */
  step?: number;
}

/** One item of the Stages tree, as data. */
export interface StageNode {
  /** Stable, so that the tree keeps what is open. */
  id: string;
  label: string;
  description: string;
  /** Sentences, one a line. */
  tooltip: string;
  /** The same as Markdown of our own making, where there is more to it than sentences; made when somebody points at it. */
  hover?: () => Promise<string>;
  icon: { name: string; color?: string };
  context: TreeContext;
  children: StageNode[];
  expanded: boolean;
  target: NodeTarget;
  /** What a click does. */
  opens: "drift" | "pipeline" | "addTarget" | "checkTarget" | "logIn" | "rayToken" | null;
}

/** The tree of all pipelines. With one pipeline its stages are the top level. */
export function stageNodes(views: readonly PipelineView[], queue: QueueView = emptyQueue): StageNode[] {
  const [only] = views;
  if (views.length === 1 && only !== undefined) return pipelineChildren(only, queue);
  return views.map((view) => {
    const errors = view.diagnostics.filter((diagnostic) => diagnostic.severity === "error").length;
    return node(view, view.label, {
      label: view.shown?.name ?? view.label,
      description: errors > 0 ? formatPlural(errors, "error") : view.label,
      tooltip: view.uri.fsPath,
      icon: { name: "list-tree" },
      context: "pipeline",
      children: pipelineChildren(view, queue),
      expanded: true,
    });
  });
}

function pipelineChildren(view: PipelineView, queue: QueueView): StageNode[] {
  const nodes: StageNode[] = [];
  if (view.pipeline === null) {
    const [first] = view.diagnostics.filter((diagnostic) => diagnostic.severity === "error");
    const place = first === undefined ? "" : t("line {0}", first.range.line);
    nodes.push(node(view, "invalid", { label: t("seesaw.yaml has errors"), description: place, tooltip: first?.message ?? "", icon: error, context: "note", opens: "pipeline" }));
  }
  for (const stage of view.shown?.stages ?? []) nodes.push(stageNode(view, stage, queue));
  for (const run of view.listing.unreadable) {
    nodes.push(node(view, run.id, { label: run.id, description: t("cannot be read"), tooltip: run.message, icon: { name: "warning", color: "list.warningForeground" }, context: "note" }));
  }
  return nodes;
}

function stageNode(view: PipelineView, stage: Stage, queue: QueueView): StageNode {
  const runs = view.listing.runs.filter((run) => run.stage === stage.id);
  const newest = view.chain?.newest[stage.id] ?? null;
  const checkpoint = view.chain?.checkpoints.find((one) => one.stage === stage.id) ?? null;
  const flags = newest === null ? [] : newest.state.flags.filter((flag) => flag.state !== "recovered");
  const raised = flags.filter((flag) => flag.state !== "not-measurable");
  const live = newest !== null && isLive(newest.state.status);
  const target = { stage: stage.id, ...(newest === null ? {} : { run: newest.id }) };
  const stale = !live && checkpoint?.status === "stale" && newest?.id === checkpoint.run?.id;
  const position = live ? null : queuePosition(queue, view.uri.fsPath, stage.id);
  const words = position !== null ? queuedWords(position, queue) : newest === null ? t("not run yet") : stale ? t("stale · {0}", runLine(newest.state)) : runLine(newest.state);
  const skills = [...new Set(raised.map((flag) => flag.skill))];
  return node(view, stage.id, {
    label: stage.id,
    description: raised.length === 0 || position !== null ? words : `⚑ ${skills.join(", ")} · ${words}`,
    tooltip: [stageTooltip(stage, newest, checkpoint), ...(position === null ? [] : [queue.paused ?? (position === 1 ? t("Starts when the present run is done.") : t("Starts when the present run and {0} before it are done.", formatPlural(position - 1, "queued stage"))), queueNote()])].join("\n"),
    icon: position !== null ? { name: queue.paused === null ? "watch" : "debug-pause" } : newest === null ? { name: "circle-large-outline" } : stale ? { name: "history" } : statusIcon(newest.state.status),
    context: live ? "stage.live" : position === null ? "stage" : queue.paused === null ? "stage.queued" : "stage.paused",
    target,
    children: [
      ...(newest === null ? [] : raised.map((flag) => flagNode(view, stage, newest, flag))),
      ...runs.map((run) => runNode(view, run, run.id === checkpoint?.run?.id ? checkpoint.label : null)),
    ],
    expanded: live || runs.some((run) => isLive(run.state.status)),
  });
}

function flagNode(view: PipelineView, stage: Stage, run: ChainRun, flag: FlagRecord): StageNode {
  const facts = factsOf(view, run, flag);
  const confirmed = flag.state === "confirmed";
  const checked = readableCheck(run, flag.skill);
  return node(view, `${stage.id}/flag/${flag.id}`, {
    label: flagTitle(flag),
    description: [t("since step {0}", raisedAt(run, flag.id) ?? flag.step), ...(checked === null ? [] : [checked.found.confirmed ? t("confirmed on {0}", formatPlural(checked.found.n, "prompt")) : t("not confirmed on {0}", formatPlural(checked.found.n, "prompt"))])].join(" · "),
    tooltip: `${flagText(flag, stage.id)}\n${factLines(facts)}`,
    hover: () => fullHover([flagText(flag, stage.id)], view, run, flag),
    icon: { name: confirmed ? "arrow-down" : "warning", color: confirmed ? "list.errorForeground" : "list.warningForeground" },
    context: "note",
    target: { stage: stage.id, run: run.id, skill: flag.skill, split: flag.split },
    opens: "drift",
  });
}

function runNode(view: PipelineView, run: ChainRun, label: string | null): StageNode {
  const { state } = run;
  const target = { stage: run.stage, run: run.id };
  const children = [...state.checkpoints].reverse().map((checkpoint) =>
    node(view, `${run.id}/${checkpoint.step}`, {
      label: checkpoint.final && label !== null ? `${label} · ${t("step {0}", checkpoint.step)}` : t("step {0}", checkpoint.step),
      description: `${checkpoint.kind === "adapter" ? `${t("adapter")} · ` : ""}${formatBytes(checkpoint.bytes)}`,
      tooltip: joinPath(run.dir, checkpoint.path),
      icon: { name: checkpoint.final ? "milestone" : "git-commit" },
      context: state.remote === null ? "checkpoint" : "checkpoint.remote",
      target: { ...target, step: checkpoint.step },
    }),
  );
  for (const [index, warning] of state.warnings.entries()) {
    if (warning.severity === "info") continue;
    const text = [warning.message, warning.fix].filter(Boolean).join("\n");
    children.push(node(view, `${run.id}/warning/${index}`, { label: warning.message, tooltip: text, icon: { name: "warning", color: "list.warningForeground" }, context: "note", target }));
  }
  return node(view, run.id, {
    label: [startTime(run), view.pipeline === null ? null : seedLabel(run, view.pipeline)].filter(Boolean).join(" · "),
    description: runLine(state),
    tooltip: [run.id, statusWords[state.status], endText(state), ...whereLines(state)].filter(Boolean).join("\n"),
    icon: statusIcon(state.status),
    context: isLive(state.status) ? "run.live" : isResumable(state.status) ? "run.resumable" : "run",
    children,
    target,
  });
}

function stageTooltip(stage: Stage, newest: ChainRun | null, checkpoint: ChainCheckpoint | null): string {
  const lines = [t("{0}: {1} from {2}", stage.id, stage.recipe, fromName(stage) ?? t("the base model")), ...(stage.data === null ? [] : [t("data {0}", stage.data)])];
  if (newest !== null) lines.push(t("newest run {0}: {1}", newest.id, runLine(newest.state)));
  const reason = newest === null ? null : endText(newest.state);
  if (reason !== null) lines.push(reason);
  if (newest !== null) lines.push(...whereLines(newest.state));
  if (checkpoint?.reason != null && newest !== null) lines.push(checkpoint.reason);
  return lines.join("\n");
}

/** `queued · position 1 · paused`. */
export function queuedWords(position: number, queue: QueueView): string {
  const words = t("queued · position {0}", position);
  return queue.paused === null ? words : t("{0} · paused", words);
}

const error = { name: "error", color: "list.errorForeground" };

/** The icon of a status: its shape says it, its colour only helps. */
export function statusIcon(status: RunStatus): StageNode["icon"] {
  switch (status) {
    case "queued":
      return { name: "watch" };
    case "unreachable":
      return { name: "debug-disconnect", color: "list.warningForeground" };
    case "starting":
    case "running":
    case "stopping":
    case "orphan":
      return { name: "loading~spin" };
    case "done":
      return { name: "pass", color: "testing.iconPassed" };
    case "paused":
      return { name: "debug-pause", color: "list.warningForeground" };
    case "failed":
    case "out-of-memory":
      return error;
    case "killed":
    case "cancelled":
      return { name: "circle-slash" };
    case "lost":
    case "unknown":
      return { name: "question", color: "list.warningForeground" };
  }
}

/** The icon of a live run within text: it waits, nobody answers, or it is at work. */
export function liveIcon(status: RunStatus): string {
  const { name } = statusIcon(status);
  return name === "loading~spin" ? "sync~spin" : name;
}

/** `2026-11-30 02:18 UTC`, from the run's id. */
function startTime(run: ChainRun): string {
  return new Date(run.spec.created * 1000).toISOString().slice(0, 16).replace("T", " ");
}

type NodeParts = Partial<Omit<StageNode, "target">> & Pick<StageNode, "label" | "icon" | "context"> & { target?: Omit<NodeTarget, "file"> };

function node(view: PipelineView, id: string, item: NodeParts): StageNode {
  const file = view.uri.fsPath;
  return { description: "", tooltip: "", children: [], expanded: false, opens: null, ...item, id: `${file}#${id}`, target: { file, ...item.target } };
}
