import { createHash } from "node:crypto";
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { zipSync, type Zippable } from "fflate";
import { AppError } from "../../../util/errors.ts";
import { t } from "../../../util/l10n.ts";
import type { RemoteInput } from "../port.ts";

/** What Ray takes in one package; a larger one is answered with 413. */
export const packageLimit = 100 * 1024 * 1024;

/** A package of files as Ray keeps it: a zip that is named by what it holds, so that it is uploaded once. */
export interface RayPackage {
  /** `_ray_pkg_<hash>`: also the name of the folder into which Ray unpacks it. */
  name: string;
  uri: string;
  bytes: Uint8Array;
}

/** One entry of a package; `/` between the parts of its name. */
export interface Entry {
  name: string;
  bytes: Uint8Array;
}

/** The same files give the same bytes, whenever and wherever they are packed. `stored`: not compressed, for what does not get smaller. */
export function packageOf(entries: readonly Entry[], stored = false): RayPackage {
  const files: Zippable = {};
  for (const { name, bytes } of [...entries].sort((a, b) => (a.name < b.name ? -1 : 1))) {
    files[name] = [bytes, { mtime: new Date(1980, 0, 2), os: 3, attrs: 0o100644 << 16, level: stored ? 0 : 6 }];
  }
  const bytes = zipSync(files);
  const name = `_ray_pkg_${createHash("sha256").update(bytes).digest("hex").slice(0, 32)}`;
  return { name, uri: `gcs://${name}.zip`, bytes };
}

/** What `ray_job.py` reads to bring one input to its place: [name in it (empty for a file), name in the package, hash]. */
export interface CarriedInput {
  kind: RemoteInput["kind"];
  remote: string;
  /** null: it has to be on the cluster already. */
  package: string | null;
  files: [string, string, string][];
}

/** Files of less than this come together: a project's modules are many and small. */
const smallFile = 4 << 20;
const togetherMost = 32 << 20;

/** What comes in one package: a model folder, a large file, or many small ones. */
export function inputGroups(inputs: readonly RemoteInput[]): RemoteInput[][] {
  const groups: RemoteInput[][] = [];
  let small: RemoteInput[] = [];
  let bytes = 0;
  for (const input of inputs) {
    if (input.kind === "model" || input.bytes >= smallFile) {
      groups.push([input]);
      continue;
    }
    if (small.length === 0 || bytes + input.bytes > togetherMost) groups.push((small = []));
    bytes = small.length === 0 ? input.bytes : bytes + input.bytes;
    small.push(input);
  }
  return groups;
}

/** A group of inputs as a package. AppError("bad-input") where it is too large, with the place to copy it to by hand. */
export async function inputPackage(group: readonly RemoteInput[]): Promise<{ made: RayPackage; carried: CarriedInput[] }> {
  const entries = new Map<string, Entry>();
  const carried: CarriedInput[] = [];
  for (const input of group) {
    if (input.bytes > packageLimit) throw tooLarge(input, input.bytes);
    const files: CarriedInput["files"] = [];
    for (const name of input.kind === "model" ? await filesOf(input.local) : [""]) {
      const bytes = await readFile(join(input.local, name));
      const sha256 = createHash("sha256").update(bytes).digest("hex");
      if (input.kind === "file" && sha256 !== input.sha256) throw new AppError("bad-input", t("{0} was changed while the run was prepared: start the stage again.", input.local));
      entries.set(sha256, { name: sha256, bytes });
      files.push([name, sha256, sha256]);
    }
    carried.push({ kind: input.kind, remote: input.remote, package: null, files });
  }
  const made = packageOf([...entries.values()], group.some(({ kind }) => kind === "model"));
  const [first] = group;
  if (made.bytes.length > packageLimit && first !== undefined) throw tooLarge(first, made.bytes.length);
  return { made, carried: carried.map((one) => ({ ...one, package: made.name })) };
}

export function tooLarge(input: RemoteInput, bytes: number): AppError {
  return new AppError("bad-input", t("{0} has {1} MB, but Ray takes at most {2} MB in one package: copy it to {3} on the cluster, then start again.", input.local, Math.ceil(bytes / 1e6), Math.floor(packageLimit / 1e6), input.remote));
}

/** The runner's own files. */
export async function runnerPackage(runnerDir: string): Promise<RayPackage> {
  const names = (await filesOf(join(runnerDir, "seesaw_runner"))).map((name) => `seesaw_runner/${name}`);
  return packageOf(await Promise.all(["probe.py", ...names].map(async (name) => ({ name, bytes: await readFile(join(runnerDir, name)) }))));
}

/** All files below a folder, by relative path; hidden ones and caches are left out. */
async function filesOf(folder: string, below = ""): Promise<string[]> {
  const found: string[] = [];
  for (const name of await readdir(join(folder, below))) {
    if (name.startsWith(".") || name === "__pycache__") continue;
    const path = below === "" ? name : `${below}/${name}`;
    const info = await stat(join(folder, path));
    if (info.isDirectory()) found.push(...(await filesOf(folder, path)));
    else if (info.isFile()) found.push(path);
  }
  return found.sort();
}
