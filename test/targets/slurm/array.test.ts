import assert from "node:assert/strict";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before } from "node:test";
import { buildChain } from "../../../src/domain/run/chain.ts";
import type { RunSpec } from "../../../src/protocol/runSpec.ts";
import { AppError } from "../../../src/util/errors.ts";
import { Lab, type FakeTraining } from "../shared/lab.ts";
import { SlurmCluster } from "./cluster.ts";
import { instead } from "./instead.ts";
import { slurmFaults } from "./slurmFault.ts";

// One stage with several seeds: one job array of a real Slurm, and each of its tasks a run that is looked after by itself.
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
