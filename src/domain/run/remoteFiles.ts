import type { MirrorFile, RemoteAttempt, RemoteFile } from "../../protocol/remote.ts";
import { remoteKinds } from "../../protocol/remote.ts";
import { AppError } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";

/** Reading remote.json and mirror.json: the first says where a run is and must be right; the second is only what is known of the copy. */

/** Reads a remote.json. AppError("newer-schema" | "run-unreadable") with a sentence that says what to do. */
export function parseRemoteFile(text: string): RemoteFile {
  const value = objectIn(text);
  if (value === null) throw new AppError("run-unreadable", t("Its remote.json is damaged, so where the run is cannot be told. Restore the file; the run itself goes on where it is."));
  if (typeof value["v"] === "number" && value["v"] >= 2) throw new AppError("newer-schema", t("Its remote.json has format {0}; this Seesaw reads format 1. Update Seesaw to see it.", String(value["v"])));
  const texts = ["target", "address", "dir", "runner", "python"].every((name) => typeof value[name] === "string");
  const attempts = value["attempts"];
  const kinds: readonly unknown[] = remoteKinds;
  if (!texts || !kinds.includes(value["kind"]) || !Array.isArray(attempts) || !attempts.every(isAttempt)) {
    throw new AppError("run-unreadable", t("Its remote.json lacks what says where the run is. Restore the file; the run itself goes on where it is."));
  }
  return value as unknown as RemoteFile;
}

/** Reads a mirror.json; what is damaged or of a newer format counts as not there: the copy is then compared with the target anew. */
export function parseMirrorFile(text: string): MirrorFile | null {
  const value = objectIn(text);
  if (value === null || value["v"] !== 1 || typeof value["files"] !== "object" || value["files"] === null) return null;
  const files: MirrorFile["files"] = {};
  for (const [name, entry] of Object.entries(value["files"] as Record<string, unknown>)) {
    const { size, mark } = (entry ?? {}) as { size?: unknown; mark?: unknown };
    if (Number.isSafeInteger(size) && (size as number) >= 0 && typeof mark === "string") files[name] = { size: size as number, mark };
  }
  return { ...emptyMirror(), ...(value as Partial<MirrorFile>), v: 1, files };
}

/** What is known of a run before anything was heard. */
export function emptyMirror(): MirrorFile {
  return { v: 1, files: {}, probe: null, attempt: 0, heard: null, word: null, unreachable: null, complete: false, epoch: 0 };
}

/** The newest attempt that was asked for from here; null before any. */
export function newestAttempt(remote: Pick<RemoteFile, "attempts">): RemoteAttempt | null {
  return remote.attempts.reduce<RemoteAttempt | null>((best, one) => (best === null || one.attempt >= best.attempt ? one : best), null);
}

/** Whether nothing more will come of this run: its copy is complete, and no later attempt was asked for since. */
export function isComplete(remote: Pick<RemoteFile, "attempts">, mirror: MirrorFile | null): boolean {
  return mirror !== null && mirror.complete && mirror.attempt >= (newestAttempt(remote)?.attempt ?? 0);
}

function isAttempt(value: unknown): value is RemoteAttempt {
  if (typeof value !== "object" || value === null) return false;
  const { attempt, nonce, state } = value as Partial<RemoteAttempt>;
  return Number.isSafeInteger(attempt) && typeof nonce === "string" && (state === "prepared" || state === "submitting" || state === "submitted");
}

function objectIn(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}
