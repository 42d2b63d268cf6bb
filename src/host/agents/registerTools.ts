import * as vscode from "vscode";
import type { ToolId } from "../../ids.ts";
import type { TraceStore } from "../../storage/traces/traceStore.ts";
import { messageOf } from "../../util/errors.ts";
import { toDisposable, type Disposable } from "../../util/disposable.ts";
import type { RunCommandHost } from "../runStage.ts";
import type { PipelineView } from "../workspaceModel.ts";
import { RunStageTool } from "./runStageTool.ts";
import { textResult } from "./toolResult.ts";

/** What the tools need of the host. */
export interface ToolHost extends RunCommandHost {
  scores: { traces(): Promise<TraceStore> };
  ready: Promise<void>;
}

type ReadTool = (views: readonly PipelineView[], traces: () => Promise<TraceStore>, input: unknown) => string | Promise<string>;

/** Read-only tools. Their code is loaded when one is asked for. */
const readTools: Record<Exclude<ToolId, "seesaw_runStage">, { load: () => Promise<ReadTool>; doing: () => string }> = {
  seesaw_listRuns: {
    load: async () => {
      const { listRuns } = await import("./listRuns.ts");
      return (views, _, input) => listRuns(views, input);
    },
    doing: () => vscode.l10n.t("Reading the recorded runs"),
  },
  seesaw_explainDrift: { load: async () => (await import("./explainDrift.ts")).explainDrift, doing: () => vscode.l10n.t("Reading which tokens drifted") },
  seesaw_compareCheckpoints: { load: async () => (await import("./compareCheckpoints.ts")).compareCheckpoints, doing: () => vscode.l10n.t("Comparing two checkpoints") },
};

/** Registers the tools; editors without language-model tools have none. `host` is asked for when a tool is used: it is made after them. */
export function registerTools(host: () => ToolHost): Disposable {
  if (typeof vscode.lm?.registerTool !== "function") return toDisposable(() => {});
  const registered = Object.entries(readTools).map(([name, { load, doing }]) =>
    vscode.lm.registerTool<object>(name, {
      prepareInvocation: () => ({ invocationMessage: doing() }),
      async invoke({ input }) {
        const { model, scores, ready, log } = host();
        await ready;
        try {
          return textResult(await (await load())(model.views(), () => scores.traces(), input));
        } catch (error) {
          log.info(`${name}: ${messageOf(error)}`);
          throw error;
        }
      },
    }),
  );
  registered.push(vscode.lm.registerTool<object>("seesaw_runStage" satisfies ToolId, new RunStageTool(host)));
  return toDisposable(() => registered.forEach((item) => item.dispose()));
}
