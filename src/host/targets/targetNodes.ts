import type { Target } from "../../domain/pipeline/pipelineModel.ts";
import { clockText } from "../../domain/run/remoteText.ts";
import { loginHost, stagesOn, targetAddress } from "../../domain/targets/targetList.ts";
import { reportParts, reportSummary, type ReportPart } from "../../domain/targets/targetReport.ts";
import type { TreeContext } from "../../ids.ts";
import type { TargetReport } from "../../protocol/remote.ts";
import { t } from "../../util/l10n.ts";
import type { StageNode } from "../stageNodes.ts";
import type { PipelineView } from "../workspaceModel.ts";

/** What is known of one target in this window. Times in seconds since 1970. */
export type TargetState =
  | { kind: "unchecked" }
  /** `report`: what was known before, shown until there is an answer. */
  | { kind: "checking"; report: TargetReport | null }
  | { kind: "checked"; report: TargetReport; at: number }
  /** No report at all: a defect of ours, or a Python that cannot be started. */
  | { kind: "failed"; message: string; at: number };

export type TargetStates = (file: string, target: string) => TargetState;

/** The Targets view: every target of every pipeline. With one pipeline its targets are the top level. `now` in seconds since 1970. */
export function targetNodes(views: readonly PipelineView[], states: TargetStates, now: number, trusted: boolean): StageNode[] {
  const known = views.filter(({ shown }) => shown !== null);
  const [only] = known;
  if (known.length === 1 && views.length === 1 && only !== undefined) return targetsOf(only, states, now, trusted);
  return views.map((view) => ({ ...node(view, "", { label: view.shown?.name ?? view.label, description: view.label, tooltip: view.uri.fsPath, icon: { name: "list-tree" }, context: "pipeline" }), children: targetsOf(view, states, now, trusted), expanded: true }));
}

function targetsOf(view: PipelineView, states: TargetStates, now: number, trusted: boolean): StageNode[] {
  const { shown } = view;
  if (shown === null) return [node(view, "errors", { label: t("seesaw.yaml has errors"), description: t("see the Problems view"), icon: { name: "info" }, opens: "pipeline" })];
  const nodes = shown.targets.map((target) => targetNode(view, target, states(view.uri.fsPath, target.id), stagesOn(shown, target.id), now, trusted));
  // Only this machine: the view says how there can be more.
  if (shown.targets.every(({ kind }) => kind === "local")) nodes.push(node(view, "add", { label: t("Add another machine…"), description: t("SSH, Slurm or Ray"), tooltip: t("Writes a target into seesaw.yaml for you to fill in; nothing is contacted."), icon: { name: "add" }, opens: "addTarget" }));
  return nodes;
}

function targetNode(view: PipelineView, target: Target, state: TargetState, stages: string[], now: number, trusted: boolean): StageNode {
  const address = targetAddress(target);
  const report = state.kind === "checking" || state.kind === "checked" ? state.report : null;
  const parts = report === null ? [] : reportParts(report);
  const under = { on: target.id };
  const expanded = state.kind === "failed" || parts.some(({ level }) => level === "problem");
  const users = stages.length === 0 ? t("No stage runs on it: write `on: {0}` at a stage.", target.id) : t("Runs: {0}.", stages.join(", "));
  return {
    // An item that VS Code knows already stays closed: what has a problem to show is another one.
    ...node(view, expanded ? `${target.id}/open` : target.id, {
      label: target.id,
      description: `${address} · ${stateWords(state, trusted)}`,
      tooltip: [`${target.id}: ${address}`, ...("dir" in target ? [t("Runs and data lie in {0}.", target.dir)] : []), users, ...(state.kind === "checked" || state.kind === "failed" ? [t("Checked at {0}.", clockText(state.at, now))] : [])].join("\n"),
      icon: stateIcon(state),
      context: contextOf(target),
      target: under,
    }),
    children: [
      ...(state.kind === "failed" ? [node(view, `${target.id}/failed`, { label: state.message, tooltip: state.message, icon: error, context: "problem.check", opens: "checkTarget", target: under })] : []),
      ...parts.map((part, index) => partNode(view, target, part, `${target.id}/${index}`)),
    ],
    expanded,
  };
}

