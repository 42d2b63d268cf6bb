import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before } from "node:test";
import { run, spawnDetached } from "../../../src/targets/spawn.ts";
import { processStart } from "../../../src/storage/runs/processIdentity.ts";
import { fault } from "../shared/fault.ts";
import { Lab, until } from "../shared/lab.ts";
import { identify, leave } from "../shared/leftovers.ts";
import { FarHost, noNamespaces } from "../shared/net.ts";
import { SshLab, type SshServer } from "../shared/sshd.ts";

// What supervises the training, the training itself and the whole machine are killed.
const noNets = await noNamespaces();
let ssh: SshLab;
let far: FarHost | null = null;
let rebooting: SshServer | null = null;
before(async () => {
  ssh = await SshLab.open();
  await ssh.server("lo");
  if (noNets !== null) return;
  far = await FarHost.open();
  rebooting = await ssh.server("far", { host: far, ownBoot: true });
});
after(async () => {
  await ssh.close();
  await far?.close();
});
const box = { kind: "ssh", host: "lo" };
const kill = (pid: number): void => void process.kill(pid, "SIGKILL");

fault("ssh", "agent kill -9", async ({ judge }) => {
  const lab = Lab.open(box);
  try {
    const { id } = await lab.start({ open: true });
    await lab.window();
    await lab.until(id, "at step 8 here", ({ state }) => state.step >= 8);
    kill(lab.there(id).started().agent_pid);
    await lab.until(id, "an orphan", ({ state }) => state.status === "orphan");
    // The training goes on to its end; how it ended, nobody can know.
    lab.finish(id);
    const run = await judge(lab, id, { status: "lost" });
    assert.ok(run.state.checkpoints.some(({ final }) => final), "its last checkpoint is known all the same");
  } finally {
    await lab.close();
  }
});

fault("ssh", "agent kill -9, orphan stopped and resumed", async ({ judge }) => {
  const lab = Lab.open(box);
  try {
    const { id } = await lab.start({ open: true });
    await lab.window();
    await lab.until(id, "at step 8 here", ({ state }) => state.step >= 8);
    kill(lab.there(id).started().agent_pid);
    await lab.until(id, "an orphan", ({ state }) => state.status === "orphan");
    await lab.stop(id);
    await judge(lab, id, { status: "cancelled" });
    await lab.resume(id);
    lab.finish(id);
    await judge(lab, id, { status: "done", attempts: 2 });
  } finally {
    await lab.close();
  }
});

fault("ssh", "trainer kill -9", async ({ judge }) => {
  const lab = Lab.open(box);
  try {
    const { id } = await lab.start({ open: true });
    await lab.window();
    await lab.until(id, "at step 12 here", ({ state }) => state.step >= 12);
    kill(lab.there(id).started().pid);
    const run = await judge(lab, id, { status: "killed" });
    assert.deepEqual(run.state.reason, { kind: "killed", signal: "SIGKILL" });
    const { attempt } = await lab.resume(id);
    assert.equal(attempt, 2);
    lab.finish(id);
    const done = await judge(lab, id, { status: "done", attempts: 2 });
    assert.equal(done.state.resumes.length, 1, "it went on from its checkpoint");
  } finally {
    await lab.close();
  }
});

fault("ssh", "agent and trainer kill -9", async ({ judge }) => {
  const lab = Lab.open(box);
  try {
    const { id } = await lab.start({ open: true });
    await lab.window();
    await lab.until(id, "at step 12 here", ({ state }) => state.step >= 12);
    const { agent_pid, pid } = lab.there(id).started();
    kill(agent_pid);
    kill(pid);
    await judge(lab, id, { status: "lost" });
  } finally {
    await lab.close();
  }
});

const memory = "/sys/fs/cgroup/memory";
const noMemoryGroup = ((): string | null => {
  try {
    return readFileSync("/proc/self/cgroup", "utf8").includes(":memory:") && readFileSync(join(memory, "memory.limit_in_bytes"), "utf8") !== "" ? null : "no memory group of version 1 is mounted";
  } catch {
    return "the memory groups of this machine cannot be used";
  }
})();

