import assert from "node:assert/strict";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, before } from "node:test";
import { fault } from "../shared/fault.ts";
import { Lab } from "../shared/lab.ts";
import { SshLab } from "../shared/sshd.ts";

// What a training prints, and a clock that is wrong.
let ssh: SshLab;
before(async () => {
  ssh = await SshLab.open();
  await ssh.server("lo");
});
after(() => ssh.close());
const box = { kind: "ssh", host: "lo" };

fault("ssh", "log that is no UTF-8", async ({ judge }) => {
  const lab = Lab.open(box);
  try {
    const { id } = await lab.start({ steps: 30, bytes: true, log: 0 });
    await lab.window();
    await judge(lab, id, { status: "done", step: 30 });
    assert.throws(() => new TextDecoder("utf-8", { fatal: true }).decode(readFileSync(join(lab.there(id).dir, "out.log"))), "what is tested is no UTF-8");
  } finally {
    await lab.close();
  }
});

fault("ssh", "log of 1 GB", async ({ judge, note }) => {
  const lab = Lab.open(box);
  try {
    const { id } = await lab.start({ steps: 16, dt: 0.05, save: 16, log: 64 << 20 });
    await lab.window();
    const since = Date.now();
    await judge(lab, id, { status: "done", step: 16, seconds: 240 });
    const size = statSync(join(lab.local(id), "out.log")).size;
    assert.ok(size >= 1 << 30, `${size} bytes`);
    note(`${Math.round(size / (1 << 20))} MiB in ${((Date.now() - since) / 1000).toFixed(0)} s; this process has ${Math.round(process.memoryUsage().rss / (1 << 20))} MiB`);
    assert.ok(process.memoryUsage().rss < 900 << 20, "following a large log takes little memory");
  } finally {
    await lab.close();
  }
});

for (const [name, offset] of [["behind", -600], ["ahead", 600]] as const) {
  fault("ssh", `target's clock 10 min ${name}`, async ({ judge }) => {
    // Everything of ours that runs there, station, agent and training, reads another clock; its files have the disk's times.
    await ssh.server(name, { env: { PYTHONPATH: join(import.meta.dirname, "../light/otherClock"), CLOCK_OFFSET: String(offset) } });
    const lab = Lab.open({ kind: "ssh", host: name });
    try {
      const { id } = await lab.start({ open: true, clock: offset });
      await lab.window();
      await lab.until(id, "running at step 10", ({ state }) => state.step >= 10 && state.status === "running");
      lab.finish(id);
      await judge(lab, id, { status: "done" });
      // The training's first event and the agent's last are of that clock.
      const times = lab.there(id).journal.trim().split("\n").map((line) => (JSON.parse(line) as { t: number }).t - Date.now() / 1000 - offset);
      for (const shift of [times[0], times.at(-1)]) assert.ok(shift !== undefined && Math.abs(shift) < 300, `${shift} s`);
    } finally {
      await lab.close();
    }
  });
}
