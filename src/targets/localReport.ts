import { statfs } from "node:fs/promises";
import { existsSync } from "node:fs";
import { dirname } from "node:path";
import type { TargetReport } from "../protocol/remote.ts";
import { AppError } from "../util/errors.ts";
import { findPython, type PythonRequest } from "./python.ts";
import { run } from "./spawn.ts";

const questionMs = 10_000;

/** What this machine has for a stage, as the check of any other target tells it. `address`: how this machine is called. */
export async function localReport(target: string, address: string, request: PythonRequest): Promise<TargetReport> {
  const [python, gpus, disk] = await Promise.all([findPython(request), localGpus(request.signal), freeSpace(request.root)]);
  return {
    target,
    kind: "local",
    address,
    reachable: true,
    problems: python.problems.map((message) => ({ reason: python.command === null ? ("no-python" as const) : ("packages" as const), message })),
    python: python.command === null ? null : { path: python.command, version: python.version ?? "", packages: python.packages },
    gpus,
    disk,
    queue: null,
    versions: {},
    roundTrip: null,
  };
}

/** By nvidia-smi; null where it is missing or fails, since then nothing is known of other makers' devices either. */
async function localGpus(signal: AbortSignal | undefined): Promise<TargetReport["gpus"]> {
  try {
    const argv = ["nvidia-smi", "--query-gpu=name,memory.total,memory.used,utilization.gpu", "--format=csv,noheader,nounits"];
    const { code, stdout } = await run(argv, { timeout: questionMs, ...(signal === undefined ? {} : { signal }) });
    return code === 0 ? parseGpus(stdout) : null;
  } catch (error) {
    if (AppError.is(error, "cancelled")) throw error;
    return null;
  }
}

/** Lines `NVIDIA H200, 143771, 4, 0`: memory in MiB, use in percent; `[N/A]` is what the driver cannot tell. */
export function parseGpus(stdout: string): NonNullable<TargetReport["gpus"]> {
  const number = (text: string | undefined): number | null => (text !== undefined && /^\d+(\.\d+)?$/.test(text) ? Number(text) : null);
  return stdout.split("\n").filter((line) => line.trim() !== "").map((line) => {
    const words = line.split(",").map((word) => word.trim());
    const [total, used, busy] = words.slice(-3);
    const name = words.slice(0, -3).join(", ");
    const [totalMib, usedMib, percent] = [number(total), number(used), number(busy)];
    return { name, total: totalMib === null ? null : totalMib * 2 ** 20, used: usedMib === null ? null : usedMib * 2 ** 20, utilisation: percent };
  });
}

/** Of the disk that holds the nearest folder that is there. */
async function freeSpace(folder: string): Promise<TargetReport["disk"]> {
  for (let at = folder; ; at = dirname(at)) {
    if (existsSync(at)) {
      const found = await statfs(at).catch(() => null);
      return found === null ? null : { free: found.bavail * found.bsize, total: found.blocks * found.bsize };
    }
    if (dirname(at) === at) return null;
  }
}
