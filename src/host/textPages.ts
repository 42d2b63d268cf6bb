import * as vscode from "vscode";
import { textPageScheme } from "../ids.ts";

/** Texts that we made, as pages to read: no file of theirs is anywhere, and they cannot be edited. */
export class TextPages implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;
  private readonly registration: vscode.Disposable;
  private readonly texts = new Map<string, string>();

  constructor() {
    this.registration = vscode.Disposable.from(
      this.changed,
      vscode.workspace.registerTextDocumentContentProvider(textPageScheme, this),
      vscode.workspace.onDidCloseTextDocument(({ uri }) => uri.scheme === textPageScheme && this.texts.delete(uri.toString())),
    );
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.toString()) ?? "";
  }

  /** Shows a text under a name; what was shown under it before is replaced. */
  async show(name: string, text: string): Promise<void> {
    const uri = vscode.Uri.from({ scheme: textPageScheme, path: `/${name}` });
    this.texts.set(uri.toString(), text);
    this.changed.fire(uri);
    await vscode.window.showTextDocument(await vscode.workspace.openTextDocument(uri), { preview: true });
  }

  dispose(): void {
    this.registration.dispose();
  }
}
