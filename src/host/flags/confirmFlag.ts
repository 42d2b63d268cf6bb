import * as vscode from "vscode";
import { confirmationText, planConfirmation, type Confirmation, type ConfirmationPlan } from "../../domain/run/confirmation.ts";
import type { Pipeline } from "../../domain/pipeline/pipelineModel.ts";
import type { CommandId } from "../../ids.ts";
import type { StartOptions } from "../../targets/launcher.ts";
import { t } from "../../util/l10n.ts";
import type { NodeTarget } from "../stageNodes.ts";
import type { PipelineView, WorkspaceModel } from "../workspaceModel.ts";

/** What Confirm on More Prompts needs of the host. */
export interface ConfirmHost {
  model: WorkspaceModel;
  startOptions(view: PipelineView): Promise<StartOptions>;
  confirmer: { confirm(pipeline: Pick<Pipeline, "root" | "stages">, plan: ConfirmationPlan, prompts: string, most: number, options: StartOptions): Promise<Confirmation> };
  ready: Promise<void>;
}

const most = 200;

/** Confirm on More Prompts: asks for the prompts, then holds the flag against the skill's check on them, with a way out. */
export async function confirmFlag(host: ConfirmHost, target?: NodeTarget): Promise<void> {
  await host.ready;
  const found = flagged(host.model.views(), target);
  if (found === null) return void vscode.window.showInformationMessage(t("No flag stands that could be confirmed."));
  const { plan } = found;
  const key = `${plan.run.dir} ${plan.skill}`;
  const busy = (): boolean => underWay.has(key) && (void vscode.window.showInformationMessage(t("{0} is being checked already.", plan.skill)), true);
  if (busy()) return;
  const prompts = await choosePrompts(plan);
  if (prompts === undefined || busy()) return;
  underWay.add(key);
  try {
    await check(host, found, prompts);
  } finally {
    underWay.delete(key);
  }
}

/** A second click while a check is at work starts no other one. */
const underWay = new Set<string>();

async function check(host: ConfirmHost, { view, pipeline, plan }: Flagged, prompts: string): Promise<void> {
  const options = await host.startOptions(view);
  const title = t("Checking {0} on up to {1} prompts", plan.skill, most);
  const result = await vscode.window.withProgress({ location: vscode.ProgressLocation.Notification, title, cancellable: true }, async (_progress, token) => {
    const abort = new AbortController();
    token.onCancellationRequested(() => abort.abort());
    return host.confirmer.confirm(pipeline, plan, prompts, most, { ...options, signal: abort.signal });
  });
  await host.model.refresh();
  const say = result.confirmed ? vscode.window.showWarningMessage : vscode.window.showInformationMessage;
  const show = t("Show Token Drift");
  // With a button it is shown whole, and not cut off after a line.
  void say(confirmationText({ ...plan, stage: plan.run.stage }, result), show).then((answer) => (answer === show ? vscode.commands.executeCommand("seesaw.showDrift" satisfies CommandId, { file: view.uri.fsPath, stage: plan.run.stage, run: plan.run.id, skill: plan.skill } satisfies NodeTarget) : undefined));
}

interface Flagged {
  view: PipelineView;
  pipeline: Pipeline;
  plan: ConfirmationPlan;
}

/** The flag that is pointed at, else the first that stands. */
function flagged(views: readonly PipelineView[], target: NodeTarget | undefined): Flagged | null {
  for (const view of views) {
    if (view.pipeline === null || (target !== undefined && view.uri.fsPath !== target.file)) continue;
    for (const run of Object.values(view.chain?.newest ?? {})) {
      if (target?.run !== undefined && run.id !== target.run) continue;
      const flag = run.state.flags.find(({ state, skill }) => (state === "drifting" || state === "confirmed") && (target?.skill === undefined || skill === target.skill));
      if (flag !== undefined) return { view, pipeline: view.pipeline, plan: planConfirmation(run, flag.skill) };
    }
  }
  return null;
}

/** A file of prompts; the probes themselves are there to choose, but were tested when the flag was raised. */
async function choosePrompts({ run, skill, step }: ConfirmationPlan): Promise<string | undefined> {
  const probes = run.spec.skills.find(({ id }) => id === skill)?.probes.id;
  const file = { label: t("$(folder-opened) Choose a file of prompts…"), detail: t("Rows with verified answers that no stage has trained on, as a probe file has them") };
  const own = { label: t("$(beaker) The probes of {0}", skill), detail: t("They were tested when the flag was raised: new prompts say more") };
  const picked = await vscode.window.showQuickPick([file, ...(probes === undefined ? [] : [own])], { title: t("Confirm on More Prompts"), placeHolder: t("The start of {0} and its checkpoint at step {1} answer them now, on this machine", run.stage, step), matchOnDetail: true });
  if (picked === undefined) return undefined;
  if (picked === own) return probes;
  const [chosen] = (await vscode.window.showOpenDialog({ canSelectMany: false, filters: { [t("Rows")]: ["jsonl", "json", "gz"] }, title: t("Confirm on More Prompts") })) ?? [];
  return chosen?.fsPath;
}
