import assert from "node:assert/strict";
import { chmodSync, existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { SlurmSettings } from "../../../src/protocol/remote.ts";
import { SlurmTarget } from "../../../src/targets/remote/slurm/slurmTarget.ts";
import { fault } from "../shared/fault.ts";
import { Lab, python } from "../shared/lab.ts";
import { repo } from "../shared/leftovers.ts";
import { SshLab, noSshd } from "../shared/sshd.ts";
import { SlurmCluster } from "./cluster.ts";

// A login node: sbatch is reached over a real ssh, and what a person sees of the cluster before anything is spent.
const lacks = await noSshd();
if (lacks !== null) console.log(`!!! LEFT OUT: Slurm behind ssh: ${lacks}`);
let cluster: SlurmCluster;
let ssh: SshLab | null = null;
/** A Python whose programs find this cluster, as on a login node whose administrators have set that up. */
let loginPython = "";
before(async () => {
  cluster = await SlurmCluster.start();
  loginPython = join(cluster.dir, "python");
  writeFileSync(loginPython, `#!/bin/sh\nSLURM_CONF=${cluster.dir}/slurm.conf SEESAW_TEST_SLURM=${cluster.dir} exec ${python} "$@"\n`);
  chmodSync(loginPython, 0o755);
  if (lacks !== null) return;
  ssh = await SshLab.open();
  await ssh.server("lo");
});
after(async () => {
  await ssh?.close();
  await cluster.stop();
});

fault("slurm", "behind ssh: waits, is preempted, goes on", async ({ judge }) => {
  const lab = Lab.open({ kind: "slurm", host: "lo", python: loginPython, resources: { partition: "low", gpus: 1 } });
  try {
    const others = await cluster.fill();
    const { id } = await lab.start({ steps: 400 });
    await lab.window();
    await lab.until(id, "queued", ({ state }) => state.status === "queued", 240);
    await cluster.ok(["scancel", others]);
    await lab.untilStep(id, 5, 240);
    const high = await cluster.fill("high");
    await lab.until(id, "back in the queue", ({ state }) => state.status === "queued", 240);
    await cluster.ok(["scancel", high]);
    await cluster.hurry(lab.remoteFile(id).attempts[0]?.job?.id ?? "");
    const { state } = await judge(lab, id, { status: "done", step: 400, attempts: 2, seconds: 240 });
    assert.equal(state.remote?.address, "lo (Slurm)");
  } finally {
    await cluster.clear();
    await lab.close();
  }
}, { skip: lacks, timeout: 900_000 });

test("slurm: what can be told before anything is spent", { timeout: 300_000 }, async () => {
  const dir = join(cluster.dir, "target");
  const settings = (resources: SlurmSettings["resources"], program = loginPython): SlurmSettings => ({ id: "cluster", kind: "slurm", host: null, python: program, dir, resources });
  const check = async (one: SlurmSettings): ReturnType<SlurmTarget["check"]> => {
    const target = new SlurmTarget(one, { runnerDir: join(repo, "runner") });
    return target.check().finally(() => target.dispose());
  };
  const waiting = await cluster.ok(["sbatch", "--parsable", "--hold", "--output=/dev/null", "--partition=short", "--wrap=true"]);
  const good = await check(settings({ partition: "low", gpus: 2, time: "10" }));
  assert.deepEqual(good.problems.filter(({ reason }) => reason !== "packages"), []);
  assert.deepEqual(good.queue?.map(({ name, nodes, gpus, waiting: jobs }) => [name, nodes, gpus, jobs]), [["low", 2, "gpu:2", 0], ["high", 2, "gpu:2", 0], ["short", 1, "gpu:2", 1]]);
  assert.match(good.versions["slurm"] ?? "", /^\d+\.\d+/);
  await cluster.ok(["scancel", waiting]);
  const refused = await check(settings({ partition: "nope" }));
  assert.deepEqual(refused.problems.map(({ reason }) => reason), ["resources"]);
  assert.match(refused.problems[0]?.message ?? "", /no partition `nope`: it has low, high, short/);
  for (const resources of [{ partition: "low", gpus: 99 }, { partition: "low", nodes: 50 }, { partition: "low", memory: "9000G" }]) {
    const { problems } = await check(settings(resources));
    assert.deepEqual(problems.map(({ reason }) => reason), ["resources"], JSON.stringify(resources));
    assert.match(problems[0]?.message ?? "", /No node on .* has what the stage asks for: lower/, JSON.stringify(resources));
  }
  assert.equal(await cluster.ok(["squeue", "-h", "-t", "pending,running"]), "", "asking submits nothing");
  await cluster.end("slurmctld");
  const down = await check(settings({}));
  assert.deepEqual([down.reachable, down.queue, down.problems.map(({ reason }) => reason)], [true, null, ["no-scheduler"]]);
  await cluster.startController();
  // A machine without Slurm: the PATH of its sessions has no such programs.
  const bare = join(cluster.dir, "bare-python");
  writeFileSync(bare, `#!/bin/sh\nPATH=${cluster.dir}/bin exec ${python} "$@"\n`);
  chmodSync(bare, 0o755);
  assert.ok(!existsSync(join(cluster.dir, "bin")));
  const none = await check(settings({}, bare));
  assert.match(none.problems.map(({ message }) => message).join(" "), /has no program/);
});
