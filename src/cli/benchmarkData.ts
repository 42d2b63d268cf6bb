import { mainMetric } from "../domain/evaluation/benchmarks.ts";
import type { Benchmarked } from "../domain/evaluation/benchmarkChange.ts";
import type { Chain, ChainCheckpoint } from "../domain/run/chain.ts";
import { readBenchmarkRows, readBenchmarks } from "../storage/runs/benchmarks.ts";
import { messageOf } from "../util/errors.ts";

/** Where the benchmarks of a checkpoint are: those of M0 with the run that started from it, at step 0. */
export function benchmarkPlace({ run, step }: ChainCheckpoint): { dir: string; step: number } | null {
  return run === null || step === null ? null : { dir: run.dir, step };
}

/** Every benchmark of the chain, checkpoint by checkpoint; by default under its main metric only. */
export async function readChainBenchmarks(chain: Chain, all = false): Promise<{ found: Benchmarked[]; problems: string[] }> {
  const found: Benchmarked[] = [];
  const problems: string[] = [];
  for (const checkpoint of chain.checkpoints) {
    const place = benchmarkPlace(checkpoint);
    if (place === null) continue;
    const { results, problems: unread } = await readBenchmarks(place.dir, place.step);
    problems.push(...unread);
    for (const result of results) {
      const main = mainMetric(result);
      for (const metric of all ? result.metrics : main === null ? [] : [main]) {
        try {
          found.push({ label: checkpoint.label, result, metric, rows: metric.per_row ? await readBenchmarkRows(place.dir, place.step, result, metric.metric, metric.filter) : [] });
        } catch (error) {
          problems.push(messageOf(error));
        }
      }
    }
  }
  return { found, problems };
}
