import assert from "node:assert/strict";
import { cpSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before } from "node:test";
import { SlurmTarget } from "../../../src/targets/remote/slurm/slurmTarget.ts";
import { AppError } from "../../../src/util/errors.ts";
import { Lab, until } from "../shared/lab.ts";
import { repo } from "../shared/leftovers.ts";
import { SlurmCluster } from "./cluster.ts";
import { instead } from "./instead.ts";
import { slurmFaults } from "./slurmFault.ts";

// What a cluster does to a job, each with a real Slurm: munged, slurmctld and two slurmd of this test's own.
let cluster: SlurmCluster;
before(async () => void (cluster = await SlurmCluster.start()));
after(() => cluster.stop());

/** Seconds for what takes a few: the machine may be busy. */
const patience = 240;
const slurm = slurmFaults(() => cluster);

/** The id of the newest job that was submitted for a run. */
const jobOf = (lab: Lab, id: string): string => lab.remoteFile(id).attempts.at(-1)?.job?.id ?? "";

const jobsOf = async (id: string): Promise<string[]> => (await cluster.ok(["squeue", "-h", "-t", "all", "-o", "%A %j"])).split("\n").filter((line) => line.includes(id));

async function restartController(): Promise<void> {
  await cluster.startController();
  await cluster.until("the controller answers", async () => (await cluster.client(["scontrol", "ping"])).stdout.includes("UP"));
}

slurm("waits behind others, runs, ends", async (lab, { judge }) => {
  const others = await cluster.fill();
  const { id } = await lab.start();
  await lab.window();
  const waiting = await lab.until(id, "queued with Slurm's reason", ({ state }) => state.status === "queued" && /Resources|Priority/.test(state.remote?.word?.reason ?? ""), patience);
  assert.equal(waiting.state.remote?.job, jobOf(lab, id));
  await cluster.ok(["scancel", others]);
  await judge(lab, id, { status: "done", step: 20, seconds: patience });
  assert.equal((await lab.run(id)).state.remote?.word?.end, "exited");
});

slurm("stopped before it starts", async (lab, { judge }) => {
  await cluster.fill();
  const { id } = await lab.start();
  await lab.window();
  await lab.until(id, "queued", ({ state }) => state.status === "queued", patience);
  await lab.stop(id);
  assert.equal(await cluster.job(jobOf(lab, id), "JobState"), "CANCELLED");
  await judge(lab, id, { status: "cancelled", reason: "scheduler", attempts: 0, compare: false, seconds: patience });
});

slurm("scancel from outside while it waits", async (lab, { judge }) => {
  await cluster.fill();
  const { id } = await lab.start();
  await lab.window();
  await lab.until(id, "queued", ({ state }) => state.status === "queued", patience);
  await cluster.ok(["scancel", jobOf(lab, id)]);
  await judge(lab, id, { status: "cancelled", reason: "scheduler", attempts: 0, compare: false, seconds: patience });
});

slurm("stopped while it runs", async (lab, { judge }) => {
  const { id } = await lab.start({ steps: 3000 });
  await lab.window();
  await lab.untilStep(id, 7, patience);
  await lab.stop(id);
  const { state } = await judge(lab, id, { status: "cancelled", seconds: patience });
  assert.equal(state.checkpoints.at(-1)?.step, state.step, "saved before it ended");
});

slurm("scancel from outside, then resumed", async (lab, { judge }) => {
  const { id } = await lab.start({ steps: 200 });
  await lab.window();
  await lab.untilStep(id, 7, patience);
  await cluster.ok(["scancel", jobOf(lab, id)]);
  const { state } = await judge(lab, id, { status: "killed", seconds: patience });
  assert.deepEqual(state.reason, { kind: "killed", signal: "SIGTERM" });
  assert.equal(state.checkpoints.at(-1)?.step, state.step, "saved before it ended");
  await lab.resume(id);
  await judge(lab, id, { status: "done", step: 200, attempts: 2, seconds: patience });
});

slurm("preempted and requeued", async (lab, { judge }) => {
  const { id } = await lab.start({ steps: 400 });
  await lab.window();
  await lab.untilStep(id, 7, patience);
  const first = await cluster.fill("high");
  await lab.until(id, "back in the queue", ({ state }) => state.status === "queued" && state.remote?.word?.state === "queued", patience);
  assert.equal(lab.there(id).exit()?.["reason"], "signal:SIGTERM");
  await cluster.ok(["scancel", first]);
  await cluster.hurry(jobOf(lab, id));
  await judge(lab, id, { status: "done", step: 400, attempts: 2, seconds: patience });
  assert.equal((await lab.run(id)).state.remote?.word?.restarts, 1);
});

