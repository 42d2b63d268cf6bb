import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { runChain, type ChainEvent } from "../../../src/targets/chainRunner.ts";
import { followRun } from "../../../src/targets/followRun.ts";
import { run } from "../../../src/targets/spawn.ts";
import type { RunSpec } from "../../../src/protocol/runSpec.ts";
import type { AttemptSpec } from "../../../src/protocol/attempt.ts";
import { AppError, type ErrorReason } from "../../../src/util/errors.ts";
import { FakeWorkspace } from "./fakeWorkspace.ts";

let box: FakeWorkspace;
beforeEach(() => {
  box = new FakeWorkspace();
});
afterEach(() => box.dispose());

const trusted = { trusted: true };
const reasonIs = (reason: ErrorReason, text: RegExp) => (error: unknown) => {
  assert.ok(AppError.is(error, reason), String(error));
  assert.match(error.message, text);
  return true;
};
const readJson = <T>(...path: string[]): T => JSON.parse(readFileSync(join(...path), "utf8")) as T;
const follow = (id: string) => followRun(box.services.runs, box.root, id, () => {});
const start = async (stage: string, args = {}) => {
  const { pipeline, diagnostics } = await box.pipeline(args);
  return box.services.launcher.startStage(pipeline, diagnostics, stage, trusted);
};

test("a stage starts detached, with everything the recipe needs frozen, and is then up to date", async () => {
  const started = await start("a");
  const spec = readJson<RunSpec>(started.dir, "run.json");
  assert.match(started.id, /^a-\d{8}T\d{6}-[0-9a-f]{4}$/);
  assert.deepEqual([spec.id, spec.index, spec.start.label, spec.start.checkpoint, spec.trusted], [started.id, 1, "M0", join(box.root, "base"), true]);
  assert.deepEqual(spec.inputs.map(({ path }) => path), [join(box.root, "a.jsonl"), join(box.root, "probe.jsonl")]);
  assert.equal(spec.target.python, started.python.command);
  const attempt = readJson<AttemptSpec>(started.dir, "attempt-0001/spec.json");
  assert.deepEqual(attempt.argv, started.argv);
  assert.equal(attempt.env["OMP_WAIT_POLICY"], process.env["OMP_WAIT_POLICY"] === undefined ? "passive" : undefined, "what the person set is kept");
  assert.ok(attempt.env["PYTHONPATH"]?.startsWith(join(box.install, "runner")));
  const ended = await follow(started.id);
  assert.equal(ended.state.status, "done");
  const { pipeline } = await box.pipeline();
  assert.equal((await box.services.launcher.outlook(pipeline, "a")).upToDate?.id, started.id);
  assert.deepEqual(readdirSync(box.runsDir).filter((name) => name.startsWith(".")), []);
});

test("the fingerprint follows what decides the result, and nothing else", async () => {
  const mark = async (args = {}) => (await box.services.launcher.outlook((await box.pipeline(args)).pipeline, "a")).plan.fingerprint;
  const first = await mark({ x: 1, y: 2 });
  assert.equal(await mark({ y: 2, x: 1 }), first, "the order of keys");
  assert.notEqual(await mark({ x: 2, y: 2 }), first, "an argument");
  writeFileSync(join(box.root, "a.jsonl"), '{"text": "other"}\n');
  const data = await mark({ x: 1, y: 2 });
  assert.notEqual(data, first, "the data");
  writeFileSync(join(box.root, "base/model.safetensors"), "other weights");
  assert.notEqual(await mark({ x: 1, y: 2 }), data, "the start weights");
});

test("a stage whose parent has not finished is refused by name", async () => {
  await assert.rejects(start("b"), reasonIs("not-finished", /`b` starts from the last checkpoint of `a`, which has no finished run/));
  assert.deepEqual(readdirSync(box.runsDir), []);
});

test("a stage that is running is not started again", async () => {
  const first = await start("a", { steps: 100 });
  await assert.rejects(start("a", { steps: 100 }), reasonIs("already-running", new RegExp(first.id)));
  await box.services.launcher.stopRun(box.root, first.id, trusted);
  assert.equal((await follow(first.id)).state.status, "cancelled");
});

