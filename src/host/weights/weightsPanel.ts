import * as vscode from "vscode";
import type { ToWeightsPage } from "../../protocol/weightsPage.ts";
import { messageOf } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";
import { PageTab } from "../pageTab.ts";
import type { PipelineView } from "../workspaceModel.ts";
import type { WeightsHost, WeightsSession } from "./weightsSession.ts";

/** The one tab of Compare Weights. */
export class WeightsPanel implements vscode.Disposable {
  private readonly host: Omit<WeightsHost, "save">;
  private readonly tab: PageTab<WeightsSession, ToWeightsPage>;

  constructor(extension: vscode.Uri, host: Omit<WeightsHost, "save">) {
    this.host = host;
    const page = { viewType: "seesaw.weights", title: () => t("Compare Weights"), script: "weights.js", element: "seesaw-weights-app" };
    this.tab = new PageTab(extension, page, (post, file) => this.openSession(post, file));
  }

  /** Brings the tab to the front, or opens it; `file`: the seesaw.yaml it is about. */
  show(file: string | undefined): Promise<void> {
    return this.tab.show(file);
  }

  /** Another page: what the tab does, without a webview. */
  async openSession(post: (message: ToWeightsPage) => void, file?: string): Promise<WeightsSession> {
    // Not imported above: nothing of this is needed before weights are compared.
    const { WeightsSession } = await import("./weightsSession.ts");
    return new WeightsSession({ ...this.host, save: saveCsv }, post, file);
  }

  /** Runs or pipelines changed. */
  refresh(): void {
    this.tab.refresh();
  }

  dispose(): void {
    this.tab.dispose();
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
