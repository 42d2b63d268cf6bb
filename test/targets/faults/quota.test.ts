import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before } from "node:test";
import { reachOf } from "../../../src/targets/remote/reachError.ts";
import { fault } from "../shared/fault.ts";
import { Lab, until } from "../shared/lab.ts";
import { identify, sleep } from "../shared/leftovers.ts";
import { QuotaDisk, noQuota } from "../shared/quota.ts";
import { SshLab } from "../shared/sshd.ts";

// A person's quota on the target is used up, while its disk has room for much more.
const skip = noQuota();
if (skip !== null) console.log(`!!! LEFT OUT: quotas: ${skip}`);
let ssh: SshLab;
before(async () => {
  ssh = await SshLab.open();
  await ssh.server("lo");
});
after(() => ssh.close());

fault("ssh", "target's quota used up before the start", async ({ judge, nothingStarted }) => {
  const disk = await QuotaDisk.make(100);
  const lab = Lab.open({ kind: "ssh", host: "lo", dir: join(disk.dir, "seesaw") });
  try {
    disk.useUp();
    await assert.rejects(lab.start({ steps: 5 }), (error: Error) => {
      assert.equal(reachOf(error), "not-writable");
      assert.match(error.message, /Your disk quota on lo is used up.*`quota -s`.*`lfs quota`/);
      return true;
    });
    await nothingStarted(lab);
    const { pipeline } = await lab.pipeline();
    const { problems } = await lab.services.targetDesk.check(pipeline, "box", { trusted: true });
    assert.match(problems.find(({ reason }) => reason === "not-writable")?.message ?? "", /disk quota/);
    await disk.makeRoom();
    const { id } = await lab.start({ steps: 5, save: 5 });
    await lab.window();
    await judge(lab, id, { status: "done", step: 5 });
  } finally {
    await lab.close();
    await disk.close();
  }
}, { skip });

fault("ssh", "target's quota used up in the middle", async ({ judge }) => {
  const disk = await QuotaDisk.make(100);
  const lab = Lab.open({ kind: "ssh", host: "lo", dir: join(disk.dir, "seesaw") });
  try {
    const { id } = await lab.start({ open: true, save: 10 });
    await lab.window();
    await lab.until(id, "at step 12 here", ({ state }) => state.step >= 12);
    const { pid, start } = lab.there(id).started();
    disk.useUp();
    await until("the training has ended", () => identify(pid)?.start !== start, 120);
    await sleep(3_000); // its agent finds that not even its end can be written, and goes on trying
    await disk.makeRoom();
    const { state } = await judge(lab, id, { status: "failed" });
    assert.equal(state.reason?.kind === "failed" && state.reason.code, "disk-full");
    assert.match(state.reason?.kind === "failed" ? state.reason.message : "", /quota is used up/);
    await lab.resume(id);
    lab.finish(id);
    await judge(lab, id, { status: "done", attempts: 2 });
  } finally {
    await lab.close();
    await disk.close();
  }
}, { skip });
