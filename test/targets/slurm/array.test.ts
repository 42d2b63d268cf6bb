import assert from "node:assert/strict";
import { chmodSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { buildChain } from "../../../src/domain/run/chain.ts";
import type { RunSpec } from "../../../src/protocol/runSpec.ts";
import { acrossNodes, arrayList, arrayListText, batchScript, jobFile, sbatchArgv, type BatchJob } from "../../../src/targets/remote/slurm/batchScript.ts";
import { AppError } from "../../../src/util/errors.ts";
import { fault } from "../shared/fault.ts";
import { Lab, python, type FakeTraining } from "../shared/lab.ts";
import { repo } from "../shared/leftovers.ts";
import { SshLab, noSshd } from "../shared/sshd.ts";
import { SlurmCluster } from "./cluster.ts";
import { instead } from "./instead.ts";
import { slurmFaults } from "./slurmFault.ts";

// One stage with several seeds: one job array of a real Slurm, and each of its tasks a run that is looked after by itself.
const lacks = await noSshd();
if (lacks !== null) console.log(`!!! LEFT OUT: arrays behind ssh: ${lacks}`);
let cluster: SlurmCluster;
before(async () => void (cluster = await SlurmCluster.start()));
after(() => cluster.stop());

const patience = 240;
const slurm = slurmFaults(() => cluster, "array: ", 600_000);

interface Started {
  ids: string[];
  notes: string[];
}

/** Starts the stage with these seeds as `seesaw run math --seeds …` does. */
async function start(lab: Lab, seeds: number[], training: FakeTraining, limit: number | null = null): Promise<Started> {
  const { pipeline, diagnostics } = await lab.pipeline(training);
  const started = await lab.services.launcher.startSeeds(pipeline, diagnostics, "math", { seeds, limit }, { trusted: true });
  return { ids: started.map(({ id }) => id), notes: started.flatMap(({ notes }) => notes) };
}

const jobOf = (lab: Lab, id: string): string => lab.remoteFile(id).attempts.at(-1)?.job?.id ?? "";
const specOf = (dir: string): RunSpec => JSON.parse(readFileSync(join(dir, "run.json"), "utf8")) as RunSpec;
/** Ids of the arrays that were submitted for these runs. */
async function arraysOf(lab: Lab, id: string): Promise<string[]> {
  const name = lab.remoteFile(id).attempts[0]?.array?.name ?? "";
  const tasks = (await cluster.ok(["/usr/bin/squeue", "-h", "-r", "-t", "all", "-n", name, "-o", "%i"])).split("\n").filter(Boolean);
  return [...new Set(tasks.map((task) => task.replace(/_.*/, "")))];
}

slurm("three seeds: one is stopped and resumed, one is preempted, one runs through", async (lab, { judge }) => {
  const { ids } = await start(lab, [0, 7, 2], { open: true, save: 2 });
  const [first = "", second = "", third = ""] = ids;
  const array = jobOf(lab, first).replace(/_.*/, "");
  assert.deepEqual(ids.map((id) => jobOf(lab, id)), [0, 1, 2].map((task) => `${array}_${task}`));
  assert.deepEqual(await arraysOf(lab, first), [array], "one array");
  await lab.window();
  for (const id of ids) await lab.untilStep(id, 5, patience);
  for (const [task, seed] of [0, 7, 2].entries()) {
    const id = ids[task] ?? "";
    assert.deepEqual([specOf(lab.there(id).dir).seed, specOf(lab.local(id)).seed, specOf(lab.local(id)).file_seed], [seed, seed, seed === 0 ? undefined : 0]);
  }
  const prints = new Set(ids.map((id) => specOf(lab.local(id)).fingerprint));
  assert.equal(prints.size, 3, "each its own fingerprint");

  await lab.stop(second);
  const stopped = await judge(lab, second, { status: "cancelled", seconds: patience });
  assert.equal(stopped.state.checkpoints.at(-1)?.step, stopped.state.step, "saved before it ended");
  assert.deepEqual([await cluster.job(`${array}_0`, "JobState"), await cluster.job(`${array}_2`, "JobState")], ["RUNNING", "RUNNING"]);

  const node = (await cluster.job(`${array}_2`, "NodeList")) ?? "";
  const others = (await cluster.job(`${array}_0`, "NodeList")) === node;
  assert.equal(others, false, "the third got a node of its own, as each takes one of two GPUs");
  const urgent = await cluster.ok(["sbatch", "--parsable", "--output=/dev/null", "--no-requeue", "--exclusive", "--partition=high", `--nodelist=${node}`, "--wrap=sleep 900"]);
  await lab.until(third, "back in the queue", ({ state }) => state.status === "queued" && state.remote?.word?.state === "queued", patience);
  assert.equal(lab.there(third).exit()?.["reason"], "signal:SIGTERM");
  assert.equal((await lab.run(first)).state.status, "running");
  await cluster.ok(["scancel", urgent]);
  await cluster.hurry(`${array}_2`);
  await lab.until(third, "running again", ({ state }) => state.status === "running" && state.attempt === 2, patience);
  for (const id of [first, third]) lab.finish(id);
  await judge(lab, first, { status: "done", seconds: patience });
  const again = await judge(lab, third, { status: "done", attempts: 2, seconds: patience });
  assert.equal(again.state.remote?.word?.restarts, 1);

  await lab.resume(second);
  lab.finish(second);
  await judge(lab, second, { status: "done", attempts: 2, seconds: patience });
  assert.match(jobOf(lab, second), /^\d+$/, "what is resumed is a job of its own");

  const { pipeline } = await lab.pipeline({ open: true, save: 2 });
  const { runs } = await lab.services.runs.list(lab.root);
  const m1 = buildChain(pipeline, runs).checkpoints[1];
  assert.deepEqual([m1?.run?.id, m1?.status], [first, "ready"], "the chain goes on from the file's seed");
}, { resources: { partition: "low", gpus: 1 } });

slurm("one at a time: of those that wait, one is stopped and one is cancelled from outside", async (lab, { judge }) => {
  const { ids } = await start(lab, [0, 1, 2, 3], { open: true }, 1);
  const [first = "", second = "", third = "", fourth = ""] = ids;
  await lab.window();
  await lab.untilStep(first, 3, patience);
  for (const id of [second, third, fourth]) await lab.until(id, "waiting for its array", ({ state }) => state.status === "queued" && state.remote?.word?.reason === "JobArrayTaskLimit", patience);
  await lab.stop(third);
  await cluster.ok(["scancel", jobOf(lab, fourth)]);
  // Slurm forgets at once what is cancelled alone while it waits: only the wish in the run's folder tells of it.
  const { state } = await judge(lab, third, { status: "cancelled", reason: "scheduler", attempts: 0, compare: false, seconds: patience });
  assert.deepEqual(state.reason, { kind: "scheduler", end: "cancelled", message: "CANCELLED" });
  const taken = await judge(lab, fourth, { status: "unknown", reason: "scheduler", attempts: 0, compare: false, seconds: patience });
  assert.deepEqual(taken.state.reason, { kind: "scheduler", end: "unknown", message: "LEFT_ARRAY" });
  assert.equal((await lab.run(second)).state.status, "queued");
  lab.finish(first);
  await judge(lab, first, { status: "done", seconds: patience });
  await lab.untilStep(second, 1, patience);
  lab.finish(second);
  await judge(lab, second, { status: "done", seconds: patience });
});

slurm("the answer to the submission is lost, and nobody can be asked at first", async (lab, { judge }) => {
  instead(lab, "squeue", `[ -e ${lab.dir}/asked ] && exec /usr/bin/squeue "$@"; [ -e ${lab.dir}/ready ] && echo > ${lab.dir}/asked; echo 'slurm_load_jobs error: Unable to contact slurm controller (connect failure)' >&2; exit 1`);
  writeFileSync(join(lab.dir, "asked"), ""); // the look before the submission is answered
  instead(lab, "sbatch", `rm -f ${lab.dir}/asked; /usr/bin/sbatch "$@" > /dev/null; kill -9 $$`);
  const { ids, notes } = await start(lab, [0, 1, 2], { steps: 10 });
  assert.match(notes.join(" "), /looked up and never started twice/);
  assert.deepEqual(ids.map((id) => lab.remoteFile(id).attempts[0]?.state), ["submitting", "submitting", "submitting"]);
  writeFileSync(join(lab.dir, "ready"), "");
  await lab.window();
  for (const id of ids) await judge(lab, id, { status: "done", step: 10, seconds: patience });
  const arrays = await arraysOf(lab, ids[0] ?? "");
  assert.equal(arrays.length, 1, "one array");
  assert.deepEqual(ids.map((id) => jobOf(lab, id)), [0, 1, 2].map((task) => `${arrays[0]}_${task}`));
});

slurm("munge down while it is submitted: asked for again as a whole, once", async (lab, { judge }) => {
  await cluster.end("munged");
  try {
    const { ids, notes } = await start(lab, [0, 1, 2], { steps: 10 });
    assert.match(notes.join(" "), /looked up and never started twice.*munge/);
    await lab.window();
    for (const id of ids) await lab.until(id, "known as unreachable", ({ state }) => state.remote?.unreachable?.reason === "no-scheduler" && state.status !== "lost", patience);
    await cluster.startMunge();
    for (const id of ids) await judge(lab, id, { status: "done", step: 10, seconds: patience });
    assert.equal((await arraysOf(lab, ids[0] ?? "")).length, 1, "one array");
  } finally {
    await cluster.startMunge();
  }
});

slurm("warned before the time limit, each for itself; a dead agent is its own", async (lab, { judge }) => {
  const { ids } = await start(lab, [0, 1], { steps: 3000 });
  const [first = "", second = ""] = ids;
  await lab.window();
  for (const id of ids) await lab.untilStep(id, 2, patience);
  process.kill(lab.there(second).started().agent_pid, "SIGKILL");
  const dead = await judge(lab, second, { status: "failed", reason: "scheduler", seconds: patience });
  assert.equal(dead.state.reason?.kind === "scheduler" && dead.state.reason.message, "FAILED 0:9");
  const { state } = await judge(lab, first, { status: "killed", seconds: patience });
  assert.deepEqual(state.reason, { kind: "killed", signal: "SIGUSR1" });
  assert.equal(state.checkpoints.at(-1)?.step, state.step, "saved before the limit");
}, { resources: { partition: "low", time: 1, warn_s: 40 } });

slurm("refused: nothing is left of any of its runs", async (lab, { nothingStarted }) => {
  await assert.rejects(start(lab, [0, 1, 2], {}), (error) => AppError.is(error, "bad-input") && /no partition `nope`/.test(error.message));
  assert.deepEqual(readdirSync(join(lab.root, ".seesaw/runs")).filter((name) => name.includes("math-")), []);
  await nothingStarted(lab);
}, { resources: { partition: "nope" } });

fault("slurm", "array: behind ssh, seen by two windows: one is stopped while all wait, one while it runs", async ({ judge }) => {
  const ssh = await SshLab.open();
  await ssh.server("lo");
  const login = join(cluster.dir, "python");
  writeFileSync(login, `#!/bin/sh\nSLURM_CONF=${cluster.dir}/slurm.conf SEESAW_TEST_SLURM=${cluster.dir} exec ${python} "$@"\n`);
  chmodSync(login, 0o755);
  const lab = Lab.open({ kind: "slurm", host: "lo", python: login, resources: { partition: "low", gpus: 1 } });
  try {
    const others = await cluster.fill();
    const { ids } = await start(lab, [3, 0, 1, 2], { open: true, save: 2 }, 2);
    const [first = "", second = "", third = "", fourth = ""] = ids;
    const array = jobOf(lab, first).replace(/_.*/, "");
    assert.deepEqual([await arraysOf(lab, first), ids.map((id) => jobOf(lab, id))], [[array], [0, 1, 2, 3].map((task) => `${array}_${task}`)]);
    // A window here, and one that is a process of its own: whichever holds a run's lease, both see the same.
    await lab.window();
    await lab.host();
    for (const id of ids) await lab.until(id, "queued", ({ state }) => state.status === "queued" && state.remote?.word?.state === "queued", patience);
    await lab.stop(second);
    await judge(lab, second, { status: "cancelled", reason: "scheduler", attempts: 0, compare: false, seconds: patience });
    for (const id of [first, third, fourth]) assert.equal((await lab.run(id)).state.status, "queued", "the others wait on");
    await cluster.ok(["scancel", others]);
    for (const id of [first, third]) await lab.untilStep(id, 4, patience);
    assert.equal(await cluster.job(`${array}_3`, "JobState"), "PENDING", "two at once");
    await lab.stop(first);
    const stopped = await judge(lab, first, { status: "cancelled", seconds: patience });
    assert.equal(stopped.state.checkpoints.at(-1)?.step, stopped.state.step, "saved before it ended");
    await lab.untilStep(fourth, 1, patience);
    assert.equal((await lab.run(third)).state.status, "running");
    for (const id of [third, fourth]) lab.finish(id);
    for (const id of [third, fourth]) await judge(lab, id, { status: "done", seconds: patience });
    assert.equal((await lab.run(third)).state.remote?.address, "lo (Slurm)");
  } finally {
    await cluster.clear();
    await lab.close();
    await ssh.close();
  }
}, { skip: lacks, timeout: 600_000 });

slurm("each task on two nodes: one is stopped alone, a lost node starts the other again", async (lab, { judge }) => {
  const { ids } = await start(lab, [0, 1], { open: true, save: 2 });
  const [first = "", second = ""] = ids;
  await lab.window();
  for (const id of ids) await lab.untilStep(id, 4, patience);
  for (const id of ids) assert.equal(await cluster.job(jobOf(lab, id), "NodeList"), "n[1-2]");
  await lab.stop(first);
  await judge(lab, first, { status: "cancelled", seconds: patience });
  assert.equal(await cluster.job(jobOf(lab, second), "JobState"), "RUNNING");
  await cluster.end("slurmd-n2", "SIGKILL");
  await cluster.ok(["scontrol", "update", "nodename=n2", "state=down", "reason=test"]);
  await lab.until(second, "back in the queue", ({ state }) => state.status === "queued", patience);
  await cluster.startNode("n2");
  await cluster.hurry(jobOf(lab, second));
  await lab.until(second, "running again", ({ state }) => state.status === "running" && state.attempt === 2, patience);
  lab.finish(second);
  await judge(lab, second, { status: "done", attempts: 2, seconds: patience });
}, { resources: { partition: "low", nodes: 2, gpus: 1, cpus: 1 } });

test("slurm: array: two torchruns on the same two nodes at once, whose processes meet their own only", { timeout: 400_000 }, async () => {
  const runs = ["one", "two"].map((name) => join(cluster.dir, "meet", name));
  const array = { dir: join(cluster.dir, "meet", "array"), name: "seesaw-meet", nonce: "0123456789abcdef", runs, limit: null };
  const job: BatchJob = { run: "one", attempt: 1, nonce: "0123456789abcdef_0", dir: runs[0] ?? "", runner: join(repo, "runner"), python, resources: { nodes: 2, gpus: 1, cpus: 1 }, array };
  for (const [task, dir] of runs.entries()) {
    mkdirSync(join(dir, "attempt-0001"), { recursive: true });
    const argv = [python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "1", join(import.meta.dirname, "ranks.py"), dir];
    const spec = { v: 1, nonce: `${array.nonce}_${task}`, argv: acrossNodes(argv, { kind: "torchrun", processes: 1 }, job.resources), cwd: dir, env: { OMP_NUM_THREADS: "1" }, epoch: 1, grace_s: 20, beat_s: 1, fate: true, run: ".." };
    writeFileSync(join(dir, "attempt-0001/spec.json"), JSON.stringify(spec));
  }
  mkdirSync(array.dir, { recursive: true });
  writeFileSync(arrayList(array), arrayListText(array));
  writeFileSync(jobFile(job), batchScript(job));
  const id = await cluster.ok(sbatchArgv(job));
  for (const [task, dir] of runs.entries()) {
    const ended = await cluster.waitFor(`${id}_${task}`, ["COMPLETED", "FAILED", "CANCELLED"], 300);
    const log = readFileSync(join(dir, "out.log"), "utf8");
    assert.equal(ended, "COMPLETED", log);
    const ranks = readFileSync(join(dir, "ranks"), "utf8");
    assert.deepEqual(ranks.trim().split("\n").map((line) => line.replace(/ on n\d/, "")).sort(), ["0 of 2: 3", "1 of 2: 3"]);
    assert.deepEqual([...new Set(ranks.match(/n\d/g))].sort(), ["n1", "n2"], "one on each node");
  }
});