test("of several windows that start the same stage exactly one wins", async () => {
  await box.pipeline({ steps: 60 });
  const source = (file: string): string => JSON.stringify(join(import.meta.dirname, "../../../src", file));
  const script = `
    const { createServices } = await import(${source("services.ts")});
    const { loadPipeline } = await import(${source("targets/pipelineFile.ts")});
    const { silentLog } = await import(${source("util/log.ts")});
    const services = createServices({ log: silentLog, extensionDir: ${JSON.stringify(box.install)}, storageDir: ${JSON.stringify(join(box.dir, "storage"))} });
    const { pipeline, diagnostics } = await loadPipeline(${JSON.stringify(join(box.root, "seesaw.yaml"))});
    try { console.log("started " + (await services.launcher.startStage(pipeline, diagnostics, "a", { trusted: true })).id); }
    catch (error) { console.log(error.reason + " " + error.message); }
    services.dispose();`;
  const windows = await Promise.all([1, 2, 3].map(() => run([process.execPath, "--input-type=module", "-e", script])));
  const said = windows.map(({ stdout, stderr }) => stdout.trim() || stderr).sort();
  assert.deepEqual(said.map((text) => text.split(" ")[0]), ["already-running", "already-running", "started"], said.join("\n"));
  const id = said[2]?.split(" ")[1] ?? "";
  for (const text of said.slice(0, 2)) assert.match(text, /a-\d{8}T\d{6}-[0-9a-f]{4}/);
  assert.deepEqual(readdirSync(box.runsDir), [id]);
  await box.services.launcher.stopRun(box.root, id, trusted);
  await follow(id);
});

test("a preflight error is the answer, and no run folder is left", async () => {
  const finding = { code: "bad-data", severity: "error", message: "Row 3 has no answer.", fix: "Correct it.", where: "a.jsonl:3" };
  await assert.rejects(start("a", { preflight: [finding] }), reasonIs("bad-input", /^a\.jsonl:3: Row 3 has no answer\. Correct it\.$/));
  assert.deepEqual(readdirSync(box.runsDir), []);
  const warned = await start("a", { preflight: [{ ...finding, severity: "warning" }] });
  assert.deepEqual(warned.notes, ["a.jsonl:3: Row 3 has no answer. Correct it."]);
  await follow(warned.id);
});

test("nothing is started in a workspace that is not trusted", async () => {
  const { pipeline, diagnostics } = await box.pipeline();
  const untrusted = { trusted: false };
  await assert.rejects(box.services.launcher.startStage(pipeline, diagnostics, "a", untrusted), reasonIs("untrusted", /trust this workspace/));
  await assert.rejects(box.services.launcher.python(pipeline, "a", untrusted), reasonIs("untrusted", /trust/));
  await assert.rejects(box.services.launcher.resumeRun(box.root, "x", untrusted), reasonIs("untrusted", /trust/));
  assert.equal(existsSync(join(box.root, ".seesaw")), false);
});

test("an agent that cannot start leaves no run behind", async () => {
  writeFileSync(join(box.install, "runner/seesaw_runner/agent.py"), "import sys\nsys.exit('this agent is broken')\n");
  await assert.rejects(start("a"), reasonIs("agent-failed", /this agent is broken/));
  assert.deepEqual(readdirSync(box.runsDir), []);
});

test("what an interrupted start left is cleaned away by the next one", async () => {
  const first = await start("a");
  await follow(first.id);
  const unborn = "a-20200101T000000-abcd";
  mkdirSync(join(box.runsDir, unborn, "attempt-0001"), { recursive: true });
  writeFileSync(join(box.runsDir, unborn, "run.json"), JSON.stringify({ ...readJson<RunSpec>(first.dir, "run.json"), id: unborn }));
  mkdirSync(join(box.runsDir, `.new-${unborn}`));
  const second = await start("a");
  assert.deepEqual(readdirSync(box.runsDir).sort(), [first.id, second.id].sort());
  await follow(second.id);
});

test("a failed run says why, and resuming makes a second attempt in the same folder", async () => {
  const started = await start("a", { fail_at: 1 });
  const failed = await follow(started.id);
  assert.deepEqual(failed.state.reason, { kind: "failed", code: "nan-loss", message: "The loss became NaN at step 1.", exit_code: 1 });
  const resumed = await box.services.launcher.resumeRun(box.root, started.id, trusted);
  assert.deepEqual([resumed.dir, resumed.attempt], [started.dir, 2]);
  assert.equal((await follow(started.id)).state.status, "done");
  await assert.rejects(box.services.launcher.resumeRun(box.root, started.id, trusted), reasonIs("usage", /is finished/));
  await assert.rejects(box.services.launcher.stopRun(box.root, started.id, trusted), reasonIs("usage", /is not running: it is done/));
});

