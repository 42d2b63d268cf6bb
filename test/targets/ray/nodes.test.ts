import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { RemotePlan } from "../../../src/targets/remote/port.ts";
import { RayClient } from "../../../src/targets/remote/ray/rayClient.ts";
import { AppError } from "../../../src/util/errors.ts";
import { fault } from "../shared/fault.ts";
import { Lab } from "../shared/lab.ts";
import { noRay, RayHead } from "./head.ts";
import { contents, RayLab, until, type RayLabOptions } from "./rayLab.ts";
import { noOwnDisk, RayWorker } from "./worker.ts";

/** A cluster of two nodes: the head without GPUs, and one that has them. */
const skip = (await noRay()) ?? (await noOwnDisk());
let head: RayHead;
let client: RayClient;

before(async () => {
  if (skip !== null) return;
  head = await RayHead.open({ misses: 5 });
  client = new RayClient(head.address, () => Promise.resolve(null), {});
}, { timeout: 1_000_000 });

after(async () => {
  client?.dispose();
  await head?.close();
}, { timeout: 60_000 });

/** A test with a lab and a second node, whose disk for the target's folder is its own unless `shared`. */
function withNodes(name: string, body: (lab: RayLab, worker: RayWorker) => Promise<void>, { shared = false, ...options }: RayLabOptions & { shared?: boolean } = {}): void {
  void test(`ray, two nodes: ${name}`, { timeout: 600_000, ...(skip !== null && { skip }) }, async () => {
    const lab = new RayLab(head.address, { resources: { gpus: 1 }, ...options });
    const worker = await RayWorker.open(head, client, shared ? {} : { own: [lab.there] });
    try {
      await body(lab, worker);
    } finally {
      await worker.close();
      await lab.close();
    }
  });
}

/** The same as `lab.untilStep`, for a run on a disk that only its node sees. */
async function untilStep(worker: RayWorker, { remote }: RemotePlan, step: number): Promise<void> {
  const journal = worker.seen(`${remote.dir}/journal.jsonl`);
  await until(`step ${step}, on that node`, () => existsSync(journal) && readFileSync(journal, "utf8").split("stage.progress").length > step);
}

withNodes("a run goes to the node with the GPU, whose disk nobody else sees, and everything is found there", async (lab, worker) => {
  const report = await lab.target.check();
  assert.deepEqual(report.problems.filter(({ reason }) => reason === "resources"), []);
  assert.deepEqual(report.queue?.map(({ gpus }) => gpus).sort(), ["1 GPU", null], JSON.stringify(report.queue));
  const plan = await lab.start(lab.plan({ steps: 40, seconds: 0.2, save: 5 }));
  const first = await lab.target.word(plan.remote, 1);
  assert.ok(["queued", "running"].includes(first.state), first.state);
  const followed = lab.follow(plan);
  await untilStep(worker, plan, 12);
  assert.ok(!existsSync(plan.remote.dir), "nothing of it is on the head");
  assert.equal((await client.job(plan.remote.attempts[0]?.job?.id ?? ""))?.driver_node_id, worker.node.node_id);
  assert.equal((await lab.target.word(plan.remote, 1)).nodes, worker.node.node_name);
  assert.equal((await lab.target.probe(plan.remote, 1)).state, "running");
  await lab.target.stop(plan.remote, 1);
  await followed;
  const files = (dir: string): Map<string, string> => contents(dir, /^mirror\.json$|safetensors$|heartbeat$|^run\.json$|(^|\/)\./);
  assert.deepEqual(files(plan.dir), files(worker.seen(plan.remote.dir)));
  const into = join(lab.dir, "fetched");
  mkdirSync(into);
  await lab.target.fetch(plan.remote, "checkpoints/step-000005", into, () => {});
  assert.deepEqual(readFileSync(join(into, "model.safetensors")), readFileSync(worker.seen(`${plan.remote.dir}/checkpoints/step-000005/model.safetensors`)));

  // Resumed where its files are, although its resources no longer ask for that node.
  const again = await lab.start({ ...lab.plan({ id: plan.id, attempt: 2, before: plan.remote, steps: 40, seconds: 0.1, save: 5 }), spec: { ...plan.spec, target: { ...plan.spec.target, resources: {} } } as typeof plan.spec });
  assert.ok(lab.said.some((line) => line.includes(`pinned to Ray node ${worker.node.node_id}`)), lab.said.join("\n"));
  await lab.follow(again);
  const journal = readFileSync(join(again.dir, "journal.jsonl"), "utf8").trim().split("\n").map((line) => JSON.parse(line) as { type: string; step?: number; resumed_from?: number | null });
  const resumed = journal.filter(({ type }) => type === "run.started").at(-1)?.resumed_from ?? null;
  assert.ok(resumed !== null && resumed >= 10, "it went on from its own checkpoint");
  assert.equal(journal.at(-1)?.step ?? journal.findLast(({ type }) => type === "stage.progress")?.step, 40);
  assert.deepEqual(files(again.dir), files(worker.seen(again.remote.dir)));
});

withNodes("its node goes for good: the end is a node failure, and resuming says that the files went with it", async (lab, worker) => {
  const plan = await lab.start(lab.plan({ steps: 4000, seconds: 0.1, save: 5 }));
  await untilStep(worker, plan, 6);
  worker.powerOff();
  await until("Ray's word", async () => (await lab.target.word(plan.remote, 1)).state === "ended", 300);
  assert.equal((await lab.target.word(plan.remote, 1)).end, "node-failure");
  await until("the node is gone", async () => (await client.nodes())?.every((one) => one.node_id !== worker.node.node_id || one.state !== "ALIVE") === true, 300);
  const again = lab.plan({ id: plan.id, attempt: 2, before: plan.remote });
  await lab.target.prepare(again, () => {});
  await assert.rejects(lab.target.submit(again), (error: unknown) => AppError.is(error, "bad-input") && /the node that had it is gone/.test(error.message));
});

withNodes("on a disk that all nodes share a resumed run is not tied to one", async (lab) => {
  const plan = await lab.start(lab.plan({ steps: 4000 }));
  await lab.untilStep(plan, 6);
  await lab.target.stop(plan.remote, 1);
  await lab.follow(plan);
  const { length } = lab.read(plan, "journal.jsonl");
  const again = await lab.start(lab.plan({ id: plan.id, attempt: 2, before: plan.remote, steps: 9000 }));
  await until("the second attempt's steps", () => lab.read(again, "journal.jsonl").length > length + 500);
  await lab.target.stop(again.remote, 2);
  await lab.follow(again);
  assert.ok(!lab.said.some((line) => line.includes("pinned")), lab.said.join("\n"));
  assert.equal(lab.read(again, "starts").toString(), "1\n2\n");
}, { shared: true });

fault("ray", "node with the run powered off, then resumed on another", async ({ judge }) => {
  const lab = Lab.open({ kind: "ray", address: head.address, resources: { gpus: 1 } });
  let worker = await RayWorker.open(head, client);
  try {
    const { id } = await lab.start({ steps: 60, dt: 0.2 });
    await lab.window();
    await lab.untilStep(id, 5, 300);
    worker.powerOff();
    const { state } = await judge(lab, id, { status: "lost", reason: "scheduler", seconds: 400 });
    assert.ok(state.reason?.kind === "scheduler" && state.reason.end === "node-failure", JSON.stringify(state.reason));
    await worker.close();
    worker = await RayWorker.open(head, client);
    await lab.resume(id);
    await judge(lab, id, { status: "done", step: 60, attempts: 2, seconds: 400 });
  } finally {
    await worker.close();
    await lab.close();
  }
}, { timeout: 900_000, skip });
