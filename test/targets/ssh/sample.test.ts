import assert from "node:assert/strict";
import { join } from "node:path";
import { existsSync } from "node:fs";
import { after, before, test } from "node:test";
import { fault } from "../shared/fault.ts";
import { Lab } from "../shared/lab.ts";
import { sampleChain } from "../shared/sampleChain.ts";
import { SshLab } from "../shared/sshd.ts";

// The real recipes on the sample's model, over a real ssh.
let ssh: SshLab;
before(async () => {
  ssh = await SshLab.open();
  await ssh.server("lo");
});
after(() => ssh.close());

test("ssh: the sample chain, each stage from the checkpoint that stayed on the target, as on this machine", { timeout: 1_200_000 }, async () => {
  const lab = Lab.open({ kind: "ssh", host: "lo" }, { real: true });
  try {
    await sampleChain(lab);
  } finally {
    await lab.close();
  }
});

fault("ssh", "the recipe `command` as it ships", async ({ judge }) => {
  const lab = Lab.open({ kind: "ssh", host: "lo" }, { real: true });
  try {
    const { id } = await lab.start({ steps: 10, dt: 0.2, save: 5 });
    await lab.window();
    const run = await judge(lab, id, { status: "done", step: 10, seconds: 150 });
    assert.deepEqual(run.state.checkpoints.map(({ step }) => step), [5, 10]);
    assert.ok(run.state.probes.length > 0 && existsSync(join(lab.local(id), run.state.probes[0]?.trace ?? "")), "its traces are here");
  } finally {
    await lab.close();
  }
}, { timeout: 300_000 });
