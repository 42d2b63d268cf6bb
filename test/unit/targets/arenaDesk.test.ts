import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, test } from "node:test";
import type { Pipeline } from "../../../src/domain/pipeline/pipelineModel.ts";
import { FolderRunStore } from "../../../src/storage/runs/folderRunStore.ts";
import { isAlive, thisProcess } from "../../../src/storage/runs/processIdentity.ts";
import { ArenaDesk } from "../../../src/targets/arena/arenaDesk.ts";
import { loadPipeline, requirePipeline } from "../../../src/targets/pipelineFile.ts";
import { run, spawnDetached } from "../../../src/targets/spawn.ts";
import { chainOwners } from "../../../src/targets/stageLock.ts";

const folders: string[] = [];
afterEach(() => folders.splice(0).forEach((folder) => rmSync(folder, { recursive: true, force: true })));

const yaml = `seesaw: 1
base: m0
skills:
  math: { probes: math.jsonl, check: { kind: number-after, marker: so } }
  tool: { probes: tool.jsonl, check: { kind: json-tool-call } }
stages:
  - { id: math, recipe: sft, data: math.jsonl, args: { max_steps: 8 } }
  - { id: tool, recipe: sft, data: tool.jsonl, args: { max_steps: 12 } }
arena:
  seeds: [0, 1]
  remedies: [{ kind: replay, ratio: 0.2 }, { kind: joint }]
`;

async function pipelineIn(text = yaml): Promise<Pipeline> {
  const folder = mkdtempSync(join(tmpdir(), "arena desk "));
  folders.push(folder);
  writeFileSync(join(folder, "seesaw.yaml"), text);
  return requirePipeline(await loadPipeline(join(folder, "seesaw.yaml")));
}

/** A run folder as the runner leaves it, as far as it says how it stands. */
function record(root: string, seed: number, stage: string, events: Record<string, unknown>[]): void {
  const dir = join(root, ".seesaw/arena", `seed-${seed}`, ".seesaw/runs", `${stage}-20260101T000000-aaaa`);
  mkdirSync(join(dir, "attempt-0001"), { recursive: true });
  mkdirSync(join(dir, "checkpoints/step-000008"), { recursive: true });
  const fixture = JSON.parse(readFileSync(new URL("../../fixtures/protocol/run.json", import.meta.url), "utf8")) as object;
  writeFileSync(join(dir, "run.json"), JSON.stringify({ ...fixture, id: `${stage}-20260101T000000-aaaa`, stage, seed, start: { checkpoint: "m0", label: "M0", run: null, step: null } }));
  const lines = events.map((event, seq) => JSON.stringify({ v: 1, seq: seq + 1, t: 1_767_225_600 + seq, attempt: 1, ...event }));
  writeFileSync(join(dir, "journal.jsonl"), lines.map((line) => `${line}\n`).join(""));
}

const services = { runs: new FolderRunStore(), costs: { plan: async () => ({ tokens: 100, time: { seconds: 3 } }) as never }, launcher: { stopRun: () => assert.fail("nothing is stopped") }, traces: async () => ({ open: () => assert.fail("nothing is opened") }), groups: async () => ({ groupOf: () => undefined }), cli: [] as string[], routes: async () => null };

test("looking writes nothing: neither pipelines of seeds nor the mixture", async () => {
  const pipeline = await pipelineIn();
  const desk = new ArenaDesk(services);
  assert.deepEqual(await desk.progress(pipeline), { stages: 8, done: 0, running: [], failed: [], held: false });
  const result = await desk.result(pipeline);
  assert.deepEqual(result.entries.map(({ id, scores }) => [id, scores]), [["chain", null], ["replay-20", null], ["joint", null]]);
  assert.match(desk.report(result, "html"), /Nothing has finished yet/);
  assert.ok(desk.report(result, "scores").startsWith("\ufeffsystem,kind,seed,"));
  (await desk.watch(pipeline, () => {}))();
  assert.deepEqual(readdirSync(pipeline.root), ["seesaw.yaml"]);
});

test("stages of all seeds are counted, failed ones with their reason", async () => {
  const pipeline = await pipelineIn();
  const done = [{ type: "run.started" }, { type: "checkpoint.saved", step: 8, path: "checkpoints/step-000008", kind: "full", final: true, weights_hash: "a", bytes: 1 }, { type: "run.finished", reason: { kind: "done" } }];
  record(pipeline.root, 0, "math", done);
  record(pipeline.root, 1, "math", [{ type: "run.started" }, { type: "run.finished", reason: { kind: "killed", signal: "SIGKILL" } }]);
  const desk = new ArenaDesk(services);
  const { stages, done: finished, failed, running } = await desk.progress(pipeline);
  assert.deepEqual([stages, finished, running], [8, 1, []]);
  assert.deepEqual(failed.map(({ seed, stage }) => [seed, stage]), [[1, "math"]]);
  assert.match(failed[0]?.why ?? "", /SIGKILL/);
});

