import { createHash } from "node:crypto";
import { copyFile, mkdir, readFile, readdir, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import type { RemoteSettings } from "../../protocol/remote.ts";
import type { RunSpec } from "../../protocol/runSpec.ts";
import { isAbsolutePath, joinPath } from "../../util/paths.ts";
import type { FileHasher } from "../hashFiles.ts";
import { writeJson } from "../local.ts";
import type { PlannedModel } from "./pathMap.ts";
import { homeOf, machineOf, type RemoteHome } from "./remoteFolder.ts";

/** A model that lies on another machine than the one it is wanted on: it has to be fetched before it can be sent. */
export interface Detour {
  folder: string;
  home: RemoteHome;
}

export interface ModelPlans {
  models: Map<string, PlannedModel>;
  detours: Detour[];
}

/** The adapter under an adapter, under an adapter …: more than this is a circle. */
const deepest = 8;

/**
 * Where every model of a run is or will be on the target. What lies there is used where it lies. Of an adapter that is sent, a
 * copy of its configuration names its base as the target has it; without `cacheDir` no copy is made, to look only.
 */
export async function planModels(spec: RunSpec, settings: RemoteSettings, dir: string, hasher: FileHasher, cacheDir: string | null): Promise<ModelPlans> {
  const models = new Map<string, PlannedModel>();
  const detours: Detour[] = [];
  const add = async (folder: string, depth: number): Promise<PlannedModel | null> => {
    const known = models.get(folder);
    if (known !== undefined) return known;
    const home = await homeOf(folder);
    if (home !== null && machineOf(home.remote.settings) === machineOf(settings)) return keep(folder, { kind: "there", remote: `${home.remote.dir}/${home.relative}` });
    if (home !== null && !home.here) {
      detours.push({ folder, home });
      return null;
    }
    const { sha256, files } = await hasher.model(folder);
    const bytes = files.reduce((sum, one) => sum + one.bytes, 0);
    const under = depth > deepest ? null : await baseOf(folder);
    const base = under === null ? null : await add(under, depth + 1);
    if (under === null || base === null || cacheDir === null) return keep(folder, { kind: "send", folder, sha256, bytes });
    const remote = base.kind === "there" ? base.remote : `${dir}/models/${base.sha256}`;
    const view = join(cacheDir, "remote", createHash("sha256").update(`${folder}\0${sha256}\0${remote}`).digest("hex").slice(0, 24));
    await adapterView(folder, view, remote);
    return keep(folder, { kind: "send", folder: view, sha256: (await hasher.model(view)).sha256, bytes });
  };
  const keep = (folder: string, model: PlannedModel): PlannedModel => {
    models.set(folder, model);
    return model;
  };
  for (const folder of new Set([spec.base, spec.start.checkpoint, ...Object.values(spec.models ?? {}).map(({ checkpoint }) => checkpoint)])) await add(folder, 0);
  await hasher.save();
  return { models, detours };
}

/** The folder that an adapter was trained on, where it is a folder of this machine. */
async function baseOf(folder: string): Promise<string | null> {
  try {
    const { base_model_name_or_path: base } = JSON.parse(await readFile(join(folder, "adapter_config.json"), "utf8")) as { base_model_name_or_path?: unknown };
    if (typeof base !== "string" || base === "") return null;
    const path = isAbsolutePath(base) ? base : joinPath(folder, base);
    return (await readdir(path).catch(() => [])).some((name) => name.endsWith(".safetensors") || name === "config.json") || (await homeOf(path)) !== null ? path : null;
  } catch {
    return null;
  }
}

/** A folder like the adapter's, whose configuration names another base; the weights are not copied where links are to be had. */
async function adapterView(folder: string, view: string, base: string): Promise<void> {
  await rm(view, { recursive: true, force: true });
  await mkdir(view, { recursive: true });
  const config = JSON.parse(await readFile(join(folder, "adapter_config.json"), "utf8")) as Record<string, unknown>;
  await writeJson(join(view, "adapter_config.json"), { ...config, base_model_name_or_path: base });
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    if (entry.name === "adapter_config.json" || entry.isDirectory()) continue;
    await symlink(join(folder, entry.name), join(view, entry.name)).catch(() => copyFile(join(folder, entry.name), join(view, entry.name)));
  }
}
