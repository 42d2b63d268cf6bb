import { cp, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ThreadScorer } from "../../src/inference/threadScorer.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** One prompt under five checkpoints of the sample's size, through the worker thread: first and warm. */
export async function bench(python = join(root, ".venv/bin/python")): Promise<{ name: string; value: number; unit: string; target?: string }[]> {
  const dir = await mkdtemp(join(tmpdir(), "seesaw-live-bench-"));
  const scorer = new ThreadScorer(new URL("../../src/inference/scorerWorker.ts", import.meta.url));
  try {
    const base = join(root, "media/sample/models/m0");
    execFileSync(python, ["-m", "seesaw_runner.export", "--checkpoint", base, "--out", join(dir, "graphs")], { env: { ...process.env, PYTHONPATH: join(root, "runner"), HF_HUB_OFFLINE: "1" }, stdio: "ignore" });
    const checkpoints = await Promise.all([0, 1, 2, 3, 4].map(async (index) => {
      const folder = join(dir, `m${index}`);
      await cp(base, folder, { recursive: true });
      return { label: `M${index}`, folder };
    }));
    const row = (await readFile(join(root, "media/sample/data/math.probe.jsonl"), "utf8")).split("\n")[0] ?? "";
    const once = async (): Promise<number> => {
      const begin = performance.now();
      const results = await scorer.score({ row, checkpoints, graphs: join(dir, "graphs"), topK: 8 });
      if (results.some(({ scored }) => scored === null)) throw new Error(results.find(({ why }) => why !== null)?.why ?? "");
      return performance.now() - begin;
    };
    const first = await once();
    const warm: number[] = [];
    for (let turn = 0; turn < 15; turn++) warm.push(await once());
    const median = warm.sort((a, b) => a - b)[7] as number;
    return [
      { name: "live scoring, one prompt under five checkpoints, first", value: Math.round(first), unit: "ms" },
      { name: "live scoring, one prompt under five checkpoints, warm", value: Number(median.toFixed(1)), unit: "ms", target: "≤ 150" },
    ];
  } finally {
    scorer.dispose();
    await scorer.ended;
    await rm(dir, { recursive: true, force: true });
  }
}