test("the price is of what is left, each stage asked for once, and unknown where one is", async () => {
  const pipeline = await pipelineIn();
  const asked: string[] = [];
  const plan = (async (_: Pipeline, stage: string) => (asked.push(stage), { tokens: 100, time: { seconds: 3 } })) as never;
  assert.deepEqual(await new ArenaDesk({ ...services, costs: { plan } }).price(pipeline), { systems: 3, seeds: [0, 1], stages: 8, done: 0, tokens: 800, seconds: 24 });
  assert.deepEqual(asked, ["math", "tool", "replay-20-tool", "joint"]);
  const unknown = { plan: (async () => Promise.reject(new Error("no model"))) as never };
  const price = await new ArenaDesk({ ...services, costs: unknown }).price(pipeline);
  assert.deepEqual([price.tokens, price.seconds], [null, null]);
});

test("it is started as a process of its own, with the file and the Python, and its output is kept", async () => {
  const pipeline = await pipelineIn();
  const script = join(pipeline.root, "cli.mjs");
  writeFileSync(script, `console.log(JSON.stringify([process.argv.slice(2), process.cwd(), process.env.ELECTRON_RUN_AS_NODE]));`);
  const desk = new ArenaDesk({ ...services, cli: [script] });
  const { pid, log } = await desk.start(pipeline, "/venv/bin/python", 2);
  assert.ok(pid > 0 && desk.hasOutput(pipeline) && existsSync(log));
  let said = "";
  for (const deadline = Date.now() + 20_000; said === "" && Date.now() < deadline; ) said = (await run([process.execPath, "-e", `setTimeout(() => process.stdout.write(require("node:fs").readFileSync(${JSON.stringify(log)}, "utf8")), 50)`])).stdout;
  assert.deepEqual(JSON.parse(said), [["arena", "--file", pipeline.file, "--python", "/venv/bin/python", "--jobs", "2"], pipeline.root, "1"]);
});

test("an arena that cannot be compiled is a sentence, and is tried again", async () => {
  const pipeline = await pipelineIn(yaml.replace("max_steps: 12", "learning_rate: 0.1"));
  const desk = new ArenaDesk(services);
  await assert.rejects(desk.progress(pipeline), /how long the stage "tool" is: write max_steps/);
  await assert.rejects(desk.progress(pipeline), /how long the stage "tool" is/);
});

test("as many seeds side by side as the setting says, else half of the cores, but one where an accelerator would be shared", async () => {
  const pipeline = await pipelineIn();
  const desk = new ArenaDesk(services);
  assert.deepEqual(await desk.jobs(pipeline, 1), { count: 1, why: "setting" });
  assert.deepEqual(await desk.jobs(pipeline, 9), { count: 2, why: "setting" }, "no more than there are seeds");
  assert.deepEqual(await desk.jobs(pipeline, 0), { count: Math.min(2, Math.max(1, Math.floor(availableParallelism() / 2))), why: "cores" });
  record(pipeline.root, 0, "math", [{ type: "run.started", stage: "math", recipe: "sft", total_steps: 8, device: "NVIDIA H200", resumed_from: null }, { type: "run.finished", reason: { kind: "done" } }]);
  assert.deepEqual(await new ArenaDesk({ ...services, runs: new FolderRunStore() }).jobs(pipeline, 0), { count: 1, why: "accelerator" });
  assert.deepEqual(await desk.jobs(pipeline, 2), { count: 2, why: "setting" });
});

test("stopping ends the arena's process first, then the stages that run; a stopped stage is no failed one", async () => {
  const pipeline = await pipelineIn();
  record(pipeline.root, 0, "math", [{ type: "run.started" }]);
  record(pipeline.root, 1, "math", [{ type: "run.started" }, { type: "run.finished", reason: { kind: "cancelled" } }]);
  const attempt = join(pipeline.root, ".seesaw/arena/seed-0/.seesaw/runs/math-20260101T000000-aaaa/attempt-0001");
  const runs = join(attempt, "../..");
  // As the arena's own process does: it holds the chain until it is told to leave.
  const holder = join(pipeline.root, "holder.mjs");
  writeFileSync(holder, `import { holdChain } from ${JSON.stringify(new URL("../../../src/targets/stageLock.ts", import.meta.url).href)};
const release = await holdChain(${JSON.stringify(runs)}, ["math"]);
process.on("SIGTERM", () => void release().then(() => process.exit()));
setInterval(() => {}, 1000);`);
  await spawnDetached([process.execPath, holder], { cwd: pipeline.root, log: join(pipeline.root, "holder.log"), env: process.env });
  for (const deadline = Date.now() + 20_000; (await chainOwners(runs)).length === 0 && Date.now() < deadline; ) await new Promise((wake) => setTimeout(wake, 50));
  const [owner] = await chainOwners(runs);
  assert.ok(owner, readFileSync(join(pipeline.root, "holder.log"), "utf8"));
  const stopped: string[] = [];
  const desk = new ArenaDesk({ ...services, launcher: { stopRun: async (_root, run) => {
    assert.deepEqual(await chainOwners(runs), [], "the process is still there");
    stopped.push(run);
    return {} as never;
  } } });
  writeFileSync(join(attempt, "started.json"), JSON.stringify({ v: 1, nonce: "n", t: Date.now() / 1000, ...thisProcess() }));
  await desk.stop(pipeline);
  assert.equal(isAlive(owner), false);
  assert.deepEqual([stopped, (await desk.progress(pipeline)).failed], [["math-20260101T000000-aaaa"], []]);
});