test("a chain runs in order, skips what is up to date and stops at the first failure", async () => {
  const events: ChainEvent[] = [];
  const chain = async (options: { a?: object; b?: object; force?: boolean } = {}) => {
    events.length = 0;
    const { pipeline, diagnostics } = await box.pipeline(options.a, options.b);
    return runChain(box.services, pipeline, diagnostics, { ...trusted, stages: ["a", "b"], force: options.force ?? false, onEvent: (event) => events.push(event) });
  };
  const seen = (type: ChainEvent["type"]): string[] => events.filter((event) => event.type === type).map(({ stage }) => stage);
  const failing = await chain({ a: {}, b: { fail_at: 2 } });
  assert.deepEqual([seen("started"), seen("finished"), failing.failed?.stage], [["a", "b"], ["a", "b"], "b"]);
  const second = await chain();
  assert.deepEqual([seen("up-to-date"), seen("started"), second.failed], [["a"], ["b"], null]);
  assert.equal(second.runs[1]?.spec.start.run, second.runs[0]?.id);
  assert.deepEqual([await chain().then(({ runs }) => runs.map(({ id }) => id)), seen("up-to-date")], [second.runs.map(({ id }) => id), ["a", "b"]]);
  await chain({ force: true });
  assert.deepEqual(seen("started"), ["a", "b"]);
  const { pipeline, diagnostics } = await box.pipeline();
  const again = await box.services.launcher.startStage(pipeline, diagnostics, "a", trusted);
  await follow(again.id);
  await chain();
  assert.deepEqual([seen("up-to-date"), seen("started")], [["a"], ["b"]], "a stage follows a new run of its parent");
});

test("leaving a chain leaves its stage running; the next one joins it", async () => {
  const args = { steps: 40 };
  const { pipeline, diagnostics } = await box.pipeline(args);
  const controller = new AbortController();
  const leaving = runChain(box.services, pipeline, diagnostics, { ...trusted, stages: ["a"], signal: controller.signal, onEvent: ({ type }) => type === "progress" && controller.abort() });
  await assert.rejects(leaving, reasonIs("cancelled", /goes on/));
  const window = box.freshServices();
  const events: string[] = [];
  const joined = await runChain(window, pipeline, diagnostics, { ...trusted, stages: ["a"], join: true, onEvent: ({ type }) => events.push(type) });
  window.dispose();
  assert.deepEqual([events[1], joined.runs[0]?.state.status, joined.runs[0]?.state.step], ["joined", "done", 40]);
});

test("a check function's module decides the result: in the folder the check names, in the root, as a package", async () => {
  const { pipeline } = await box.pipeline();
  const plan = async (check: object) => {
    const changed = { ...pipeline, skills: pipeline.skills.map((skill) => ({ ...skill, check })) } as typeof pipeline;
    return (await box.services.launcher.outlook(changed, "a")).plan;
  };
  for (const [file, check] of [
    ["checks/mine.py", { kind: "function", function: "mine:ok", path: join(box.root, "checks") }],
    ["mine.py", { kind: "function", function: "mine:ok" }],
    ["pack/deep/__init__.py", { kind: "function", function: "pack.deep:ok" }],
  ] as const) {
    mkdirSync(dirname(join(box.root, file)), { recursive: true });
    writeFileSync(join(box.root, file), "def ok(text, row): return True\n");
    const before = await plan(check);
    assert.ok(before.inputs.some(({ path }) => path === join(box.root, file)), file);
    writeFileSync(join(box.root, file), "def ok(text, row): return False\n");
    assert.notEqual((await plan(check)).fingerprint, before.fingerprint, file);
  }
});

test("where the clock was set back, a new run is still the newest", async () => {
  const first = await start("a");
  await follow(first.id);
  const file = join(first.dir, "run.json");
  const spec = readJson<RunSpec>(file);
  writeFileSync(file, JSON.stringify({ ...spec, created: spec.created + 86_400 }));
  // The folder's own time stamp says that something changed in it.
  writeFileSync(join(first.dir, "touched"), "");
  box.services.dispose();
  box.services = box.freshServices();
  const second = await start("a", { x: 1 });
  assert.equal((await box.services.runs.list(box.root)).runs[0]?.id, second.id);
  await follow(second.id);
});
