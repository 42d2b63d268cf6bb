import * as vscode from "vscode";
import { readSetting } from "../../config.ts";
import type { CommandId, SettingKey } from "../../ids.ts";
import { messageOf } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";
import type { Log } from "../../util/log.ts";
import type { KnowledgeHost } from "./rowKnowledge.ts";
import type { RowDecorations } from "./rowDecorations.ts";
import type { RowReader } from "./rowReader.ts";
import { rolesOf } from "./rowRoles.ts";
import { SeenLines, type LineSpan } from "./seenLines.ts";

/** Files larger than VS Code's limit never arrive here: the dataset editor is for them. */
const selector: vscode.DocumentSelector = { scheme: "file", pattern: "**/*.jsonl" };
/** Lines that get lenses where no editor shows the document. */
const unseenLines = 200;
/** Scrolling and runs come in bursts: what is shown follows at most so often, in milliseconds. */
const scrollMs = 120;
const changeMs = 1000;
/** A document counts as calm when it was not edited for so long. */
const calmMs = 800;

export interface RowHost extends KnowledgeHost {
  log: Log;
}

/** What is not loaded before a dataset file of a pipeline is open. */
interface Parts {
  reader: RowReader;
  decorations: RowDecorations;
  words: typeof import("./rowWords.ts");
  hovers: typeof import("./rowHover.ts");
}

interface MadeLenses {
  key: string;
  lenses: vscode.CodeLens[];
}

/**
 * What dataset files say about their rows: lenses over them, marks at the end of a probe's line, and hovers. Only what can
 * be seen is computed, and a row is known by what its line says now, never by where it stood.
 */
export class RowSurfaces implements vscode.CodeLensProvider, vscode.HoverProvider, vscode.Disposable {
  private readonly host: RowHost;
  private parts: Promise<Parts> | null = null;
  private loaded: Parts | null = null;
  private readonly lensesChanged = new vscode.EventEmitter<void>();
  readonly onDidChangeCodeLenses = this.lensesChanged.event;
  private readonly seen = new WeakMap<vscode.TextDocument, SeenLines>();
  private readonly made = new WeakMap<vscode.TextDocument, MadeLenses>();
  private readonly edited = new WeakMap<vscode.TextDocument, number>();
  private readonly timers = new Map<string, NodeJS.Timeout>();
  private readonly subscriptions: vscode.Disposable[];
  /** Changes with everything that lenses are made from, but the document. */
  private round = 0;
  private disposed = false;

