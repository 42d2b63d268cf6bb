import assert from "node:assert/strict";
import { copyFileSync, existsSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import type { Diagnostic, Pipeline } from "../../../../src/domain/pipeline/pipelineModel.ts";
import type { AttemptSpec } from "../../../../src/protocol/attempt.ts";
import type { RemoteFile, RemoteSettings } from "../../../../src/protocol/remote.ts";
import type { RunSpec } from "../../../../src/protocol/runSpec.ts";
import { followRun } from "../../../../src/targets/followRun.ts";
import { FileHasher } from "../../../../src/targets/hashFiles.ts";
import { Launcher, type StartedRun } from "../../../../src/targets/launcher.ts";
import { loadPipeline, requirePipeline } from "../../../../src/targets/pipelineFile.ts";
import type { RemoteTarget } from "../../../../src/targets/remote/port.ts";
import { ReachError } from "../../../../src/targets/remote/reachError.ts";
import { RemoteWatch } from "../../../../src/targets/remote/remoteWatch.ts";
import { SshTarget } from "../../../../src/targets/remote/sshTarget.ts";
import { RemoteTargets, type AdapterDeps } from "../../../../src/targets/remote/targets.ts";
import { AppError, type ErrorReason } from "../../../../src/util/errors.ts";
import { silentLog } from "../../../../src/util/log.ts";
import { FakeWorkspace } from "../fakeWorkspace.ts";

const repo = join(import.meta.dirname, "../../../..");
const python = join(repo, ".venv/bin/python");
const trusted = { trusted: true };

let box: FakeWorkspace;
let targets: RemoteTargets;
let launcher: Launcher;
let watch: RemoteWatch;
let stopWatch: () => Promise<void>;
/** What the adapter does in the place of a real one; a test may break a part of it. */
let spoil: (target: RemoteTarget) => void = () => {};

beforeEach(() => {
  box = new FakeWorkspace();
  for (const name of ["station.py", "job.py"]) if (existsSync(join(repo, "runner/seesaw_runner", name))) copyFileSync(join(repo, "runner/seesaw_runner", name), join(box.install, "runner/seesaw_runner", name));
  spoil = () => {};
  targets = new RemoteTargets({ runnerDir: join(box.install, "runner"), log: silentLog, token: () => Promise.resolve(null) }, ssh);
  launcher = new Launcher({ runnerDir: join(box.install, "runner"), runs: box.services.runs, hasher: new FileHasher(null), log: silentLog, targets });
  watch = new RemoteWatch({ target: (settings) => targets.of(settings), log: silentLog, pollMs: 200 });
  stopWatch = watch.watch(box.root);
});
afterEach(async () => {
  await stopWatch();
  targets.dispose();
  box.dispose();
});

/** The real adapter, over a shell of this machine instead of ssh. */
async function ssh(settings: RemoteSettings, deps: AdapterDeps): Promise<RemoteTarget> {
  assert.equal(settings.kind, "ssh");
  const target = new SshTarget(settings as RemoteSettings & { kind: "ssh" }, { ...deps, sshProgram: [join(import.meta.dirname, "loopback.sh")] });
  spoil(target);
  return Promise.resolve(target);
}

async function pipelineOf({ a = {}, b = {}, on = ["box", "box"] }: { a?: object; b?: object; on?: [string, string] } = {}): Promise<{ pipeline: Pipeline; diagnostics: Diagnostic[] }> {
  const stage = (id: string, args: object, where: string): string => `  - { id: ${id}, recipe: sft, data: ${id}.jsonl, args: ${JSON.stringify(args)}, on: ${where} }\n`;
  const machine = (name: string): string => `  ${name}: { kind: ssh, host: ${name}, dir: ${join(box.dir, name)}, python: ${python} }\n`;
  writeFileSync(join(box.root, "seesaw.yaml"), `seesaw: 1\nbase: base\nskills:\n  s: { probes: probe.jsonl, check: { kind: text } }\nstages:\n${stage("a", a, on[0])}${stage("b", b, on[1])}targets:\n${machine("box")}${machine("other")}`);
  const loaded = await loadPipeline(join(box.root, "seesaw.yaml"));
  return { pipeline: requirePipeline(loaded), diagnostics: loaded.diagnostics };
}
const start = async (stage: string, options: Parameters<typeof pipelineOf>[0] = {}, more = {}): Promise<StartedRun> => {
  const { pipeline, diagnostics } = await pipelineOf(options);
  return launcher.startStage(pipeline, diagnostics, stage, { ...trusted, ...more });
};
const follow = (id: string) => followRun(box.services.runs, box.root, id, () => {}, AbortSignal.timeout(120_000));
const readJson = <T>(...path: string[]): T => JSON.parse(readFileSync(join(...path), "utf8")) as T;
const reasonIs = (reason: ErrorReason, text: RegExp) => (error: unknown) => {
  assert.ok(AppError.is(error, reason), String(error));
  assert.match(error.message, text);
  return true;
};

test("a stage runs on its machine, and its chain goes on from the checkpoint where it lies", { timeout: 480_000 }, async () => {
  const told: string[] = [];
  const first = await start("a", {}, { onCopy: (what: string) => told.push(what) });
  const ended = await follow(first.id);
  assert.equal(ended.state.status, "done", JSON.stringify(ended.state.reason));
  assert.ok(told.some((what) => what.includes("box")), told.join("; "));
  const there = join(box.dir, "box");
  const remote = readJson<RemoteFile>(first.dir, "remote.json");
  assert.deepEqual([remote.dir, remote.target, remote.attempts[0]?.state], [join(there, "runs", first.id), "box", "submitted"]);
  // The two sides: local paths here, the machine's own there, and nothing of ours left in what was sent.
  const [local, sent] = [readJson<RunSpec>(first.dir, "run.json"), readJson<RunSpec>(remote.dir, "run.json")];
  assert.equal(local.data, join(box.root, "a.jsonl"));
  assert.ok(!JSON.stringify([sent, readJson<AttemptSpec>(remote.dir, "attempt-0001/spec.json")]).includes(box.root));
  assert.equal(readFileSync(sent.data ?? "", "utf8"), readFileSync(join(box.root, "a.jsonl"), "utf8"));
  // The weights stay there.
  assert.deepEqual(readdirSync(join(first.dir, "checkpoints/step-000002")), ["seesaw.json"]);
  assert.equal(readFileSync(join(first.dir, "journal.jsonl"), "utf8"), readFileSync(join(remote.dir, "journal.jsonl"), "utf8"));

  const { pipeline } = await pipelineOf();
  const outlook = await launcher.outlook(pipeline, "b");
  assert.equal(outlook.plan.start.run, first.id);
  assert.equal(outlook.plan.weightsHash, ended.state.checkpoints[0]?.weightsHash);
  assert.equal((await launcher.outlook(pipeline, "a")).upToDate?.id, first.id);
  const second = await start("b");
  assert.equal((await follow(second.id)).state.status, "done");
  assert.equal(readJson<RunSpec>(there, "runs", second.id, "run.json").start.checkpoint, join(remote.dir, "checkpoints/step-000002"));
  assert.equal(readdirSync(join(there, "models")).length, 1, "only the base was sent");
  assert.deepEqual(readdirSync(box.runsDir).filter((name) => name.startsWith(".new-")), []);
});

test("weights that lie elsewhere are told of, fetched on request, and fetched before a stage of another machine starts", { timeout: 480_000 }, async () => {
  const first = await start("a");
  const ended = await follow(first.id);
  const folder = join(first.dir, "checkpoints/step-000002");
  await assert.rejects(new FileHasher(null).model(folder), reasonIs("not-found", new RegExp(`run ${first.id} at step 2 lie on \`box\` .*seesaw fetch ${first.id} --step 2`)));
  const second = await start("b", { on: ["box", "other"] });
  assert.ok(second.notes.some((note) => note.includes(`The weights of ${first.id} were copied here from box`)), second.notes.join("\n"));
  assert.equal((await follow(second.id)).state.status, "done");
  assert.deepEqual(readFileSync(join(folder, "model.safetensors")), readFileSync(join(box.dir, "box/runs", first.id, "checkpoints/step-000002/model.safetensors")));
  assert.deepEqual(readdirSync(join(first.dir, "checkpoints")), ["step-000002"]);
  assert.deepEqual(await launcher.fetchCheckpoint(box.root, first.id, null, trusted), { folder, fetched: false });
  // Weights that are not those of the journal are not taken.
  rmSync(join(folder, "model.safetensors"));
  writeFileSync(join(box.dir, "box/runs", first.id, "checkpoints/step-000002/model.safetensors"), "other");
  await assert.rejects(launcher.fetchCheckpoint(box.root, first.id, 2, trusted), reasonIs("bad-input", /are not those that the run saved/));
  await assert.rejects(launcher.fetchCheckpoint(box.root, first.id, 7, trusted), reasonIs("not-found", /saved no checkpoint at step 7: it has 2/));
  assert.equal(ended.state.checkpoints.length, 1);
});

test("experts and models that lie on other machines are fetched and sent, each once", { timeout: 480_000 }, async () => {
  for (const recipe of ["merge", "router"]) copyFileSync(join(box.install, "runner/seesaw_runner/recipes/sft.py"), join(box.install, `runner/seesaw_runner/recipes/${recipe}.py`));
  const stages = `stages:
  - { id: a, recipe: sft, data: a.jsonl, from: base, on: box }
  - { id: b, recipe: sft, data: b.jsonl, from: base, on: local }
  - { id: mix, recipe: merge, from: base, on: other, options: { method: linear, models: [{ model: a, weight: 1 }, { model: b, weight: 1 }] } }
  - { id: pick, recipe: router, data: a.jsonl, on: other, options: { experts: { s: a } } }
`;
  await pipelineOf();
  writeFileSync(join(box.root, "seesaw.yaml"), readFileSync(join(box.root, "seesaw.yaml"), "utf8").replace(/stages:\n[^]*?(?=targets:)/, stages));
  const loaded = await loadPipeline(join(box.root, "seesaw.yaml"));
  const pipeline = requirePipeline(loaded);
  const run = async (stage: string): Promise<StartedRun> => {
    const one = await launcher.startStage(pipeline, loaded.diagnostics, stage, trusted);
    const { state } = await follow(one.id);
    assert.equal(state.status, "done", JSON.stringify(state.reason));
    return one;
  };
  const [a, b] = [await run("a"), await run("b")];
  const description = await launcher.describeStage(pipeline, loaded.diagnostics, "mix", trusted);
  assert.ok(description.notes.some((note) => /lies on box and would be copied here first/.test(note)), description.notes.join("\n"));
  const weights = { a: join(box.dir, "box/runs", a.id, "checkpoints/step-000002/model.safetensors"), b: join(b.dir, "checkpoints/step-000002/model.safetensors") };
  const mix = await run("mix");
  assert.ok(mix.notes.some((note) => note.includes(`The weights of ${a.id} were copied here from box`)), mix.notes.join("\n"));
  const pick = await run("pick");
  assert.deepEqual(pick.notes.filter((note) => note.includes("copied here")), [], "they are here by now");
  const there = (id: string): RunSpec => readJson<RunSpec>(box.dir, "other/runs", id, "run.json");
  for (const [id, name] of [[mix.id, "a"], [mix.id, "b"], [pick.id, "a"]] as const) {
    const { checkpoint = "" } = there(id).models?.[name] ?? {};
    assert.ok(checkpoint.startsWith(join(box.dir, "other/models/")), checkpoint);
    assert.deepEqual(readFileSync(join(checkpoint, "model.safetensors")), readFileSync(weights[name]));
  }
  assert.equal(there(mix.id).models?.["a"]?.checkpoint, there(pick.id).models?.["a"]?.checkpoint);
});

test("a local stage gets its start from the machine where it lies", { timeout: 480_000 }, async () => {
  const first = await start("a");
  assert.equal((await follow(first.id)).state.status, "done");
  const second = await start("b", { on: ["box", "local"] });
  assert.equal((await follow(second.id)).state.status, "done");
  assert.ok(second.notes.some((note) => note.includes("were copied here from box")), second.notes.join("\n"));
  assert.ok(existsSync(join(first.dir, "checkpoints/step-000002/model.safetensors")));
});

test("a failed preflight and a failed copy leave no run", { timeout: 300_000 }, async () => {
  const preflight = [{ code: "data", severity: "error", message: "No row can be used", fix: "Correct the file" }];
  await assert.rejects(start("a", { a: { preflight } }), reasonIs("bad-input", /No row can be used\. Correct the file\./));
  assert.deepEqual([readdirSync(join(box.dir, "box/runs")), readdirSync(join(box.dir, "box/work"))], [[], []], "nothing is left there that nobody would know as theirs");
  spoil = (target) => {
    target.prepare = () => Promise.reject(new ReachError("no-route", "box does not answer."));
  };
  await assert.rejects(start("a", { on: ["other", "box"] }), reasonIs("unreachable", /does not answer/));
  assert.deepEqual(readdirSync(box.runsDir).filter((name) => !name.startsWith(".lock")), []);
});

test("a lost answer keeps the run, which its supervisor finds; a refusal leaves none", { timeout: 480_000 }, async () => {
  let submits = 0;
  spoil = (target) => {
    const submit = target.submit.bind(target);
    target.submit = async (plan) => {
      submits += 1;
      await submit(plan);
      throw new ReachError("no-route", "The link was cut.");
    };
  };
  const first = await start("a");
  assert.match(first.notes.join("\n"), /looked up and never started twice/);
  assert.equal((await follow(first.id)).state.status, "done");
  assert.equal(submits, 1);
  assert.equal(readJson<RemoteFile>(first.dir, "remote.json").attempts[0]?.state, "submitted");
  spoil = (target) => {
    target.submit = () => Promise.reject(new AppError("bad-input", "There is no partition gpu."));
  };
  await assert.rejects(start("a", { a: { x: 1 }, on: ["other", "box"] }), reasonIs("bad-input", /no partition/));
  assert.deepEqual(readdirSync(box.runsDir).filter((name) => !name.startsWith(".")), [first.id]);
});

test("a run is stopped and resumed where it is, whatever seesaw.yaml says of the target now", { timeout: 480_000 }, async () => {
  const first = await start("a", { a: { steps: 400, pause: 0.1 } });
  while ((await box.services.runs.list(box.root)).runs[0]?.state.step === 0) await new Promise((resolve) => setTimeout(resolve, 200));
  await assert.rejects(start("a", { a: { steps: 400, pause: 0.1 } }), reasonIs("already-running", new RegExp(first.id)));
  await launcher.stopRun(box.root, first.id, trusted);
  assert.equal((await follow(first.id)).state.status, "cancelled");
  writeFileSync(join(box.root, "seesaw.yaml"), readFileSync(join(box.root, "seesaw.yaml"), "utf8").replaceAll("host: box", "host: elsewhere"));
  const again = await launcher.resumeRun(box.root, first.id, trusted);
  assert.equal(again.attempt, 2);
  assert.deepEqual(readJson<RemoteFile>(first.dir, "remote.json").attempts.map(({ attempt, state }) => [attempt, state]), [[1, "submitted"], [2, "submitted"]]);
  await launcher.stopRun(box.root, first.id, trusted);
  assert.equal((await follow(first.id)).state.attempt, 2);
  assert.equal(readJson<AttemptSpec>(box.dir, "box/runs", first.id, "attempt-0002/spec.json").epoch, 2);
});

test("a dry run tells it all and does nothing", { timeout: 60_000 }, async () => {
  const { pipeline, diagnostics } = await pipelineOf();
  const description = await launcher.describeStage(pipeline, diagnostics, "a", trusted);
  assert.ok(description.commands.some(({ argv }) => argv.join(" ").includes("seesaw_runner.recipes.sft")));
  assert.ok(description.files.some(({ local, remote }) => local === join(box.root, "a.jsonl") && remote.startsWith(join(box.dir, "box/objects"))));
  assert.ok(!existsSync(join(box.dir, "box")) && !existsSync(box.runsDir));
  await assert.rejects(launcher.describeStage(pipeline, diagnostics, "b", trusted), reasonIs("not-finished", /no finished run/));
  await assert.rejects(launcher.describeStage(pipeline, diagnostics, "a", { trusted: false }), reasonIs("untrusted", /trust/));
});
