import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { acrossNodes, batchScript, jobFile, sbatchArgv, type BatchJob } from "../../../src/targets/remote/slurm/batchScript.ts";
import { Lab, python } from "../shared/lab.ts";
import { repo } from "../shared/leftovers.ts";
import { sampleChain } from "../shared/sampleChain.ts";
import { SlurmCluster } from "./cluster.ts";

// What needs torch: a job of several nodes, and the sample's own stages.
let cluster: SlurmCluster;
before(async () => void (cluster = await SlurmCluster.start()));
after(() => cluster.stop());

test("slurm: torchrun on two nodes, whose processes meet on the first", { timeout: 300_000 }, async () => {
  const dir = join(cluster.dir, "run");
  mkdirSync(join(dir, "attempt-0001"), { recursive: true });
  const job: BatchJob = { run: "run", attempt: 1, nonce: "0123456789abcdef", dir, runner: join(repo, "runner"), python, resources: { nodes: 2, gpus: 1, cpus: 1 } };
  const argv = [python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "1", join(import.meta.dirname, "ranks.py"), dir];
  const spec = { v: 1, nonce: job.nonce, argv: acrossNodes(argv, { kind: "torchrun", processes: 1 }, job.resources), cwd: dir, env: { OMP_NUM_THREADS: "1" }, epoch: 1, grace_s: 20, beat_s: 1, fate: true, run: ".." };
  writeFileSync(join(dir, "attempt-0001/spec.json"), JSON.stringify(spec));
  writeFileSync(jobFile(job), batchScript(job));
  const id = await cluster.ok(sbatchArgv(job));
  const ended = await cluster.waitFor(id, ["COMPLETED", "FAILED", "CANCELLED"], 240);
  const log = readFileSync(join(dir, "out.log"), "utf8");
  assert.equal(ended, "COMPLETED", log);
  assert.deepEqual(readFileSync(join(dir, "ranks"), "utf8").trim().split("\n").map((line) => line.replace(/ on n\d/, "")).sort(), ["0 of 2: 3", "1 of 2: 3"]);
  assert.deepEqual([...new Set(readFileSync(join(dir, "ranks"), "utf8").match(/n\d/g))].sort(), ["n1", "n2"], "one on each node");
});

test("slurm: the sample chain, each stage from the checkpoint that stayed on the cluster, as on this machine", { timeout: 1_200_000 }, async () => {
  const lab = Lab.open({ kind: "slurm", resources: { partition: "low", gpus: 1 } }, { real: true });
  try {
    for (const id of Object.values(await sampleChain(lab))) assert.equal((await lab.run(id)).state.remote?.word?.end, "exited");
  } finally {
    await cluster.clear();
    await lab.close();
  }
});
