import assert from "node:assert/strict";
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, before } from "node:test";
import { fault } from "../shared/fault.ts";
import { Lab, until } from "../shared/lab.ts";
import { signalIt, sleep } from "../shared/leftovers.ts";
import { FarHost, noNamespaces } from "../shared/net.ts";
import { SshLab, type SshServer } from "../shared/sshd.ts";
import { writeBlocks } from "../shared/bigFile.ts";

// The cable between this machine and the target's is pulled at the worst moments.
const skip = await noNamespaces();
let ssh: SshLab;
let far: FarHost;
let server: SshServer;
before(async () => {
  if (skip !== null) return;
  ssh = await SshLab.open();
  far = await FarHost.open();
  server = await ssh.server("far", { host: far });
});
after(async () => {
  if (skip !== null) return;
  await ssh.close();
  await far.close();
});
const box = { kind: "ssh", host: "far" };

fault("ssh", "link cut for 1 s", async ({ judge }) => {
  const lab = Lab.open(box);
  try {
    const { id } = await lab.start({ open: true });
    await lab.window();
    await lab.until(id, "at step 8 here", ({ state }) => state.step >= 8);
    await far.cut();
    await sleep(1_000);
    await far.mend();
    const { step } = (await lab.run(id)).state;
    await lab.until(id, "followed on", ({ state }) => state.step > step + 5);
    lab.finish(id);
    const run = await judge(lab, id, { status: "done" });
    assert.equal(run.state.remote?.unreachable ?? null, null);
  } finally {
    await far.mend();
    await lab.close();
  }
}, { skip });

fault("ssh", "link cut for 30 s", async ({ judge }) => {
  const lab = Lab.open(box);
  try {
    const { id } = await lab.start({ open: true });
    await lab.window();
    const before = await lab.until(id, "at step 8 here", ({ state }) => state.step >= 8);
    await far.cut();
    const since = Date.now();
    const cut = await lab.until(id, "unreachable", ({ state }) => state.status === "unreachable", 60);
    // What was known stays; that it cannot be reached is no word about the run.
    assert.equal(cut.state.remote?.unreachable?.last, "running");
    assert.ok(cut.state.step >= before.state.step && cut.state.reason === null);
    await sleep(Math.max(0, 30_000 - (Date.now() - since)));
    assert.equal((await lab.run(id)).state.status, "unreachable");
    await far.mend();
    await lab.until(id, "running again", ({ state }) => state.status === "running" && state.step > cut.state.step);
    lab.finish(id);
    await judge(lab, id, { status: "done" });
  } finally {
    await far.mend();
    await lab.close();
  }
}, { skip });

fault("ssh", "link cut during the upload", async ({ judge, note }) => {
  // 14 MB named by the command's words, so an input that is copied by its hash (a larger one would be data of the command's own).
  const lab = Lab.open(box, { run: ["{python}", "train.py", "blob.bin"] });
  try {
    writeBlocks(join(lab.root, "blob.bin"), 14 << 20);
    const part = (): number => Math.max(0, ...partsOf(lab.target).map((path) => statSync(path, { throwIfNoEntry: false })?.size ?? 0));
    let cutAt = 0;
    const cutting = until("a part of the upload is there", () => (cutAt = part()) > 0, 300, () => "", 1).then(() => far.cut());
    const first = lab.start({ steps: 20 }).then((started) => ({ started, error: null }), (error: unknown) => ({ started: null, error }));
    await cutting;
    const left = Math.max(cutAt, part());
    const firstEnd = await Promise.race([first, sleep(25_000).then(() => null)]);
    await far.mend();
    const ended = firstEnd ?? (await first);
    note(`cut at ${cutAt} of ${14 << 20} bytes, ${left} bytes stayed`);
    // Either it went on by itself when the cable was back, or it said so and the next start goes on where this one stopped.
    if (ended.error !== null) assert.match(String(ended.error), /far|reach/i);
    const id = ended.started?.id ?? (await lab.start({ steps: 20 })).id;
    await lab.window();
    await judge(lab, id, { status: "done", step: 20 });
    assert.deepEqual(partsOf(lab.target), [], "no part stays");
    const { length } = (await lab.runs()).filter((run) => lab.there(run).claims() > 0);
    assert.equal(length, 1, "one run was started");
  } finally {
    await far.mend();
    await lab.close();
  }
}, { skip });

fault("ssh", "link cut during the reply to the submission", async ({ judge, note }) => {
  const lab = Lab.open(box);
  try {
    // As soon as the agent has claimed the attempt, its answer can no longer come through: the server's side is stopped in that
    // moment, then the cable is pulled.
    const lies = (name: RegExp) => (): boolean => partsIn(join(lab.target, "runs"), name).length > 0;
    const cutting = (async (): Promise<void> => {
      await until("the attempt is prepared", lies(/^spec\.json$/), 300, () => "", 1);
      const sessions = server.sessions();
      await until("an agent has claimed the attempt", lies(/^claim$/), 300, () => "", 1);
      for (const one of sessions) signalIt(one, "SIGSTOP");
      await far.cut();
      for (const one of sessions) signalIt(one, "SIGCONT");
    })();
    const first = lab.start({ steps: 20 }).then(({ id }) => id, (error: unknown) => String(error));
    await cutting;
    const said = await Promise.race([first, sleep(40_000).then(() => "no answer in 40 s")]);
    note(/^math-/.test(said) && lab.said.every((line) => !line.includes("was lost")) ? "the answer was faster than the cut" : (lab.said.find((line) => line.includes("was lost")) ?? said).slice(0, 160));
    const [id] = readdirSync(join(lab.target, "runs"));
    assert.ok(id !== undefined);
    assert.ok((await lab.runs()).includes(id), "the run is known here although nobody answered");
    await far.mend();
    await first;
    await lab.window();
    await judge(lab, id, { status: "done", step: 20 });
    assert.equal(lab.remoteFile(id).attempts[0]?.state, "submitted", "the lost submission was looked up");
  } finally {
    await far.mend();
    await lab.close();
  }
}, { skip });

function partsIn(folder: string, name: RegExp): string[] {
  if (!existsSync(folder)) return [];
  try {
    return readdirSync(folder, { recursive: true }).map(String).filter((path) => name.test(path.split("/").at(-1) ?? "")).map((path) => join(folder, path));
  } catch {
    return []; // a folder went away while it was read
  }
}

const partsOf = (folder: string): string[] => partsIn(folder, /\.part$/);
