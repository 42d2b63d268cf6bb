import { createReadStream } from "node:fs";
import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { BenchmarkValue } from "../../domain/evaluation/benchmarkChange.ts";
import type { BenchmarkResult, BenchmarkSample } from "../../protocol/benchmark.ts";
import { decodeNumber } from "../../protocol/numbers.ts";
import { AppError, messageOf } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";

/** The benchmarks of one run folder at one step; results that cannot be read are named, the others stand. */
export async function readBenchmarks(runDir: string, step: number): Promise<{ results: BenchmarkResult[]; problems: string[] }> {
  const folder = benchmarkFolder(runDir, step);
  const names = await readdir(folder).catch(() => []);
  const results: BenchmarkResult[] = [];
  const problems: string[] = [];
  for (const name of names.filter((file) => file.endsWith(".json") && file !== "request.json" && file !== "index.json").sort()) {
    try {
      const value = JSON.parse(await readFile(join(folder, name), "utf8")) as Partial<BenchmarkResult>;
      if (typeof value.task !== "string" || !Array.isArray(value.metrics) || typeof value.samples !== "string" || typeof value.settings !== "object") throw new Error("it is no benchmark result");
      results.push(value as BenchmarkResult);
    } catch (error) {
      problems.push(`${join(folder, name)} cannot be read (${messageOf(error)}): run \`seesaw benchmark --force\` to write it again.`);
    }
  }
  return { results, problems };
}

/** The rows of a task under one metric, in the order of the file; rows without that number are left out. */
export async function readBenchmarkRows(runDir: string, step: number, { samples, task }: BenchmarkResult, metric: string, filter: string): Promise<BenchmarkValue[]> {
  const path = join(benchmarkFolder(runDir, step), samples);
  const rows: BenchmarkValue[] = [];
  try {
    for await (const line of createInterface({ input: createReadStream(path, "utf8"), crlfDelay: Infinity })) {
      if (line === "") continue;
      const row = JSON.parse(line) as BenchmarkSample;
      const value = decodeNumber(row.metrics[metric]);
      if (row.filter === filter && value !== undefined) rows.push({ key: row.key, value, ...(row.group !== undefined && { group: row.group }) });
    }
  } catch (error) {
    throw new AppError("run-unreadable", t("The answers of {0} in {1} cannot be read ({2}): run `seesaw benchmark --force` to write them again.", task, path, messageOf(error)), { cause: error });
  }
  return rows;
}

export function benchmarkFolder(runDir: string, step: number): string {
  return join(runDir, "benchmarks", `step-${String(step).padStart(6, "0")}`);
}
