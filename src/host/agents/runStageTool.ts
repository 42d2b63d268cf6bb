import * as vscode from "vscode";
import type { Pipeline } from "../../domain/pipeline/pipelineModel.ts";
import { AppError, messageOf } from "../../util/errors.ts";
import { didYouMean } from "../../util/nearest.ts";
import { placeOf, type ChosenStage } from "../choices.ts";
import { preview, start, turnOf, type RunCommandHost } from "../runStage.ts";
import { stageDetail } from "../stageDetail.ts";
import { chooseView, readInput } from "./toolInputs.ts";
import { textResult } from "./toolResult.ts";

/**
 * Run Stage for agents: the question of the command, asked every time, and then the same start. What was confirmed is what
 * runs: if the stage changed in between, nothing is started.
 */
export class RunStageTool implements vscode.LanguageModelTool<object> {
  private readonly host: () => RunCommandHost;
  /** What was shown to the person last, by pipeline and stage. */
  private readonly confirmed = new Map<string, string>();

  constructor(host: () => RunCommandHost) {
    this.host = host;
  }

  async prepareInvocation({ input }: vscode.LanguageModelToolInvocationPrepareOptions<object>): Promise<vscode.PreparedToolInvocation> {
    const host = this.host();
    const chosen = await this.choose(host, input);
    const shown = await preview(host, chosen, turnOf(host, chosen).ahead);
    const detail = stageDetail(shown);
    this.confirmed.set(keyOf(chosen), signature(chosen, detail));
    const message = new vscode.MarkdownString();
    message.appendText(`${vscode.l10n.t("Target: {0}.", chosen.stage.on)}\n`).appendCodeblock(detail, "text");
    return {
      invocationMessage: vscode.l10n.t("Starting stage {0}", chosen.stage.id),
      confirmationMessages: { title: shown.ahead.length > 0 ? vscode.l10n.t("Queue stage {0}?", chosen.stage.id) : vscode.l10n.t("Run stage {0}?", chosen.stage.id), message },
    };
  }

  async invoke({ input }: vscode.LanguageModelToolInvocationOptions<object>): Promise<vscode.LanguageModelToolResult> {
    const host = this.host();
    try {
      const chosen = await this.choose(host, input);
      const { id } = chosen.stage;
      const agreed = this.confirmed.get(keyOf(chosen));
      this.confirmed.delete(keyOf(chosen));
      if (agreed === undefined) throw new AppError("usage", `Stage ${id} was not started: nobody has confirmed it.`);
      await host.queue.update();
      const { ahead, busy } = turnOf(host, chosen);
      if (signature(chosen, stageDetail(await preview(host, chosen, ahead))) !== agreed) throw new AppError("usage", `Stage ${id} was not started: the pipeline, its data or what runs has changed since it was confirmed. Ask again.`);
      const item = { file: chosen.view.uri.fsPath, stage: id };
      if (busy) await host.queue.add(item, ahead);
      const go = (): ReturnType<typeof start> => start(host, chosen, vscode.ProgressLocation.Window);
      const started = busy ? null : placeOf(chosen) === null ? await host.queue.launch(item, go) : await go();
      if (started === null) return textResult(`Stage ${id} is queued: it starts when what runs now is done.`);
      return textResult(`Stage ${id} was started as run ${started.id}. It goes on by itself: ask seesaw_listRuns how it is doing.`);
    } catch (error) {
      if (!AppError.is(error)) host.log.error(`seesaw_runStage: ${messageOf(error)}`);
      throw error;
    } finally {
      await host.model.refresh();
    }
  }

  private async choose(host: RunCommandHost, input: unknown): Promise<ChosenStage> {
    if (!vscode.workspace.isTrusted) throw new AppError("untrusted", "Seesaw starts nothing in a workspace that is not trusted. Only the person can trust it: Manage Workspace Trust.");
    await host.model.refresh();
    return chosenStage(host, readInput(input, { pipeline: "text", stage: "text" }));
  }
}

function chosenStage(host: RunCommandHost, { pipeline: named, stage: id }: { pipeline?: string; stage?: string }): ChosenStage {
  const view = chooseView(host.model.views(), named);
  const { pipeline } = view;
  if (pipeline === null) throw new AppError("bad-pipeline", `${view.label} has errors: ${view.diagnostics.find(({ severity }) => severity === "error")?.message ?? "it could not be read."}`);
  const open = vscode.workspace.textDocuments.find((document) => document.uri.toString() === view.uri.toString());
  if (open?.isDirty === true) throw new AppError("bad-pipeline", `${view.label} has unsaved changes: save it first, so that what runs is what is on disk.`);
  return { view, pipeline, stage: stageIn(pipeline, id) };
}

function stageIn({ stages }: Pipeline, id: string | undefined): ChosenStage["stage"] {
  const names = stages.map((stage) => stage.id);
  if (id === undefined) throw new AppError("usage", `Name a stage: there are ${names.join(", ")}.`);
  const stage = stages.find((one) => one.id === id);
  if (stage === undefined) throw new AppError("not-found", `There is no stage ${JSON.stringify(id)}: there are ${names.join(", ")}.${didYouMean(id, names)}`);
  return stage;
}

function keyOf({ view, stage }: ChosenStage): string {
  return `${view.uri.fsPath} ${stage.id}`;
}

/** Changes when something that the person agreed to does. */
function signature({ stage, pipeline }: ChosenStage, detail: string): string {
  return JSON.stringify([detail, stage, pipeline.base, pipeline.seed, pipeline.skills, pipeline.buffers, pipeline.targets]);
}
