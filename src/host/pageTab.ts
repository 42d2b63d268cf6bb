import * as vscode from "vscode";
import { panelHtml, panelResources } from "./panelHtml.ts";

/** The host's half of a page that is about one seesaw.yaml: messages in, state out. */
export interface TabSession {
  /** Turns to another seesaw.yaml; undefined: stays. */
  show(file: string | undefined): void;
  handle(message: never): void;
  refresh(): void;
  close(): void;
}

export interface TabPage {
  viewType: string;
  title: () => string;
  /** File of `dist/`, and the element that it defines. */
  script: string;
  element: string;
}

/** A page of which there is one editor tab. It is thrown away while it is hidden, and says `ready` when it is shown again. */
export class PageTab<Session extends TabSession, Message> implements vscode.Disposable {
  private readonly extension: vscode.Uri;
  private readonly page: TabPage;
  private readonly open: (post: (message: Message) => void, file: string | undefined) => Promise<Session>;
  private panel: vscode.WebviewPanel | undefined;
  private session: Session | undefined;

  constructor(extension: vscode.Uri, page: TabPage, open: (post: (message: Message) => void, file: string | undefined) => Promise<Session>) {
    this.extension = extension;
    this.page = page;
    this.open = open;
  }

  /** Brings the tab to the front, or opens it; `file`: the seesaw.yaml it is about. */
  async show(file: string | undefined): Promise<void> {
    if (this.panel !== undefined) {
      this.session?.show(file);
      return this.panel.reveal();
    }
    const { viewType, title, script, element } = this.page;
    const panel = vscode.window.createWebviewPanel(viewType, title(), vscode.ViewColumn.Active, { enableScripts: true, localResourceRoots: panelResources(this.extension) });
    this.panel = panel;
    const session = await this.open((message) => void panel.webview.postMessage(message), file);
    this.session = session;
    panel.webview.onDidReceiveMessage((message: unknown) => session.handle(message as never));
    panel.onDidChangeViewState(() => {
      if (!panel.visible) session.close();
    });
    panel.onDidDispose(() => {
      session.close();
      this.panel = undefined;
      this.session = undefined;
    });
    panel.webview.html = panelHtml(panel.webview, this.extension, { script, title: title(), element });
  }

  /** Runs, pipelines or trust changed. */
  refresh(): void {
    this.session?.refresh();
  }

  dispose(): void {
    this.panel?.dispose();
  }
}
