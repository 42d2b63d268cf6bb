import { constants, existsSync } from "node:fs";
import { mkdir, open, rename, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { AppError } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";
import { diskError } from "../local.ts";

/** Where the files of a target lie in the local copy, and how bytes get there. */

const windowsBad = /[\\:<>"|?*]/;

/** The local path of a run folder's file; null for a name that would leave the folder, hide in it, or cannot be one here. */
export function localPath(dir: string, file: string): string | null {
  const parts = file.split("/");
  const bad = (part: string): boolean => part === "" || part.startsWith(".") || part.includes("\0") || (process.platform === "win32" && windowsBad.test(part));
  return parts.some(bad) ? null : join(dir, ...parts);
}

/** Keeps what is at `path` as a hidden file beside it; the one that was kept there before goes. */
export async function setAside(path: string): Promise<void> {
  const size = (await stat(path).catch(() => null))?.size ?? 0;
  if (size === 0) return;
  await rename(path, join(dirname(path), `.replaced-${basename(path)}`)).catch((error: unknown) => { throw diskError(path, error); });
}

/** The folder of a file of the copy, made if it is not there. The run folder itself is not: who removed it does not want it. */
export async function makeFolder(dir: string, folder: string): Promise<void> {
  if (!existsSync(dir)) throw new AppError("not-found", t("{0} was removed: it is not copied any more. The run itself goes on where it is.", dir));
  if (folder !== dir) await mkdir(folder, { recursive: true }).catch((error: unknown) => { throw diskError(folder, error); });
}

/**
 * Writes `bytes` at `position` of a file in the copy `dir`, all of them or an error; false, and nothing is written, when the
 * file ends before `position`. It is not cut on opening and never appended to: bytes have their place.
 */
export async function writeAt(dir: string, path: string, bytes: Uint8Array, position: number): Promise<boolean> {
  const flags = constants.O_WRONLY | constants.O_CREAT;
  try {
    const file = await open(path, flags).catch(async (error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOENT") throw error;
      await makeFolder(dir, dirname(path));
      return open(path, flags);
    });
    try {
      if (position > 0 && (await file.stat()).size < position) return false;
      for (let written = 0; written < bytes.length; ) written += (await file.write(bytes, written, bytes.length - written, position + written)).bytesWritten;
      return true;
    } finally {
      await file.close();
    }
  } catch (error) {
    throw diskError(path, error);
  }
}
