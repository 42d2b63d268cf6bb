import * as vscode from "vscode";
import type { FromWeightsPage, ToWeightsPage } from "../../protocol/weightsPage.ts";
import { messageOf } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";
import { panelHtml, panelResources } from "../panelHtml.ts";
import type { PipelineView } from "../workspaceModel.ts";
import type { WeightsHost, WeightsSession } from "./weightsSession.ts";

/** The one tab of Compare Weights. A page is thrown away while it is hidden and says `ready` when it is shown again. */
export class WeightsPanel implements vscode.Disposable {
  private readonly extension: vscode.Uri;
  private readonly host: Omit<WeightsHost, "save">;
  private panel: vscode.WebviewPanel | undefined;
  private session: WeightsSession | undefined;

  constructor(extension: vscode.Uri, host: Omit<WeightsHost, "save">) {
    this.extension = extension;
    this.host = host;
  }

  /** Brings the tab to the front, or opens it; `file`: the seesaw.yaml it is about. */
  async show(file: string | undefined): Promise<void> {
    if (this.panel !== undefined) {
      this.session?.show(file);
      return this.panel.reveal();
    }
    const panel = vscode.window.createWebviewPanel("seesaw.weights", t("Compare Weights"), vscode.ViewColumn.Active, { enableScripts: true, localResourceRoots: panelResources(this.extension) });
    this.panel = panel;
    const session = await this.openSession((message) => void panel.webview.postMessage(message), file);
    this.session = session;
    panel.webview.onDidReceiveMessage((message: FromWeightsPage) => session.handle(message));
    panel.onDidChangeViewState(() => {
      if (!panel.visible) session.close();
    });
    panel.onDidDispose(() => {
      session.close();
      this.panel = undefined;
      this.session = undefined;
    });
    panel.webview.html = panelHtml(panel.webview, this.extension, { script: "weights.js", title: t("Compare Weights"), element: "seesaw-weights-app" });
  }

  /** Another page: what the tab does, without a webview. */
  async openSession(post: (message: ToWeightsPage) => void, file?: string): Promise<WeightsSession> {
    // Not imported above: nothing of this is needed before weights are compared.
    const { WeightsSession } = await import("./weightsSession.ts");
    return new WeightsSession({ ...this.host, save: saveCsv }, post, file);
  }

  /** Runs or pipelines changed. */
  refresh(): void {
    this.session?.refresh();
  }

  dispose(): void {
    this.panel?.dispose();
  }
}

/** Asks where to, and writes; the mark tells a spreadsheet that it is UTF-8. */
async function saveCsv(view: PipelineView, name: string, text: string): Promise<void> {
  const file = await vscode.window.showSaveDialog({ defaultUri: vscode.Uri.joinPath(view.uri, "..", name), filters: { CSV: ["csv"] }, title: t("Export"), saveLabel: t("Export") });
  if (file === undefined) return;
  try {
    await vscode.workspace.fs.writeFile(file, Buffer.from(`\ufeff${text}`));
  } catch (error) {
    void vscode.window.showErrorMessage(t("{0} could not be written: {1}", file.fsPath, messageOf(error)));
  }
}
