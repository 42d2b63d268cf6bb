import * as vscode from "vscode";
import { emptySelection, type DriftSelection, type FromWebview, type ToWebview } from "../../protocol/webview.ts";
import { t } from "../../util/l10n.ts";
import type { LiveShow } from "../live/liveShow.ts";
import { panelHtml, panelResources } from "../panelHtml.ts";
import { DriftSession, type DriftHost, type DriftPicture } from "./driftSession.ts";

/** Also in what VS Code remembers of open tabs: never to be changed. */
const viewType = "seesaw.driftEditor";

/**
 * Token Drift in editor tabs: the page of the side bar in its wide layout. Each tab chooses for itself; what it chose is in
 * the page's own state, so a tab comes back with it after a reload.
 */
export class DriftEditors implements vscode.WebviewPanelSerializer, vscode.Disposable {
  private readonly extension: vscode.Uri;
  private readonly host: DriftHost;
  private readonly sessions = new Map<vscode.WebviewPanel, DriftSession>();
  private readonly registration: vscode.Disposable;
  /** The tab that was in front last. */
  private recent: DriftSession | undefined;

  constructor(extension: vscode.Uri, host: DriftHost) {
    this.extension = extension;
    this.host = host;
    this.registration = vscode.window.registerWebviewPanelSerializer(viewType, this);
  }

  /** Opens one more tab, with a selection if one is given. */
  open(selection: Partial<DriftSelection> = {}): void {
    const panel = vscode.window.createWebviewPanel(viewType, t("Token Drift"), vscode.ViewColumn.Active);
    this.fill(panel).select({ ...emptySelection, ...selection });
  }

  async deserializeWebviewPanel(panel: vscode.WebviewPanel): Promise<void> {
    this.fill(panel);
  }

  /** The tab in front; undefined when it is no Token Drift. */
  get active(): { picture(): Promise<DriftPicture> } | undefined {
    for (const [panel, session] of this.sessions) {
      if (panel.active) return { picture: () => session.picture((request) => void panel.webview.postMessage(request)) };
    }
    return undefined;
  }

  /** Shows rows scored live in the tab used last, or what was recorded again in all of them. */
  showLive(show: LiveShow | null): void {
    if (show !== null) this.recent?.showLive(show);
    else for (const session of this.sessions.values()) session.showLive(null);
  }

  /** Runs or pipelines changed. */
  refresh(): void {
    for (const session of this.sessions.values()) session.refresh();
  }

  dispose(): void {
    this.registration.dispose();
    for (const session of this.sessions.values()) session.close();
    this.sessions.clear();
  }

  private fill(panel: vscode.WebviewPanel): DriftSession {
    const session = new DriftSession(this.host, (message) => this.post(panel, message));
    this.sessions.set(panel, session);
    this.recent = session;
    panel.iconPath = vscode.Uri.joinPath(this.extension, "media", "icon.png");
    panel.webview.options = { enableScripts: true, localResourceRoots: panelResources(this.extension) };
    panel.webview.onDidReceiveMessage((message: FromWebview) => session.handle(message));
    panel.onDidChangeViewState(() => {
      if (!panel.visible) session.close();
      if (panel.active) this.recent = session;
    });
    panel.onDidDispose(() => {
      session.close();
      this.sessions.delete(panel);
      if (this.recent === session) this.recent = [...this.sessions.values()].at(-1);
    });
    panel.webview.html = panelHtml(panel.webview, this.extension, { script: "webview.js", title: t("Token Drift"), element: "seesaw-drift-app", layout: "editor" });
    return session;
  }

  private post(panel: vscode.WebviewPanel, message: ToWebview): void {
    if (!this.sessions.has(panel)) return;
    const skill = (message.type === "snapshot" ? message.state : message.patch).selection?.skill;
    // Several tabs are told apart by their skill.
    if (skill !== undefined) panel.title = skill === null ? t("Token Drift") : t("Token Drift: {0}", skill);
    void panel.webview.postMessage(message);
  }
}
