import { readFile, readdir } from "node:fs/promises";
import { basename, dirname, join, relative, sep } from "node:path";
import { parseRemoteFile } from "../../domain/run/remoteFiles.ts";
import { awaySentence, stepOfFolder, type AwayWeights } from "../../domain/run/awayWeights.ts";
import type { RemoteAttempt, RemoteFile, RemoteSettings } from "../../protocol/remote.ts";
import { AppError } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";
import { writeJson } from "../local.ts";
import type { RemotePlan } from "./port.ts";

/** Files of a local run folder that say where the run really is. Nothing of them is ever sent. */
export const remoteName = "remote.json";
/** The newest attempt as it was asked for: with it a submission whose answer was lost can be asked for again, word for word. */
const planName = "remote-plan.json";
/** How far below its run folder a checkpoint may lie. */
const deepest = 6;

/** Where a run really is; null for a run of this machine. AppError("run-unreadable" | "newer-schema"). */
export async function readRemote(runDir: string): Promise<RemoteFile | null> {
  const text = await readFile(join(runDir, remoteName), "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT" || error.code === "ENOTDIR") return null;
    throw error;
  });
  return text === null ? null : parseRemoteFile(text);
}

export function writeRemote(runDir: string, remote: RemoteFile): Promise<void> {
  return writeJson(join(runDir, remoteName), remote);
}

/** Replaces what is known of one attempt. */
export function withAttempt(remote: RemoteFile, attempt: RemoteAttempt): RemoteFile {
  return { ...remote, attempts: [...remote.attempts.filter((one) => one.attempt !== attempt.attempt), attempt].sort((a, b) => a.attempt - b.attempt) };
}

export function writePlan(runDir: string, plan: RemotePlan): Promise<void> {
  return writeJson(join(runDir, planName), { v: 1, plan });
}

/** The newest attempt as it was asked for; its `dir` is where the run folder is now. AppError("run-unreadable"). */
export async function readPlan(runDir: string): Promise<RemotePlan> {
  try {
    const { v, plan } = JSON.parse(await readFile(join(runDir, planName), "utf8")) as { v: number; plan: RemotePlan };
    if (v === 1 && typeof plan.spec.id === "string" && Array.isArray(plan.inputs) && typeof plan.attemptSpec.nonce === "string") return { ...plan, dir: runDir };
  } catch {
    // said below
  }
  throw new AppError("run-unreadable", t("{0} has no readable {1}, which says how the run was asked for: start the stage again.", runDir, planName));
}

/** The machine of a target: what lies there need not be sent there again, whatever the target is called. */
export function machineOf(settings: RemoteSettings): string {
  if (settings.kind === "ray") return `ray ${settings.address}`;
  return `host ${settings.host ?? ""}`;
}

/** A checkpoint of a run on another machine. */
export interface RemoteHome {
  remote: RemoteFile;
  /** Local run folder, and the checkpoint's path below it, with `/`. */
  runDir: string;
  relative: string;
  /** Its weights are here as well. */
  here: boolean;
}

/** The run on another machine that a checkpoint's folder belongs to; null where it is this machine's own. */
export async function homeOf(folder: string): Promise<RemoteHome | null> {
  let at = folder;
  for (let depth = 0; depth <= deepest && dirname(at) !== at; depth++, at = dirname(at)) {
    const remote = await readRemote(at);
    if (remote !== null) return { remote, runDir: at, relative: relative(at, folder).split(sep).join("/"), here: await hasWeights(folder) };
  }
  return null;
}

/** Where the weights of a checkpoint are, if they are not here. */
export async function weightsAway(folder: string): Promise<AwayWeights | null> {
  if (await hasWeights(folder)) return null;
  const home = await homeOf(folder);
  return home === null ? null : { run: basename(home.runDir), step: stepOfFolder(home.relative), target: home.remote.target, address: home.remote.address };
}

/** AppError("not-found") with the way to get them where the weights of one of these folders lie on another machine. */
export async function mustBeHere(...folders: string[]): Promise<void> {
  for (const folder of folders) {
    const away = await weightsAway(folder);
    if (away !== null) throw new AppError("not-found", awaySentence(away));
  }
}

async function hasWeights(folder: string): Promise<boolean> {
  return (await readdir(folder).catch(() => [])).some((name) => name.endsWith(".safetensors"));
}
