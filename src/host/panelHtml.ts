import { randomBytes } from "node:crypto";
import * as vscode from "vscode";

/** The page of a webview: the only HTML string. Nothing but our own script runs, nothing is loaded from anywhere else. */
export function panelHtml(webview: vscode.Webview, extension: vscode.Uri, page: { script: string; title: string; element: string; layout?: string }): string {
  const nonce = randomBytes(18).toString("base64url");
  const script = webview.asWebviewUri(vscode.Uri.joinPath(extension, "dist", page.script));
  const policy = [
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    `style-src ${webview.cspSource} 'nonce-${nonce}'`,
    `font-src ${webview.cspSource}`,
    `img-src ${webview.cspSource}`,
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; ");
  return `<!DOCTYPE html>
<html lang="${escapeHtml(vscode.env.language)}">
  <head>
    <meta charset="utf-8">
    <meta http-equiv="Content-Security-Policy" content="${escapeHtml(policy)}">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>${escapeHtml(page.title)}</title>
    <style nonce="${nonce}">html, body { margin: 0; padding: 0; height: 100%; }</style>
  </head>
  <body>
    <${page.element}${page.layout === undefined ? "" : ` layout="${escapeHtml(page.layout)}"`}></${page.element}>
    ${wordsBlock(vscode.l10n.bundle)}
    <script type="module" nonce="${nonce}" src="${escapeHtml(script.toString())}"></script>
  </body>
</html>`;
}

/** The person's words as data, which the policy need not allow: nothing of it is run. Empty in English. */
export function wordsBlock(words: Readonly<Record<string, string>> | undefined): string {
  return words === undefined ? "" : `<script type="application/json" id="seesaw-words">${JSON.stringify(words).replaceAll("<", "\\u003c")}</script>`;
}

/** The only folder a page may load from. */
export function panelResources(extension: vscode.Uri): vscode.Uri[] {
  return [vscode.Uri.joinPath(extension, "dist")];
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
