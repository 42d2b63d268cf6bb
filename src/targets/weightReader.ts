import { createHash } from "node:crypto";
import { mkdir, readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { parseWeightDrift, parseWeightsError, type WeightDrift } from "../protocol/weights.ts";
import type { WeightPair } from "../domain/weights/weightPair.ts";
import { AppError } from "../util/errors.ts";
import { t } from "../util/l10n.ts";
import type { Log } from "../util/log.ts";
import type { FileHasher } from "./hashFiles.ts";
import type { StartOptions } from "./launcher.ts";
import { writeJson } from "./local.ts";
import { findPython, requirePython } from "./python.ts";
import { attemptEnv } from "./runnerEnv.ts";
import { run } from "./spawn.ts";

/** Raised whenever the numbers of the runner change their meaning: older answers are then computed again. */
const cacheVersion = 1;
const longestChain = 16;

/** Computes weight drift with the runner, and keeps every answer under the hashes of the weights it is about. */
export class WeightReader {
  private readonly runnerDir: string;
  private readonly hasher: FileHasher;
  private readonly log: Log;

  constructor({ runnerDir, hasher, log }: { runnerDir: string; hasher: FileHasher; log: Log }) {
    this.runnerDir = runnerDir;
    this.hasher = hasher;
    this.log = log;
  }

  /**
   * The drift of a pair, from `<root>/.seesaw/cache/weights` where it was computed before. Starts Python otherwise, so
   * the workspace must be trusted. `onProgress`: share that is done. AppError("bad-input") with the runner's sentence.
   */
  async drift(root: string, pair: WeightPair, options: StartOptions & { rank: boolean; onProgress?: (share: number) => void }): Promise<WeightDrift> {
    const folder = join(root, ".seesaw", "cache", "weights");
    const file = join(folder, `${await this.key(pair, options.rank)}.json`);
    const kept = parseWeightDrift(await readFile(file, "utf8").catch(() => ""));
    if (kept !== null) return kept;
    if (!options.trusted) throw new AppError("untrusted", t("Comparing weights starts Python, which an untrusted workspace may not: trust the workspace first."));
    const drift = await this.compute(root, pair, options);
    try {
      await mkdir(folder, { recursive: true });
      await writeJson(file, drift);
    } catch (error) {
      this.log.debug(`The weight drift is not kept in ${folder}: ${String(error)}`);
    }
    return drift;
  }

  private async compute(root: string, { from, to, before }: WeightPair, options: StartOptions & { rank: boolean; onProgress?: (share: number) => void }): Promise<WeightDrift> {
    const signal = options.signal ? { signal: options.signal } : {};
    const python = requirePython(await findPython({ root, ...options.python, probeFile: join(this.runnerDir, "probe.py"), log: this.log, ...signal }));
    const places = [from, to, ...(before === null ? [] : [before])];
    const argv = [
      python.command, "-m", "seesaw_runner.weights", from.path, to.path,
      ...(before === null ? [] : ["--with", before.path]),
      ...places.map(({ label }) => `--label=${label}`),
      ...(options.rank ? ["--rank"] : []),
    ];
    const result = await run(argv, {
      cwd: this.runnerDir,
      env: { ...process.env, ...attemptEnv(this.runnerDir, {}, 1) },
      maxBytes: 256 << 20,
      onOutput: (text) => {
        const [, done, all] = /(?:^|\n)(\d+)\/(\d+)\n/.exec(text) ?? [];
        if (done !== undefined) options.onProgress?.(Number(done) / Math.max(1, Number(all)));
      },
      ...signal,
    });
    const drift = result.code === 0 ? parseWeightDrift(result.stdout) : null;
    if (drift !== null) return drift;
    const said = parseWeightsError(result.stdout);
    if (said !== null) throw new AppError("bad-input", said);
    const last = result.stderr.trim().split("\n").at(-1) ?? "";
    throw new AppError("agent-failed", t("{0} gave no weight drift ({1}){2}.", python.command, result.signal === null ? t("exit code {0}", String(result.code)) : t("signal {0}", result.signal), last ? `: ${last.slice(0, 400)}` : ""));
  }

  /** The name of the answer: what both (or all three) checkpoints are made of, what they are called, and what was asked. */
  private async key({ from, to, before }: WeightPair, rank: boolean): Promise<string> {
    const places = [from, to, ...(before === null ? [] : [before])];
    const hashes: string[][] = [];
    for (const { path, label } of places) hashes.push([label, ...(await this.hashes(path))]);
    await this.hasher.save();
    return createHash("sha256").update(JSON.stringify([cacheVersion, hashes, rank])).digest("hex").slice(0, 32);
  }

  /** Of a checkpoint's folder, and of everything under it where it is an adapter. */
  private async hashes(folder: string): Promise<string[]> {
    const found: string[] = [];
    for (let at: string | null = folder; at !== null; ) {
      if (found.length > longestChain) throw new AppError("bad-input", t("{0} rests on more than {1} adapters, or on itself.", folder, longestChain));
      found.push((await this.hasher.model(at)).sha256);
      at = await under(at);
    }
    return found;
  }
}

/** The folder that an adapter was trained on, if it is one and that folder is there. */
async function under(folder: string): Promise<string | null> {
  const text = await readFile(join(folder, "adapter_config.json"), "utf8").catch(() => null);
  if (text === null) return null;
  try {
    const base = (JSON.parse(text) as { base_model_name_or_path?: unknown }).base_model_name_or_path;
    return typeof base === "string" && base !== "" ? resolve(folder, base) : null;
  } catch {
    return null;
  }
}
