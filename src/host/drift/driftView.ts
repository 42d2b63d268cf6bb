import * as vscode from "vscode";
import type { ViewId } from "../../ids.ts";
import type { DriftSelection, DriftSnapshot, FromWebview, PictureRequest, ToWebview } from "../../protocol/webview.ts";
import { t } from "../../util/l10n.ts";
import type { LiveShow } from "../live/liveShow.ts";
import { panelHtml, panelResources } from "../panelHtml.ts";
import { DriftSession, type DriftHost, type DriftPicture } from "./driftSession.ts";

const viewId = "seesaw.drift" satisfies ViewId;

/**
 * The Token Drift view. The page is thrown away while it is hidden; when it is shown again it says `ready` and gets a
 * fresh snapshot, so nothing that happened in between can be missed.
 */
export class DriftView implements vscode.WebviewViewProvider, vscode.Disposable {
  private readonly extension: vscode.Uri;
  private readonly session: DriftSession;
  private readonly registration: vscode.Disposable;
  private view: vscode.WebviewView | undefined;

  constructor(extension: vscode.Uri, host: DriftHost) {
    this.extension = extension;
    this.session = new DriftSession(host, (message) => this.post(message));
    this.registration = vscode.window.registerWebviewViewProvider(viewId, this);
  }

  resolveWebviewView(view: vscode.WebviewView): void {
    this.view = view;
    view.webview.options = { enableScripts: true, localResourceRoots: panelResources(this.extension) };
    view.webview.onDidReceiveMessage((message: FromWebview) => this.session.handle(message));
    view.onDidChangeVisibility(() => {
      if (!view.visible) this.session.close();
    });
    view.onDidDispose(() => {
      this.session.close();
      if (this.view === view) this.view = undefined;
    });
    view.webview.html = panelHtml(view.webview, this.extension, { script: "webview.js", title: t("Token Drift"), element: "seesaw-drift-app" });
  }

  /** Brings the view to the front, with a selection if one is given. */
  async show(selection?: Partial<DriftSelection>): Promise<void> {
    if (selection !== undefined) this.session.select(selection);
    await vscode.commands.executeCommand(`${viewId}.focus`);
  }

  /** Shows rows scored live, or what was recorded again. */
  showLive(show: LiveShow | null): void {
    this.session.showLive(show);
  }

  /** The page's state, as it was last told. */
  get shown(): DriftSnapshot {
    return this.session.shown;
  }

  /** What the view shows. */
  get selection(): DriftSelection {
    return this.session.selection;
  }

  /** What the view shows, as a PNG. */
  async picture(): Promise<DriftPicture> {
    await this.show();
    return this.session.picture((request) => this.post(request));
  }

  /** Runs or pipelines changed. */
  refresh(): void {
    this.session.refresh();
  }

  dispose(): void {
    this.session.close();
    this.registration.dispose();
  }

  private post(message: ToWebview | PictureRequest): void {
    void this.view?.webview.postMessage(message);
  }
}