fault("ssh", "training killed for memory by the kernel", async ({ judge }) => {
  const lab = Lab.open(box);
  try {
    const { id } = await lab.start({ open: true, hold: 400 });
    await lab.window();
    await lab.until(id, "at step 4 here", ({ state }) => state.step >= 4);
    const group = join(memory, `sw-${process.pid}`);
    mkdirSync(group);
    lab.later(leave({ kind: "cgroup", path: group }));
    writeFileSync(join(group, "memory.limit_in_bytes"), String(96 << 20));
    writeFileSync(join(group, "cgroup.procs"), String(lab.there(id).started().pid));
    lab.hold(id);
    const run = await judge(lab, id, { status: "out-of-memory" });
    assert.match(JSON.stringify(run.state.reason), /oom_kill/);
  } finally {
    await lab.close();
  }
}, { skip: noMemoryGroup });

fault("ssh", "target rebooted", async ({ judge }) => {
  assert.ok(rebooting !== null);
  const lab = Lab.open({ kind: "ssh", host: "far" });
  try {
    const { id } = await lab.start({ open: true });
    await lab.window();
    await lab.until(id, "at step 12 here", ({ state }) => state.step >= 12);
    const { agent_pid, pid, boot } = lab.there(id).started();
    assert.ok(!boot.startsWith(readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()), "the target has a boot id of its own");
    await rebooting.stop();
    kill(agent_pid);
    kill(pid);
    await rebooting.start();
    const run = await judge(lab, id, { status: "lost" });
    await lab.resume(id);
    lab.finish(id);
    const done = await judge(lab, id, { status: "done", attempts: 2 });
    assert.deepEqual(done.state.resumes, [{ attempt: 2, step: run.state.checkpoints.at(-1)?.step }], "it went on from its checkpoint");
  } finally {
    await lab.close();
  }
}, { skip: noNets });

fault("ssh", "pid reused by a stranger", async ({ judge, note }) => {
  const lab = Lab.open(box);
  try {
    const { id } = await lab.start({ open: true });
    await lab.window();
    await lab.until(id, "at step 8 here", ({ state }) => state.step >= 8);
    const started = lab.there(id).started();
    kill(started.agent_pid);
    kill(started.pid);
    await until("both are gone", () => processStart(started.pid) === null && processStart(started.agent_pid) === null);
    // A number is free only when its zombie is gone, and who adopted it may take its time.
    await until("its number is free", () => !existsSync(`/proc/${started.pid}`), 40).catch(() => {});
    const stranger = await takePid(started.pid);
    if (stranger === null) {
      // The kernel would not give the number again in time: the identity is changed to one that a stranger has, as after a reuse.
      note("the kernel did not give the pid again; started.json names a stranger's instead");
      const other = await strangerProcess();
      lab.later(other.release);
      writeFileSync(join(lab.there(id).attempt(1), "started.json"), JSON.stringify({ ...started, pid: other.pid, pgid: other.pid }));
      await judge(lab, id, { status: "lost" });
      assert.ok(identify(other.pid) !== null, "a stranger was killed");
      return;
    }
    lab.later(stranger.release);
    assert.equal(stranger.pid, started.pid);
    await judge(lab, id, { status: "lost" });
    // Stop and resume, which signal and wait, leave the stranger alone as well.
    await lab.resume(id);
    lab.finish(id);
    await judge(lab, id, { status: "done", attempts: 2 });
    assert.equal(identify(stranger.pid)?.start, stranger.start, "a stranger was killed");
  } finally {
    await lab.close();
  }
});

type Who = { pid: number; start: number | null; boot: string };
type Stranger = Who & { release: () => Promise<void> };

/** A process with exactly this pid: the kernel is told which number it gave last. null where others are always faster. */
async function takePid(pid: number): Promise<Stranger | null> {
  const script = 'i=0; while [ $i -lt 400 ]; do i=$((i+1)); echo $(( $1 - 1 )) > /proc/sys/kernel/ns_last_pid || exit 1; sleep 1000 </dev/null >/dev/null 2>&1 & if [ $! = $1 ]; then exit 0; fi; kill -9 $!; wait $! 2>/dev/null; done; exit 1';
  const { code } = await run(["sh", "-c", script, "sh", String(pid)], { timeout: 30_000 });
  return code === 0 ? keep(identify(pid)) : null;
}

/** A stranger that the lab ends when it is closed, or the next sweep. */
function keep(who: Who | null): Stranger | null {
  return who === null ? null : { ...who, release: leave({ kind: "process", ...who, what: "a stranger" }) };
}

async function strangerProcess(): Promise<Stranger> {
  const who = keep(identify(await spawnDetached(["sleep", "1000"])));
  assert.ok(who !== null);
  return who;
}