  constructor(host: RowHost) {
    this.host = host;
    this.subscriptions = [
      vscode.languages.registerCodeLensProvider(selector, this),
      vscode.languages.registerHoverProvider(selector, this),
      vscode.window.onDidChangeVisibleTextEditors(() => this.soon("decorate", scrollMs, () => this.decorate())),
      vscode.window.onDidChangeTextEditorVisibleRanges(({ textEditor }) => this.scrolled(textEditor)),
      vscode.workspace.onDidChangeTextDocument((event) => this.documentChanged(event)),
      vscode.workspace.onDidCloseTextDocument((document) => this.loaded?.reader.forget(document.fileName)),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration("seesaw.rows")) this.redo();
      }),
    ];
  }

  /** Runs or pipelines changed. */
  refresh(): void {
    this.soon("refresh", changeMs, () => this.redo());
  }

  async provideCodeLenses(document: vscode.TextDocument, token: vscode.CancellationToken): Promise<vscode.CodeLens[]> {
    if (!this.wants(document, "seesaw.rows.codeLens")) return [];
    const seen = this.seen.get(document) ?? new SeenLines();
    this.seen.set(document, seen);
    const spans = seen.see(visibleSpans(document), document.lineCount);
    try {
      const { reader, words } = await this.load();
      const found = await reader.rows(document, spans, { calm: this.isCalm(document), token });
      if (found === null) return [];
      if (found.again) this.soon("again", calmMs, () => this.redo());
      const key = JSON.stringify([document.version, this.round, spans]);
      const made = this.made.get(document);
      if (made?.key === key && !found.again) return made.lenses;
      const lenses = found.rows.flatMap(({ line, row }) => words.rowLenses(row, found.knowledge, document.lineAt(line).text.length).map(({ text, target }) => {
        const command: vscode.Command = target === null ? { title: text, command: "" } : { title: text, command: "seesaw.showDrift" satisfies CommandId, arguments: [target], tooltip: t("Show this prompt token by token under every checkpoint") };
        return new vscode.CodeLens(new vscode.Range(line, 0, line, 0), command);
      }));
      const array = words.arrayText(firstText(document));
      if (array !== null) lenses.unshift(new vscode.CodeLens(new vscode.Range(0, 0, 0, 0), { title: array, command: "" }));
      this.made.set(document, { key, lenses });
      return lenses;
    } catch (error) {
      this.failed(document, error);
      return [];
    }
  }

  async provideHover(document: vscode.TextDocument, position: vscode.Position, token: vscode.CancellationToken): Promise<vscode.Hover | undefined> {
    if (!this.wants(document, "seesaw.rows.hover")) return undefined;
    try {
      const { reader, hovers } = await this.load();
      const found = await reader.rows(document, [{ first: position.line, last: position.line }], { calm: true, token });
      const [placed] = found?.rows ?? [];
      const text = found === null || placed === undefined ? null : hovers.rowHover(placed.row, found.knowledge);
      if (text === null) return undefined;
      const markdown = new vscode.MarkdownString(text);
      markdown.isTrusted = { enabledCommands: [hovers.hoverCommand] };
      markdown.supportHtml = false;
      return new vscode.Hover(markdown, document.lineAt(position.line).range);
    } catch (error) {
      this.failed(document, error);
      return undefined;
    }
  }

  /** What stands behind the lines of an editor, for tests. */
  marks(editor: vscode.TextEditor): readonly vscode.DecorationOptions[] {
    return this.loaded?.decorations.shown(editor) ?? [];
  }

  dispose(): void {
    for (const timer of this.timers.values()) clearTimeout(timer);
    for (const subscription of this.subscriptions) subscription.dispose();
    this.lensesChanged.dispose();
    this.loaded?.decorations.dispose();
    this.disposed = true;
  }

  private scrolled(editor: vscode.TextEditor): void {
    if (!this.isOurs(editor.document)) return;
    this.soon("decorate", scrollMs, () => this.decorate());
    const seen = this.seen.get(editor.document);
    if (seen?.covers(visibleSpans(editor.document), editor.document.lineCount) === false) this.soon("lenses", scrollMs, () => this.lensesChanged.fire());
  }

  private documentChanged({ document, contentChanges }: vscode.TextDocumentChangeEvent): void {
    if (contentChanges.length === 0 || !this.isOurs(document)) return;
    this.edited.set(document, Date.now());
    if (contentChanges.some(({ text, range }) => !range.isSingleLine || /[\r\n]/.test(text))) this.seen.get(document)?.forget();
    this.soon("decorate", scrollMs, () => this.decorate());
  }

  private load(): Promise<Parts> {
    return (this.parts ??= this.loadParts());
  }

  private async loadParts(): Promise<Parts> {
    const [{ RowReader }, { RowDecorations }, words, hovers] = await Promise.all([import("./rowReader.ts"), import("./rowDecorations.ts"), import("./rowWords.ts"), import("./rowHover.ts")]);
    if (this.disposed) throw new Error("the window is closing");
    return (this.loaded = { reader: new RowReader(this.host, this.host.log), decorations: new RowDecorations(), words, hovers });
  }

  /** Everything again: the lenses ask for theirs. */
  private redo(): void {
    this.round++;
    this.lensesChanged.fire();
    this.decorate();
  }

  private decorate(): void {
    for (const editor of vscode.window.visibleTextEditors) {
      const { document } = editor;
      if (!this.isOurs(document)) continue;
      if (!this.wants(document, "seesaw.rows.decorations")) {
        this.loaded?.decorations.clear(editor);
        continue;
      }
      this.load().then(({ decorations, reader }) => decorations.show(editor, reader, this.isCalm(document))).then(
        (again) => {
          if (again) this.soon("decorate", calmMs, () => this.decorate());
        },
        (error: unknown) => this.failed(document, error),
      );
    }
  }

  /** Of many requests in a row one is answered; the first decides when, so that a stream of them does not starve it. */
  private soon(what: string, ms: number, work: () => void): void {
    if (this.timers.has(what)) return;
    const timer = setTimeout(() => {
      this.timers.delete(what);
      work();
    }, ms);
    this.timers.set(what, timer);
  }

  private isCalm(document: vscode.TextDocument): boolean {
    return Date.now() - (this.edited.get(document) ?? 0) >= calmMs;
  }

  private isOurs({ uri, fileName }: vscode.TextDocument): boolean {
    return uri.scheme === "file" && fileName.endsWith(".jsonl") && rolesOf(fileName, this.host.views()).length > 0;
  }

  private wants(document: vscode.TextDocument, setting: SettingKey & `seesaw.rows.${string}`): boolean {
    return this.isOurs(document) && readSetting(setting, document.uri);
  }

  private failed(document: vscode.TextDocument, error: unknown): void {
    this.host.log.error(`The rows of ${document.fileName}: ${messageOf(error)}`);
  }
}

/** The first line that is not blank, of the first few. */
function firstText(document: vscode.TextDocument): string {
  for (let line = 0; line < Math.min(unseenLines, document.lineCount); line++) {
    const { isEmptyOrWhitespace, text } = document.lineAt(line);
    if (!isEmptyOrWhitespace) return text;
  }
  return "";
}

/** What the editors show of a document; its beginning where none does. */
function visibleSpans(document: vscode.TextDocument): LineSpan[] {
  const editors = vscode.window.visibleTextEditors.filter((editor) => editor.document === document);
  const spans = editors.flatMap(({ visibleRanges }) => visibleRanges.map(({ start, end }) => ({ first: start.line, last: end.line })));
  return spans.length > 0 ? spans : [{ first: 0, last: Math.min(unseenLines, document.lineCount) - 1 }];
}
