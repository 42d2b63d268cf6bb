import { rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import * as vscode from "vscode";
import { AppError } from "../util/errors.ts";
import { t } from "../util/l10n.ts";

/** A page in the browser, a table in the editor. */
export function openExported(file: vscode.Uri): Thenable<unknown> {
  return file.fsPath.endsWith(".html") && vscode.env.remoteName === undefined && vscode.env.uiKind === vscode.UIKind.Desktop ? vscode.env.openExternal(file) : vscode.commands.executeCommand("vscode.open", file);
}

/** Writes beside the file and renames: what is open elsewhere is never half a file, and a cancelled export leaves none. */
export async function replaceFile(file: string, write: (temporary: string) => Promise<void>): Promise<void> {
  const temporary = join(dirname(file), `.${basename(file)}.${process.pid}.tmp`);
  try {
    await write(temporary);
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => {});
    if (AppError.is(error)) throw error;
    throw new AppError("not-writable", t("{0} could not be written: {1}", file, error instanceof Error ? error.message : String(error)), { cause: error });
  }
}
