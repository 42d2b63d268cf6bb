import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import type { Station } from "./station.ts";

/** The runner as it is sent to a target: one compressed JSON object {name: text}, which `station.py unpack` makes files of. */
export interface RunnerArchive {
  /** Names this version: 12 hex digits over names and contents. */
  version: string;
  bytes: Uint8Array;
  sha256: string;
  files: number;
}

const read = new Map<string, Promise<RunnerArchive>>();

/** The runner in `runnerDir`, read once: a window goes on with the version that it started with. */
export function runnerArchive(runnerDir: string): Promise<RunnerArchive> {
  let archive = read.get(runnerDir);
  if (archive === undefined) {
    archive = pack(runnerDir);
    read.set(runnerDir, archive);
    archive.catch(() => read.delete(runnerDir));
  }
  return archive;
}

/** Copies the runner to `<folder>` on the target unless it is there; other windows may do the same at the same time. */
export async function sendRunner(station: Station, runnerDir: string, folder: string, signal?: AbortSignal): Promise<void> {
  const { bytes, sha256 } = await runnerArchive(runnerDir);
  await station.call(
    { verb: "unpack", dir: folder, size: bytes.length, sha256 },
    { data: () => chunks(bytes), silence: 120_000, ...(signal && { signal }) },
  );
}

async function pack(runnerDir: string): Promise<RunnerArchive> {
  const files: Record<string, string> = { "probe.py": await readFile(join(runnerDir, "probe.py"), "utf8") };
  for (const name of await namesBelow(runnerDir, "seesaw_runner")) files[name] = await readFile(join(runnerDir, name), "utf8");
  const text = JSON.stringify(files);
  const bytes = gzipSync(text, { level: 9 });
  return {
    version: createHash("sha256").update(text).digest("hex").slice(0, 12),
    bytes,
    sha256: createHash("sha256").update(bytes).digest("hex"),
    files: Object.keys(files).length,
  };
}

/** Python files below a folder in a fixed order: the same runner has the same version everywhere. */
async function namesBelow(top: string, folder: string): Promise<string[]> {
  const found: string[] = [];
  for (const entry of (await readdir(join(top, folder), { withFileTypes: true })).sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const name = `${folder}/${entry.name}`;
    if (entry.isDirectory() && entry.name !== "__pycache__" && !entry.name.startsWith(".")) found.push(...(await namesBelow(top, name)));
    else if (entry.isFile() && entry.name.endsWith(".py")) found.push(name);
  }
  return found;
}

async function* chunks(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += 65_536) yield bytes.subarray(at, at + 65_536);
}