slurm("requeued after it had finished", async (lab, { judge }) => {
  const { id } = await lab.start({ steps: 5 });
  await lab.window();
  await judge(lab, id, { status: "done", step: 5, seconds: patience });
  const job = jobOf(lab, id);
  await cluster.ok(["scontrol", "requeue", job]);
  await cluster.hurry(job);
  await cluster.waitFor(job, ["COMPLETED"]);
  assert.match(readFileSync(join(lab.there(id).dir, `slurm-${job}.out`), "utf8"), /attempt 1 is done: nothing is started again/);
  assert.equal(lab.there(id).attempts().length, 1);
  assert.equal(lab.there(id).starts().length, 1, "it trained once");
});

slurm("node lost while its training lives on", async (lab, { judge }) => {
  const { id } = await lab.start({ steps: 400 });
  await lab.window();
  await lab.untilStep(id, 7, patience);
  const job = jobOf(lab, id);
  const node = (await cluster.job(job, "NodeList")) ?? "";
  await cluster.loseNode(node);
  await cluster.ok(["scontrol", "update", `nodename=${node}`, "state=down", "reason=test"]);
  await cluster.hurry(job);
  await judge(lab, id, { status: "done", step: 400, attempts: 2, seconds: patience });
  assert.match(String(lab.there(id).exit(1)?.["reason"]), /^fenced/);
});

slurm("node lost with everything on it, not requeued", async (lab, { judge }) => {
  const { id } = await lab.start({ steps: 3000 });
  await lab.window();
  await lab.untilStep(id, 7, patience);
  const job = jobOf(lab, id);
  const node = (await cluster.job(job, "NodeList")) ?? "";
  const { agent_pid, pid } = lab.there(id).started();
  await cluster.loseNode(node);
  for (const one of [agent_pid, pid]) process.kill(one, "SIGKILL");
  await cluster.ok(["scontrol", "update", `nodename=${node}`, "state=down", "reason=test"]);
  const { state } = await judge(lab, id, { status: "lost", reason: "scheduler", seconds: patience });
  assert.deepEqual(state.reason, { kind: "scheduler", end: "node-failure", message: "NODE_FAIL" });
}, { resources: { partition: "low", requeue: false } });

slurm("agent kill -9", async (lab, { judge }) => {
  const { id } = await lab.start({ steps: 3000 });
  await lab.window();
  await lab.untilStep(id, 7, patience);
  const { agent_pid, pid } = lab.there(id).started();
  process.kill(agent_pid, "SIGKILL");
  const { state } = await judge(lab, id, { status: "failed", reason: "scheduler", seconds: patience });
  assert.equal(state.reason?.kind === "scheduler" && state.reason.message, "FAILED 0:9");
  await cluster.until("the training has ended with it", () => Promise.resolve(!existsSync(`/proc/${pid}`)), 30);
});

slurm("time limit: warned and saved; hung and killed", async (lab, { judge }) => {
  const hung = Lab.open({ kind: "slurm", resources: { partition: "low", time: 1, warn_s: 10 } });
  try {
    const one = await lab.start({ steps: 3000 });
    // A node on which nothing ever begins, as with a dead disk, and which hears no signal but the last.
    const script = join(hung.dir, "hung.sh");
    writeFileSync(script, "#!/bin/sh\ntrap '' USR1 TERM\nsleep 600\n");
    instead(hung, "sbatch", `exec /usr/bin/python3 -c 'import os, sys; os.execv("/usr/bin/sbatch", ["sbatch", *sys.argv[1:-1], "${script}"])' "$@"`);
    const other = await hung.start();
    await Promise.all([lab.window(), hung.window()]);
    const { state } = await judge(lab, one.id, { status: "killed", seconds: patience });
    assert.deepEqual(state.reason, { kind: "killed", signal: "SIGUSR1" });
    assert.equal(state.checkpoints.at(-1)?.step, state.step, "saved before the limit");
    const late = await judge(hung, other.id, { status: "killed", reason: "scheduler", attempts: 0, compare: false, seconds: patience });
    assert.deepEqual(late.state.reason, { kind: "scheduler", end: "time-limit", message: "TIMEOUT" });
  } finally {
    await cluster.ok(["scancel", "--me"]);
    await hung.close();
  }
}, { resources: { partition: "low", time: 1, warn_s: 50 }, timeout: 900_000 });

slurm("controller restarted, job id given again", async (lab, { judge }) => {
  const [state, saved] = [join(cluster.dir, "state"), join(cluster.dir, "state-before")];
  cpSync(state, saved, { recursive: true });
  const { id } = await lab.start({ steps: 150 });
  await lab.untilStep(id, 2, patience);
  const job = jobOf(lab, id);
  await cluster.end("slurmctld", "SIGKILL");
  rmSync(state, { recursive: true });
  cpSync(saved, state, { recursive: true }); // as if it had not come to save the submission
  await lab.untilStep(id, 150, patience);
  await until("its agent has ended", () => lab.there(id).exit() !== null, patience);
  await restartController();
  let other = "";
  for (let tries = 0; tries < 5 && other !== job; tries++) other = await cluster.ok(["sbatch", "--parsable", "--output=/dev/null", "--hold", "--wrap=true", "--comment=somebody-else"]);
  assert.equal(other, job, "Slurm gave the id again");
  await lab.window();
  await judge(lab, id, { status: "done", step: 150, seconds: patience });
  const remote = lab.remoteFile(id);
  const target = new SlurmTarget(remote.settings as ConstructorParameters<typeof SlurmTarget>[0], { runnerDir: join(repo, "runner") });
  assert.deepEqual(await target.word(remote, 1), { state: "not-found", reason: null }, "another's job is not read");
  await target.stop(remote, 1);
  assert.equal(await cluster.job(other, "JobState"), "PENDING", "nor cancelled");
  target.dispose();
});