function stateWords(state: TargetState, trusted: boolean): string {
  switch (state.kind) {
    case "unchecked":
      return trusted ? t("not checked yet") : t("not checked: this workspace is not trusted");
    case "checking":
      return t("checking…");
    case "failed":
      return t("could not be checked");
    case "checked":
      return reportSummary(state.report);
  }
}

function stateIcon(state: TargetState): StageNode["icon"] {
  if (state.kind === "unchecked") return { name: "server" };
  if (state.kind === "checking") return { name: "loading~spin" };
  if (state.kind === "failed") return error;
  if (!state.report.reachable) return { name: "debug-disconnect", color: "list.errorForeground" };
  return state.report.problems.length > 0 ? { name: "warning", color: "list.warningForeground" } : { name: "pass", color: "testing.iconPassed" };
}

const error = { name: "error", color: "list.errorForeground" };

const icons: Record<ReportPart["kind"], string> = { problem: "error", gpu: "circuit-board", gpus: "circuit-board", queue: "list-ordered", queues: "list-ordered", python: "symbol-namespace", package: "package", disk: "database", versions: "versions", "round-trip": "pulse" };

function partNode(view: PipelineView, target: Target, part: ReportPart, id: string): StageNode {
  const fix = part.kind === "problem" ? fixOf(target, part.reason) : null;
  return {
    ...node(view, id, {
      label: part.label,
      description: part.text,
      tooltip: [part.text === "" ? part.label : `${part.label}: ${part.text}`, ...(fix === null ? [] : [fix.words])].join("\n"),
      icon: { name: icons[part.kind], ...(part.level === "plain" ? {} : { color: part.level === "problem" ? "list.errorForeground" : "list.warningForeground" }) },
      ...(fix === null ? {} : { context: fix.context, opens: fix.opens }),
      target: { on: target.id },
    }),
    children: part.parts.map((child, index) => partNode(view, target, child, `${id}/${index}`)),
  };
}

/** What a click on a problem does about it. */
function fixOf(target: Target, reason: ReportPart["reason"]): { context: TreeContext; opens: NonNullable<StageNode["opens"]>; words: string } {
  switch (reason) {
    case "login":
    case "host-key":
      return logIn(target);
    case "refused":
    case "expired":
      return target.kind === "ray" ? { context: "problem.token", opens: "rayToken", words: t("Click to set the token.") } : logIn(target);
    case "no-python":
    case "not-writable":
    case "resources":
      return { context: "problem.file", opens: "pipeline", words: t("Click to open seesaw.yaml at this target.") };
    default:
      return check;
  }
}

const check = { context: "problem.check" as const, opens: "checkTarget" as const, get words() { return t("Click to check again."); } };

function logIn(target: Target): ReturnType<typeof fixOf> {
  return loginHost(target) === null ? check : { context: "problem.login", opens: "logIn", words: t("Click to log in with ssh in a terminal, where it can ask you.") };
}

/** `target.ssh` for all that ssh logs in to; `target` alone for this machine without a scheduler. */
function contextOf(target: Target): TreeContext {
  if (target.kind === "ray") return "target.ray";
  if (loginHost(target) !== null) return "target.ssh";
  return target.kind === "slurm" ? "target.slurm" : "target";
}

type NodeParts = Partial<Pick<StageNode, "description" | "tooltip" | "context" | "opens">> & Pick<StageNode, "label" | "icon"> & { target?: { on: string } };

function node(view: PipelineView, id: string, { target, ...item }: NodeParts): StageNode {
  const file = view.uri.fsPath;
  return { description: "", tooltip: "", context: "note", children: [], expanded: false, opens: null, ...item, id: `${file}#target/${id}`, target: { file, ...target } };
}
