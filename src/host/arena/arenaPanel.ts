import { writeFile } from "node:fs/promises";
import * as vscode from "vscode";
import type { ArenaExport, ToArenaPage } from "../../domain/arena/arenaPage.ts";
import type { ArenaResult } from "../../domain/arena/arenaResult.ts";
import type { Pipeline } from "../../domain/pipeline/pipelineModel.ts";
import type { StartOptions } from "../../targets/launcher.ts";
import { t } from "../../util/l10n.ts";
import type { Log } from "../../util/log.ts";
import { readSetting } from "../../config.ts";
import { showFailure } from "../errorMessages.ts";
import { openExported, replaceFile } from "../exportedFile.ts";
import { PageTab } from "../pageTab.ts";
import type { PipelineView } from "../workspaceModel.ts";
import { priceText, type ArenaPrice } from "./arenaPrice.ts";
import type { ArenaReader, ArenaSession } from "./arenaSession.ts";

/** What reads, prices and starts an arena, and writes its files; arenaDesk.ts of the targets. */
export interface ArenaDeskPort extends ArenaReader {
  price(pipeline: Pipeline): Promise<ArenaPrice>;
  command(pipeline: Pipeline, python: string, jobs: number): string[];
  start(pipeline: Pipeline, python: string, jobs: number): Promise<{ pid: number; log: string }>;
  stop(pipeline: Pipeline): Promise<void>;
  outputOf(pipeline: Pipeline): string;
  report(result: ArenaResult, what: ArenaExport): string;
}

/** What the panel needs of the rest of the extension. */
export interface ArenaPanelHost {
  views(): readonly PipelineView[];
  desk(): Promise<ArenaDeskPort>;
  startOptions(view: PipelineView): Promise<StartOptions>;
  /** The Python that would train; throws with the sentence that says what is missing. */
  python(pipeline: Pipeline, options: StartOptions): Promise<string>;
  openLine(file: string, line: number): void;
  showLog(): void;
  log: Log;
}

/** The one tab of Open Arena. */
export class ArenaPanel implements vscode.Disposable {
  private readonly host: ArenaPanelHost;
  private readonly tab: PageTab<ArenaSession, ToArenaPage>;

  constructor(extension: vscode.Uri, host: ArenaPanelHost) {
    this.host = host;
    const page = { viewType: "seesaw.arena", title: () => t("Arena"), script: "arena.js", element: "seesaw-arena-app" };
    this.tab = new PageTab(extension, page, (post, file) => this.openSession(post, file));
  }

  /** Brings the tab to the front, or opens it; `file`: the seesaw.yaml it is about. */
  show(file: string | undefined): Promise<void> {
    return this.tab.show(file);
  }

  /** Another page: what the tab does, without a webview. */
  async openSession(post: (message: ToArenaPage) => void, file?: string): Promise<ArenaSession> {
    // Not imported above: nothing of this is needed before an arena is opened.
    const { ArenaSession } = await import("./arenaSession.ts");
    const { views, desk, log, showLog, openLine } = this.host;
    return new ArenaSession(
      {
        views,
        desk,
        log,
        showLog,
        trusted: () => vscode.workspace.isTrusted,
        run: (view) => this.run(view),
        stop: (view) => this.stop(view),
        wantedJobs: ({ uri }) => wantedJobs(uri),
        export: (view, result, what) => this.export(view, result, what),
        openPipeline: (view) => openLine(view.uri.fsPath, view.shown?.arena?.range?.line ?? 1),
        openOutput: async (view) => {
          if (view.shown !== null) openLine((await desk()).outputOf(view.shown), 1);
        },
      },
      post,
      file,
    );
  }

  /** Runs, pipelines or trust changed. */
  refresh(): void {
    this.tab.refresh();
  }

  dispose(): void {
    this.tab.dispose();
  }

  /** Says what it will cost, asks, and starts it as a process of its own: it goes on when this window is closed. */
  private async run(view: PipelineView): Promise<boolean> {
    try {
      const { pipeline } = view;
      if (pipeline?.arena == null || !vscode.workspace.isTrusted) return false;
      const desk = await this.host.desk();
      const title = t("Looking at what the arena will cost");
      const { price, jobs, python } = await vscode.window.withProgress({ location: vscode.ProgressLocation.Window, title }, async () => ({ price: await desk.price(pipeline), jobs: await desk.jobs(pipeline, wantedJobs(view.uri)), python: await this.host.python(pipeline, await this.host.startOptions(view)) }));
      const go = t("Run Arena");
      const detail = priceText(price, jobs, desk.command(pipeline, python, jobs.count).slice(1), python);
      if ((await vscode.window.showInformationMessage(t("Run the arena of {0}?", pipeline.name), { modal: true, detail }, go)) !== go) return false;
      const { pid, log } = await desk.start(pipeline, python, jobs.count);
      this.host.log.info(`The arena of ${pipeline.file} runs as process ${pid}; it writes to ${log}.`);
      return true;
    } catch (error) {
      await showFailure(t("Run Arena"), error, this.host.log);
      return false;
    }
  }

  /** Asks, and then ends its process and the stages that run. */
  private async stop({ shown }: PipelineView): Promise<boolean> {
    try {
      if (shown === null || !vscode.workspace.isTrusted) return false;
      const stop = t("Stop Arena");
      const detail = t("The stages that run now are stopped and will be run again. Everything that is done stays.");
      if ((await vscode.window.showWarningMessage(t("Stop the arena of {0}?", shown.name), { modal: true, detail }, stop)) !== stop) return false;
      const desk = await this.host.desk();
      await vscode.window.withProgress({ location: vscode.ProgressLocation.Window, title: t("Stopping the arena") }, () => desk.stop(shown));
      return true;
    } catch (error) {
      await showFailure(t("Stop Arena"), error, this.host.log);
      return false;
    }
  }

  private async export({ uri, shown }: PipelineView, result: ArenaResult, what: ArenaExport): Promise<void> {
    try {
      const ending = what === "html" ? "html" : "csv";
      const table = what === "html" || what === "scores" ? "arena" : `arena-${what}`;
      const file = await vscode.window.showSaveDialog({ defaultUri: vscode.Uri.joinPath(uri, "..", `${shown?.name ?? "pipeline"}.${table}.${ending}`), filters: { [ending.toUpperCase()]: [ending] }, title: t("Export"), saveLabel: t("Export") });
      if (file === undefined) return;
      const text = (await this.host.desk()).report(result, what);
      await replaceFile(file.fsPath, (temporary) => writeFile(temporary, text));
      const open = t("Open");
      void vscode.window.showInformationMessage(t("Wrote {0}.", file.fsPath), open).then((answer) => (answer === open ? openExported(file) : undefined));
    } catch (error) {
      await showFailure(t("Export"), error, this.host.log);
    }
  }
}

function wantedJobs(uri: vscode.Uri): number {
  return Math.max(0, Math.floor(readSetting("seesaw.arena.jobs", uri)));
}