slurm("controller down while it runs and ends", async (lab, { judge }) => {
  const { id } = await lab.start({ steps: 150 });
  await lab.window();
  await lab.untilStep(id, 3, patience);
  await cluster.end("slurmctld", "SIGKILL");
  await lab.untilStep(id, 150, patience);
  await lab.until(id, "done", ({ state }) => state.status === "done", patience);
  await restartController();
  await judge(lab, id, { status: "done", step: 150, seconds: patience });
});

/** A node that asks munge too early fails a launch, and Slurm then holds the job until a person lets go of it. */
async function letGo(id: string, ended: Promise<unknown>): Promise<void> {
  let over = false;
  const loop = async (): Promise<void> => {
    for (; !over; await new Promise((resolve) => setTimeout(resolve, 1000))) {
      for (const [job = ""] of (await jobsOf(id)).map((line) => line.split(" "))) if (/launch.failed/i.test((await cluster.job(job, "Reason")) ?? "")) await cluster.client(["scontrol", "release", job]);
    }
  };
  const letting = loop();
  await ended.finally(() => (over = true));
  await letting;
}

slurm("munge down while it is submitted", async (lab, { judge }) => {
  await cluster.end("munged");
  try {
    const { id, notes } = await lab.start({ steps: 10 });
    assert.match(notes.join(" "), /looked up and never started twice.*munge/);
    await lab.window();
    await lab.until(id, "known as unreachable", ({ state }) => state.remote?.unreachable?.reason === "no-scheduler" && state.status !== "lost", patience);
    await cluster.startMunge();
    await letGo(id, judge(lab, id, { status: "done", step: 10, seconds: patience }));
    assert.equal((await jobsOf(id)).length, 1, "one job");
  } finally {
    await cluster.startMunge();
  }
});

slurm("the answer to the submission is lost, and nobody can be asked at first", async (lab, { judge }) => {
  instead(lab, "sbatch", '/usr/bin/sbatch "$@" > /dev/null; kill -9 $$');
  instead(lab, "squeue", `[ -e ${lab.dir}/asked ] && exec /usr/bin/squeue "$@"; [ -e ${lab.dir}/ready ] && echo > ${lab.dir}/asked; echo 'slurm_load_jobs error: Unable to contact slurm controller (connect failure)' >&2; exit 1`);
  writeFileSync(join(lab.dir, "asked"), ""); // the look before the submission is answered
  instead(lab, "sbatch", `rm -f ${lab.dir}/asked; /usr/bin/sbatch "$@" > /dev/null; kill -9 $$`);
  const { id, notes } = await lab.start({ steps: 10 });
  assert.match(notes.join(" "), /looked up and never started twice/);
  assert.equal(lab.remoteFile(id).attempts[0]?.state, "submitting");
  writeFileSync(join(lab.dir, "ready"), "");
  await lab.window();
  await judge(lab, id, { status: "done", step: 10, seconds: patience });
  assert.equal((await cluster.ok(["/usr/bin/squeue", "-h", "-t", "all", "-n", `seesaw-${id}-1`, "-o", "%A"])).split("\n").length, 1, "one job");
});

slurm("submitted twice", async (lab, { judge }) => {
  const { id } = await lab.start({ steps: 150 });
  await lab.untilStep(id, 1, patience); // or the second might be first to take the attempt
  const second = await cluster.ok(["sbatch", "--parsable", join(lab.there(id).dir, "attempt-0001/job.sh")]);
  await lab.window();
  await judge(lab, id, { status: "done", step: 150, seconds: patience });
  await cluster.waitFor(second, ["COMPLETED"]);
  assert.match(readFileSync(join(lab.there(id).dir, `slurm-${second}.out`), "utf8"), /submitted a second time/);
});

slurm("refused: unknown partition", async (lab, { nothingStarted }) => {
  await assert.rejects(lab.start(), (error) => AppError.is(error, "bad-input") && /no partition `nope`: it has low, high, short/.test(error.message));
  await nothingStarted(lab);
}, { resources: { partition: "nope" } });

slurm("refused: more GPUs than any node has", async (lab, { nothingStarted }) => {
  await assert.rejects(lab.start(), (error) => AppError.is(error, "bad-input") && /No node on .* has what the stage asks for/.test(error.message));
  await nothingStarted(lab);
}, { resources: { partition: "low", gpus: 9 } });
