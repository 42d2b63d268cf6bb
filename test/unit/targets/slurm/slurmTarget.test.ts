import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import type { RemoteFile, SlurmSettings } from "../../../../src/protocol/remote.ts";
import type { Resources, RunSpec } from "../../../../src/protocol/runSpec.ts";
import type { RemotePlan } from "../../../../src/targets/remote/port.ts";
import { SlurmTarget } from "../../../../src/targets/remote/slurm/slurmTarget.ts";
import { AppError } from "../../../../src/util/errors.ts";

const runnerDir = join(import.meta.dirname, "../../../../runner");
const settings: SlurmSettings = { id: "cluster", kind: "slurm", host: "login1", python: "~/envs/trl/bin/python", dir: "~/seesaw", resources: {} };

function planWith(resources: Resources): RemotePlan {
  const remote: RemoteFile = {
    v: 1, target: "cluster", kind: "slurm", address: "login1 (Slurm)", dir: "/home/me/seesaw/runs/math-20260101T000000-abcd", runner: "/home/me/seesaw/runner/0123", python: "/home/me/envs/trl/bin/python", settings,
    attempts: [{ attempt: 2, nonce: "0123456789abcdef", state: "prepared", job: null, asked: null }],
  };
  const argv = [remote.python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "4", "-m", "seesaw_runner.recipes.sft", remote.dir];
  return {
    id: "math-20260101T000000-abcd", dir: "/here/.seesaw/runs/math-20260101T000000-abcd", remote, attempt: 2,
    spec: { id: "math-20260101T000000-abcd", launch: { kind: "torchrun", processes: 4, nodes: 2 }, target: { id: "cluster", kind: "slurm", python: remote.python, resources } } as RunSpec,
    attemptSpec: { v: 1, nonce: "0123456789abcdef", argv, cwd: "/home/me/seesaw/work", env: {}, epoch: 2, grace_s: 20, beat_s: 1, fate: true, run: ".." },
    inputs: [{ local: "/here/data/math.jsonl", kind: "file", sha256: "ab", bytes: 7, remote: "/home/me/seesaw/objects/ab/math.jsonl" }],
  };
}

test("a dry run shows the job word for word, and asks nobody", async () => {
  const target = new SlurmTarget(settings, { runnerDir });
  try {
    const { commands, files, script, notes } = await target.describe(planWith({ partition: "gpu", gpus: 4, nodes: 2, time: "04:00:00" }));
    const submit = commands.find(({ argv }) => argv[0] === "sbatch")?.argv ?? [];
    assert.deepEqual(submit.slice(0, 7), ["sbatch", "--parsable", "--partition=gpu", "--nodes=2", "--ntasks-per-node=1", "--gres=gpu:4", "--time=04:00:00"]);
    assert.ok(submit.includes("--comment=0123456789abcdef") && submit.includes("--job-name=seesaw-math-20260101T000000-abcd-2"));
    assert.match(script ?? "", /^#SBATCH --partition=gpu$/m);
    assert.match(script ?? "", /^exec \/home\/me\/envs\/trl\/bin\/python -u \/home\/me\/seesaw\/runner\/0123\/seesaw_runner\/slurm_job\.py \/home\/me\/seesaw\/runs\/math-20260101T000000-abcd 2$/m);
    assert.deepEqual(commands.at(-1)?.argv.slice(0, 4), ["srun", "--nodes=2", "--ntasks=2", "--ntasks-per-node=1"]);
    assert.ok(files.some(({ remote }) => remote.endsWith("/attempt-0002/job.sh")) && files.some(({ local, bytes }) => local.endsWith("math.jsonl") && bytes === 7));
    assert.ok(notes.some((note) => /starts it again/.test(note)) && !notes.some((note) => /No time limit/.test(note)));
  } finally {
    target.dispose();
  }
});

test("a dry run of several seeds shows the array word for word, and every run's files", async () => {
  const target = new SlurmTarget(settings, { runnerDir });
  try {
    const one = planWith({ partition: "gpu" });
    const dirs = ["math-20260101T000000-abcd", "math-20260101T000000-ef01"].map((id) => `/home/me/seesaw/runs/${id}`);
    const array = { nonce: "77aa", name: "seesaw-math-array-77aa", task: 0, limit: 1, runs: dirs.map((dir, seed) => ({ dir, seed })) };
    const { commands, files, script, notes } = await target.describe({ ...one, array });
    const submit = commands.find(({ argv }) => argv[0] === "sbatch")?.argv ?? [];
    assert.ok(submit.includes("--array=0-1%1") && submit.includes("--comment=77aa") && submit.at(-1) === "/home/me/seesaw/arrays/77aa/job.sh");
    assert.match(script ?? "", /^#SBATCH --array=0-1%1$/m);
    assert.deepEqual(files.map(({ remote }) => remote).filter((path) => /arrays|run\.json/.test(path)), [...dirs.map((dir) => `${dir}/run.json`), "/home/me/seesaw/arrays/77aa/runs.json", "/home/me/seesaw/arrays/77aa/job.sh"]);
    assert.match(notes[0] ?? "", /^One array of 2 tasks.*task 0 is seed 0 \(math-20260101T000000-abcd\), task 1 is seed 1/);
  } finally {
    target.dispose();
  }
});

test("what cannot be a job is refused before anything is copied", async () => {
  const target = new SlurmTarget(settings, { runnerDir });
  try {
    // Nobody is asked: there is no host `login1` here, and the answer is a refusal, not a failed reach.
    const refused = (resources: Resources): Promise<void> => assert.rejects(async () => target.prepare(planWith(resources), () => {}), (error) => AppError.is(error, "bad-input"));
    await refused({ partition: "a b" });
    await refused({ args: ["--wrap=rm"] });
  } finally {
    target.dispose();
  }
});
