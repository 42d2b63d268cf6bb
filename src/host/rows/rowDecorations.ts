import * as vscode from "vscode";
import type { RowReader } from "./rowReader.ts";
import { rowMarks, type RowColour } from "./rowWords.ts";
import { widen } from "./seenLines.ts";

const colours: Record<RowColour, vscode.ThemeColor> = {
  passed: new vscode.ThemeColor("seesaw.checkPassed"),
  failed: new vscode.ThemeColor("seesaw.checkFailed"),
  weakened: new vscode.ThemeColor("seesaw.tokenWeakenedLine"),
  lost: new vscode.ThemeColor("seesaw.tokenLostLine"),
  plain: new vscode.ThemeColor("editorCodeLens.foreground"),
};
const margin = 20;

/** The checks under every checkpoint, and the token that fell most, behind a probe's line. */
export class RowDecorations implements vscode.Disposable {
  private readonly type = vscode.window.createTextEditorDecorationType({ rangeBehavior: vscode.DecorationRangeBehavior.ClosedClosed });
  /** Counts requests of an editor: only the last one's answer is shown. */
  private readonly turns = new WeakMap<vscode.TextEditor, number>();
  /** What is shown in each editor, for tests. */
  private readonly last = new WeakMap<vscode.TextEditor, readonly vscode.DecorationOptions[]>();

  /** Decorates what an editor shows; true when it should be asked for again in a moment. */
  async show(editor: vscode.TextEditor, reader: RowReader, calm: boolean): Promise<boolean> {
    const { document } = editor;
    const turn = (this.turns.get(editor) ?? 0) + 1;
    this.turns.set(editor, turn);
    const spans = widen(editor.visibleRanges.map(({ start, end }) => ({ first: start.line, last: end.line })), margin, document.lineCount);
    const { version } = document;
    const cancelled = { get isCancellationRequested(): boolean { return document.version !== version; } };
    const found = await reader.rows(document, spans, { calm, token: cancelled });
    if (this.turns.get(editor) !== turn) return false;
    // Edited meanwhile: the edit has asked again. No pipeline any more: nothing is left standing.
    if (found === null) {
      if (document.version === version) this.clear(editor);
      return false;
    }
    const { knowledge } = found;
    const probes = found.rows.flatMap(({ line, row }) => (knowledge.probes.get(row.hashes.full) ?? []).slice(0, 1).map((probe) => ({ line, probe })));
    const tokens = reader.worstTokens(knowledge, probes.map(({ probe }) => probe));
    const options = probes.map(({ line, probe }, index): vscode.DecorationOptions => {
      const { marks, marksColour, token, tokenColour } = rowMarks(probe, tokens[index] ?? null);
      const end = document.lineAt(line).range.end;
      return {
        range: new vscode.Range(end, end),
        renderOptions: {
          // Before and after the same empty place: two colours in a certain order.
          before: { contentText: marks, color: colours[marksColour], margin: "0 0 0 2em" },
          ...(token === "" ? {} : { after: { contentText: token, color: colours[tokenColour], margin: "0 0 0 1.5em" } }),
        },
      };
    });
    editor.setDecorations(this.type, options);
    this.last.set(editor, options);
    return found.again;
  }

  clear(editor: vscode.TextEditor): void {
    this.turns.set(editor, (this.turns.get(editor) ?? 0) + 1);
    editor.setDecorations(this.type, []);
    this.last.delete(editor);
  }

  shown(editor: vscode.TextEditor): readonly vscode.DecorationOptions[] {
    return this.last.get(editor) ?? [];
  }

  dispose(): void {
    this.type.dispose();
  }
}
