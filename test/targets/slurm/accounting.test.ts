import assert from "node:assert/strict";
import { after, before } from "node:test";
import { fault } from "../shared/fault.ts";
import { Lab } from "../shared/lab.ts";
import { SlurmCluster, missing } from "./cluster.ts";

// A controller that forgets ended jobs at once, and a real accounting (slurmdbd, MariaDB) that does not. Optional: said loudly if left out.
const lacks = missing({ accounting: true });
if (lacks !== null) console.log(`!!! ${lacks}`);
let cluster: SlurmCluster;
before(async () => {
  if (lacks === null) cluster = await SlurmCluster.start({ accounting: true, minJobAge: 2 });
}, { timeout: 600_000 });
after(() => (lacks === null ? cluster.stop() : undefined));

fault("slurm", "cancelled while no window was open, and forgotten by the controller", async ({ judge }) => {
  const lab = Lab.open({ kind: "slurm", resources: { partition: "low" } });
  try {
    await cluster.fill();
    const { id } = await lab.start();
    const job = lab.remoteFile(id).attempts[0]?.job?.id ?? "";
    await cluster.ok(["scancel", job]);
    await cluster.until("the controller has forgotten it", async () => (await cluster.job(job, "JobState")) === null, 240);
    await lab.window();
    const { state } = await judge(lab, id, { status: "cancelled", reason: "scheduler", attempts: 0, compare: false, seconds: 240 });
    assert.equal(state.remote?.word?.reason, "CANCELLED");
  } finally {
    await cluster.clear();
    await lab.close();
  }
}, { skip: lacks, timeout: 600_000 });

fault("slurm", "killed with its agent while no window was open, and forgotten by the controller", async ({ judge }) => {
  const lab = Lab.open({ kind: "slurm", resources: { partition: "low" } });
  try {
    const { id } = await lab.start({ steps: 3000 });
    await lab.untilStep(id, 3, 240);
    const job = lab.remoteFile(id).attempts[0]?.job?.id ?? "";
    process.kill(lab.there(id).started().agent_pid, "SIGKILL");
    await cluster.until("the controller has forgotten it", async () => (await cluster.job(job, "JobState")) === null, 240);
    await lab.window();
    const { state } = await judge(lab, id, { status: "failed", reason: "scheduler", seconds: 240 });
    assert.deepEqual(state.reason, { kind: "scheduler", end: "failed", message: "FAILED 0:9" });
  } finally {
    await cluster.clear();
    await lab.close();
  }
}, { skip: lacks, timeout: 600_000 });

fault("slurm", "array: a waiting task that is cancelled alone, of which only the accounting knows", async ({ judge }) => {
  const lab = Lab.open({ kind: "slurm", resources: { partition: "low" } });
  try {
    const { pipeline, diagnostics } = await lab.pipeline({ open: true });
    const [first = "", second = ""] = (await lab.services.launcher.startSeeds(pipeline, diagnostics, "math", { seeds: [0, 1], limit: 1 }, { trusted: true })).map(({ id }) => id);
    await lab.untilStep(first, 2, 240);
    await cluster.ok(["scancel", lab.remoteFile(second).attempts[0]?.job?.id ?? ""]);
    await lab.window();
    const { state } = await judge(lab, second, { status: "cancelled", reason: "scheduler", attempts: 0, compare: false, seconds: 240 });
    assert.equal(state.remote?.word?.reason, "CANCELLED");
    lab.finish(first);
    await judge(lab, first, { status: "done", seconds: 240 });
  } finally {
    await cluster.clear();
    await lab.close();
  }
}, { skip: lacks, timeout: 600_000 });
