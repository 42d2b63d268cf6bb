import assert from "node:assert/strict";
import { after, before } from "node:test";
import { systemClock } from "../../../src/targets/remote/backoff.ts";
import { fault } from "../shared/fault.ts";
import { Lab, until } from "../shared/lab.ts";
import { sleep } from "../shared/leftovers.ts";
import { SshLab } from "../shared/sshd.ts";

// Windows and laptops come and go; the run does not care, and nothing of it is lost.
let ssh: SshLab;
before(async () => {
  ssh = await SshLab.open();
  await ssh.server("lo");
});
after(() => ssh.close());
const box = { kind: "ssh", host: "lo" };

fault("ssh", "window closed and opened again", async ({ judge }) => {
  const lab = Lab.open(box);
  try {
    const { id } = await lab.start({ open: true });
    const window = await lab.window();
    await lab.until(id, "at step 8 here", ({ state }) => state.step >= 8);
    await window.close();
    const then = (await lab.run(id)).state.step;
    await lab.untilStep(id, then + 12);
    assert.equal((await lab.run(id)).state.step, then, "a closed window copies nothing");
    await lab.window();
    await lab.until(id, "followed again", ({ state }) => state.step > then);
    lab.finish(id);
    await judge(lab, id, { status: "done" });
  } finally {
    await lab.close();
  }
});

fault("ssh", "window closed, run over, opened again", async ({ judge }) => {
  const lab = Lab.open(box);
  try {
    const { id } = await lab.start({ steps: 20 });
    await lab.untilStep(id, 20);
    await sleep(1_500);
    await lab.window();
    await judge(lab, id, { status: "done", step: 20 });
  } finally {
    await lab.close();
  }
});

fault("ssh", "extension host killed", async ({ judge }) => {
  const lab = Lab.open(box);
  try {
    const { id } = await lab.start({ open: true, log: 200_000 });
    let step = 0;
    for (let time = 0; time < 2; time++) {
      const host = await lab.host();
      step = (await lab.until(id, "followed by a new host", ({ state }) => state.step >= step + 8)).state.step;
      await host.kill();
    }
    await lab.host(); // another takes over
    lab.finish(id);
    await judge(lab, id, { status: "done" });
  } finally {
    await lab.close();
  }
});

fault("ssh", "two windows", async ({ judge, note }) => {
  const lab = Lab.open(box);
  try {
    const { id } = await lab.start({ open: true });
    const [one, two] = [await lab.host(), await lab.host()];
    await lab.until(id, "at step 8 here", ({ state }) => state.step >= 8);
    const holder = (): number => (JSON.parse(lab.read(id, ".lease") || "{}") as { pid?: number }).pid ?? 0;
    const first = holder();
    assert.ok([one.pid, two.pid].includes(first), `process ${first} holds the lease`);
    await sleep(1_500);
    assert.equal(holder(), first, "the lease stays where it is while its holder lives");
    await (first === one.pid ? one : two).kill();
    const left = first === one.pid ? two : one;
    await lab.until(id, "followed by the other window", () => holder() === left.pid);
    note("the second window took over from the killed first");
    lab.finish(id);
    await judge(lab, id, { status: "done" });
  } finally {
    await lab.close();
  }
});

fault("ssh", "laptop asleep for an hour", async ({ judge }) => {
  const lab = Lab.open(box);
  // The clocks of this process jump by an hour, as they do when a lid is opened; the connection is the one of before.
  let slept = 0;
  const clock = { ...systemClock, now: () => systemClock.now() + slept, monotonic: () => systemClock.monotonic() + slept * 1000 };
  try {
    const { id } = await lab.start({ open: true });
    await lab.window(clock);
    await lab.until(id, "at step 8 here", ({ state }) => state.step >= 8);
    const calls = ssh.words().length;
    slept = 3_600;
    await until("a new connection after the sleep", () => ssh.words().length > calls);
    lab.finish(id);
    const run = await judge(lab, id, { status: "done" });
    assert.equal(run.state.remote?.unreachable ?? null, null);
  } finally {
    await lab.close();
  }
});

fault("ssh", "laptop asleep while the run ends", async ({ judge }) => {
  const lab = Lab.open(box);
  try {
    const { id } = await lab.start({ open: true });
    const host = await lab.host();
    await lab.until(id, "at step 8 here", ({ state }) => state.step >= 8);
    host.signal("SIGSTOP");
    lab.finish(id);
    await until("the run is over", () => lab.there(id).exit() !== null);
    await sleep(13_000); // longer than the server waits for a sign of life: the connection is gone
    host.signal("SIGCONT");
    await judge(lab, id, { status: "done" });
  } finally {
    await lab.close();
  }
});

fault("ssh", "stopped from a window that did not start it", async ({ judge }) => {
  const lab = Lab.open(box);
  try {
    const { id } = await lab.start({ open: true });
    await lab.window();
    await lab.until(id, "at step 8 here", ({ state }) => state.step >= 8);
    await lab.stop(id);
    const run = await judge(lab, id, { status: "cancelled" });
    assert.ok(run.state.checkpoints.some(({ step }) => step === run.state.step), "it saved where it stopped");
    // And it goes on from there.
    await lab.resume(id);
    await lab.until(id, "running again", ({ state }) => state.attempt === 2 && state.step > run.state.step);
    lab.finish(id);
    await judge(lab, id, { status: "done", attempts: 2 });
  } finally {
    await lab.close();
  }
});
