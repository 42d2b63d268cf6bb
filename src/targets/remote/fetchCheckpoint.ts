import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, readFile, readdir, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { AppError } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";
import { diskError, writeJson } from "../local.ts";
import type { Progress, RemoteTarget } from "./port.ts";
import { readPlan, type RemoteHome } from "./remoteFolder.ts";

/** Mirrors `WEIGHT_FILES` of `seesaw_runner/checkpoints/saving.py`. */
const weightFile = /^(?:(?:model|adapter_model).*\.safetensors|router\.safetensors)$/;

/**
 * Brings a checkpoint here, into the run's own folder: whole or not at all, and with the weights that the journal names. A
 * copy that was cut goes on where it stopped. AppError("bad-input") where they are others.
 */
export async function fetchCheckpoint(target: RemoteTarget, { remote, runDir, relative }: RemoteHome, weightsHash: string | null, progress: Progress, signal?: AbortSignal): Promise<string> {
  const folder = join(runDir, ...relative.split("/"));
  const part = join(dirname(folder), `.fetch-${basename(folder)}`);
  await mkdir(part, { recursive: true }).catch((error: unknown) => {
    throw diskError(part, error);
  });
  await target.fetch(remote, relative, part, progress, signal);
  const found = await weightsHashOf(part);
  if (found === null) throw new AppError("not-found", t("{0} on {1} has no weights: they were removed there, or the run has not saved them yet.", `${remote.dir}/${relative}`, remote.address));
  if (weightsHash !== null && weightsHash !== "" && found !== weightsHash) {
    await rm(part, { recursive: true, force: true });
    throw new AppError("bad-input", t("The weights of {0} on {1} are not those that the run saved: something has changed them since. Run the stage again, or use another checkpoint.", `${remote.dir}/${relative}`, remote.address));
  }
  await nameBaseHere(part, runDir, remote.dir);
  const old = join(dirname(folder), `.old-${basename(folder)}`);
  await rm(old, { recursive: true, force: true });
  await rename(folder, old).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw diskError(folder, error);
  });
  await rename(part, folder);
  await rm(old, { recursive: true, force: true });
  return folder;
}

/** As the runner computes it: over the bytes of the weight files in name order; null without any. */
export async function weightsHashOf(folder: string): Promise<string | null> {
  const names = (await readdir(folder)).filter((name) => weightFile.test(name)).sort();
  if (names.length === 0) return null;
  const hash = createHash("sha256");
  for (const name of names) for await (const chunk of createReadStream(join(folder, name), { highWaterMark: 1 << 20 })) hash.update(chunk as Buffer);
  return hash.digest("hex");
}

/** An adapter says where its base is: there it was a path of the target, here it is the folder that was sent there, or the run's own start. */
async function nameBaseHere(folder: string, runDir: string, remoteDir: string): Promise<void> {
  const file = join(folder, "adapter_config.json");
  const text = await readFile(file, "utf8").catch(() => null);
  if (text === null) return;
  const config = JSON.parse(text) as Record<string, unknown>;
  const there = config["base_model_name_or_path"];
  if (typeof there !== "string") return;
  const runs = `${dirname(remoteDir)}/`;
  const sent = (await readPlan(runDir).catch(() => null))?.inputs.find(({ remote }) => remote === there)?.local;
  const here = sent ?? (there.startsWith(runs) ? join(dirname(runDir), ...there.slice(runs.length).split("/")) : null);
  if (here !== null) await writeJson(file, { ...config, base_model_name_or_path: here });
}
