import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { BenchmarkMessage, BenchmarkRequest } from "../protocol/benchmark.ts";
import { AppError } from "../util/errors.ts";
import { t } from "../util/l10n.ts";
import { diskError, writeJson } from "./local.ts";
import { attemptEnv } from "./runnerEnv.ts";
import { run } from "./spawn.ts";

export type BenchmarkFailure = Extract<BenchmarkMessage, { event: "failed" }>;

export interface BenchmarkOptions {
  runnerDir: string;
  python: string;
  /** Folder that relative paths in task files are relative to: the pipeline's. */
  root: string;
  /** Folder of the results: `<run>/benchmarks/step-000120`. */
  folder: string;
  request: BenchmarkRequest;
  env: Readonly<Record<string, string>>;
  /** Run again what is there. */
  force: boolean;
  /** As things happen. */
  onMessage(message: BenchmarkMessage): void;
  signal?: AbortSignal;
}

/** Runs the benchmarks of one checkpoint in a process of their own, to its end. Gives the tasks that failed, with the reason. */
export async function runBenchmark({ runnerDir, root, python, folder, request, env, force, onMessage, signal }: BenchmarkOptions): Promise<BenchmarkFailure[]> {
  if (!request.trusted) throw new AppError("untrusted", t("Nothing is started from {0} before you trust this workspace.", folder));
  try {
    await mkdir(folder, { recursive: true });
  } catch (error) {
    throw diskError(folder, error);
  }
  await writeJson(join(folder, "request.json"), request);
  let rest = "";
  const result = await run([python, "-m", "seesaw_runner.benchmark", folder, ...(force ? ["--force"] : [])], {
    cwd: root,
    env: { ...process.env, ...attemptEnv(runnerDir, env, 1) },
    maxBytes: 1 << 20,
    onOutput(text) {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) tell(line, onMessage);
    },
    ...(signal ? { signal } : {}),
  });
  const failed: BenchmarkFailure[] = [];
  for (const line of result.stdout.split("\n")) tell(line, (message) => void (message.event === "failed" && failed.push(message)));
  if (result.code === 0 || ((result.code === 1 || result.code === 2) && failed.length > 0)) return failed;
  const last = result.stderr.trim().split("\n").at(-1) ?? "";
  throw new AppError("agent-failed", t("The process of the benchmarks of {0} ended with {1}{2}. What is done is kept: run `seesaw benchmark` again.", request.label, result.signal === null ? t("exit code {0}", String(result.code)) : t("signal {0}", result.signal), last ? `: ${last.slice(0, 400)}` : ""));
}

function tell(line: string, onMessage: (message: BenchmarkMessage) => void): void {
  if (!line.startsWith('{"seesaw_benchmark"')) return;
  try {
    onMessage(JSON.parse(line) as BenchmarkMessage);
  } catch {
    // A torn line of a process that was killed: its end is told by its exit code.
  }
}
