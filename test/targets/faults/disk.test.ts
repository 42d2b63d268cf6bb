import assert from "node:assert/strict";
import { mkdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before } from "node:test";
import { run } from "../../../src/targets/spawn.ts";
import { fault } from "../shared/fault.ts";
import { Lab, fillDisk } from "../shared/lab.ts";
import { leave } from "../shared/leftovers.ts";
import { SshLab } from "../shared/sshd.ts";

// The target's disk is full: before the start, while the files are copied, in the middle of the training.
const skip = process.getuid?.() === 0 ? null : "a small disk needs root to be mounted";
let ssh: SshLab;
before(async () => {
  ssh = await SshLab.open();
  await ssh.server("lo");
});
after(() => ssh.close());

/** A disk of so many megabytes; `close` takes it away. */
async function disk(megabytes: number): Promise<{ dir: string; close: () => Promise<void> }> {
  const dir = join(tmpdir(), `sw-disk-${process.pid}-${megabytes}`);
  mkdirSync(dir, { recursive: true });
  const folder = leave({ kind: "folder", path: dir });
  const mount = leave({ kind: "mount", path: dir });
  const { code, stderr } = await run(["mount", "-t", "tmpfs", "-o", `size=${megabytes}m`, "tmpfs", dir], { timeout: 20_000 });
  assert.equal(code, 0, stderr);
  return {
    dir,
    close: async () => {
      await mount();
      await folder();
    },
  };
}

fault("ssh", "target's disk full in the middle", async ({ judge }) => {
  const small = await disk(120);
  const lab = Lab.open({ kind: "ssh", host: "lo", dir: join(small.dir, "seesaw") });
  try {
    const { id } = await lab.start({ open: true, save: 10 });
    await lab.window();
    await lab.until(id, "at step 12 here", ({ state }) => state.step >= 12);
    fillDisk(join(small.dir, "filler"));
    const run = await judge(lab, id, { status: "failed" });
    assert.equal(run.state.reason?.kind === "failed" && run.state.reason.code, "disk-full");
    rmSync(join(small.dir, "filler"));
    await lab.resume(id);
    lab.finish(id);
    await judge(lab, id, { status: "done", attempts: 2 });
  } finally {
    await lab.close();
    await small.close();
  }
}, { skip });

fault("ssh", "target's disk full before the start", async ({ judge, nothingStarted }) => {
  const small = await disk(110);
  const lab = Lab.open({ kind: "ssh", host: "lo", dir: join(small.dir, "seesaw") });
  try {
    fillDisk(join(small.dir, "filler"));
    await assert.rejects(lab.start({ steps: 10 }), (error: Error) => {
      assert.match(error.message, /full|space|room/i);
      return true;
    });
    await nothingStarted(lab);
    rmSync(join(small.dir, "filler"));
    const { id } = await lab.start({ steps: 10, save: 10 });
    await lab.window();
    await judge(lab, id, { status: "done", step: 10 });
  } finally {
    await lab.close();
    await small.close();
  }
}, { skip });
