import { writeFile } from "node:fs/promises";
import * as vscode from "vscode";
import type { ToArenaPage } from "../../domain/arena/arenaPage.ts";
import type { ArenaResult } from "../../domain/arena/arenaResult.ts";
import type { Pipeline } from "../../domain/pipeline/pipelineModel.ts";
import type { StartOptions } from "../../targets/launcher.ts";
import { t } from "../../util/l10n.ts";
import type { Log } from "../../util/log.ts";
import { showFailure } from "../errorMessages.ts";
import { openExported, replaceFile } from "../exportedFile.ts";
import { PageTab } from "../pageTab.ts";
import type { PipelineView } from "../workspaceModel.ts";
import { priceText, type ArenaPrice } from "./arenaPrice.ts";
import type { ArenaReader, ArenaSession } from "./arenaSession.ts";

/** What reads, prices and starts an arena, and writes its files; arenaDesk.ts of the targets. */
export interface ArenaDeskPort extends ArenaReader {
  price(pipeline: Pipeline): Promise<ArenaPrice>;
  command(pipeline: Pipeline, python: string): string[];
  start(pipeline: Pipeline, python: string): Promise<{ pid: number; log: string }>;
  outputOf(pipeline: Pipeline): string;
  report(result: ArenaResult, what: "csv" | "html"): string;
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
      const { price, python } = await vscode.window.withProgress({ location: vscode.ProgressLocation.Window, title }, async () => ({ price: await desk.price(pipeline), python: await this.host.python(pipeline, await this.host.startOptions(view)) }));
      const go = t("Run Arena");
      const detail = priceText(price, desk.command(pipeline, python).slice(1), python);
      if ((await vscode.window.showInformationMessage(t("Run the arena of {0}?", pipeline.name), { modal: true, detail }, go)) !== go) return false;
      const { pid, log } = await desk.start(pipeline, python);
      this.host.log.info(`The arena of ${pipeline.file} runs as process ${pid}; it writes to ${log}.`);
      return true;
    } catch (error) {
      await showFailure(t("Run Arena"), error, this.host.log);
      return false;
    }
  }

  private async export({ uri, shown }: PipelineView, result: ArenaResult, what: "csv" | "html"): Promise<void> {
    try {
      const kind = what.toUpperCase();
      const file = await vscode.window.showSaveDialog({ defaultUri: vscode.Uri.joinPath(uri, "..", `${shown?.name ?? "arena"}.arena.${what}`), filters: { [kind]: [what] }, title: t("Export"), saveLabel: t("Export") });
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
