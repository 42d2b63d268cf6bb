import assert from "node:assert/strict";
import { copyFileSync, existsSync, readdirSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { followRun } from "../../../../src/targets/followRun.ts";
import { FileHasher } from "../../../../src/targets/hashFiles.ts";
import { Launcher } from "../../../../src/targets/launcher.ts";
import { loadPipeline, requirePipeline } from "../../../../src/targets/pipelineFile.ts";
import { RemoteWatch } from "../../../../src/targets/remote/remoteWatch.ts";
import { SshTarget } from "../../../../src/targets/remote/sshTarget.ts";
import { RemoteTargets } from "../../../../src/targets/remote/targets.ts";
import { TargetDesk } from "../../../../src/targets/targetDesk.ts";
import type { SshSettings } from "../../../../src/protocol/remote.ts";
import { AppError } from "../../../../src/util/errors.ts";
import { silentLog } from "../../../../src/util/log.ts";
import { FakeWorkspace } from "../fakeWorkspace.ts";
import { python, repo } from "./loop.ts";

const trusted = { trusted: true };

test("runs that the chain has left behind go from their machine, with what only they used; the chain goes on", { timeout: 600_000 }, async () => {
  const box = new FakeWorkspace();
  for (const name of ["station.py", "node_check.py"]) if (existsSync(join(repo, "runner/seesaw_runner", name))) copyFileSync(join(repo, "runner/seesaw_runner", name), join(box.install, "runner/seesaw_runner", name));
  const runnerDir = join(box.install, "runner");
  const targets = new RemoteTargets({ runnerDir, log: silentLog, token: () => Promise.resolve(null) }, (settings, deps) => Promise.resolve(new SshTarget(settings as SshSettings, { ...deps, sshProgram: [join(import.meta.dirname, "loopback.sh")] })));
  const { runs } = box.services;
  const launcher = new Launcher({ runnerDir, runs, hasher: new FileHasher(null), log: silentLog, targets });
  const desk = new TargetDesk({ runnerDir, log: silentLog, runs, remote: (pipeline, id) => targets.ofPipeline(pipeline, id) });
  const watch = new RemoteWatch({ target: (settings) => targets.of(settings), log: silentLog, pollMs: 200 });
  const stop = watch.watch(box.root);
  const far = join(box.dir, "far");
  const pipelineOf = async (data: string): ReturnType<typeof loadPipeline> => {
    writeFileSync(join(box.root, "seesaw.yaml"), `seesaw: 1\nbase: base\nskills:\n  s: { probes: probe.jsonl, check: { kind: text } }\nstages:\n  - { id: a, recipe: sft, data: ${data}, on: box }\n  - { id: b, recipe: sft, data: b.jsonl, on: box }\ntargets:\n  box: { kind: ssh, host: box, dir: ${far}, python: ${python} }\n`);
    return loadPipeline(join(box.root, "seesaw.yaml"));
  };
  const start = async (stage: string, data: string): Promise<string> => {
    const loaded = await pipelineOf(data);
    const { id } = await launcher.startStage(requirePipeline(loaded), loaded.diagnostics, stage, trusted);
    const ended = await followRun(runs, box.root, id, () => {}, AbortSignal.timeout(240_000));
    assert.equal(ended.state.status, "done", JSON.stringify(ended.state.reason));
    return id;
  };
  const there = (): string[] => readdirSync(join(far, "runs")).sort();
  try {
    writeFileSync(join(box.root, "a2.jsonl"), '{"prompt": "other", "completion": "rows"}\n');
    const first = await start("a", "a.jsonl");
    const made = await start("b", "a.jsonl");
    const second = await start("a", "a2.jsonl");
    const pipeline = requirePipeline(await pipelineOf("a2.jsonl"));
    await assert.rejects(desk.cleaning(pipeline, "box", { trusted: false }), (error) => AppError.is(error, "untrusted"));
    await assert.rejects(desk.cleaning(pipeline, "local", trusted), (error) => AppError.is(error, "usage"));
    // The newest run of `b` was made from the first of `a`: both stay.
    const held = await desk.cleaning(pipeline, "box", trusted);
    assert.deepEqual(held.items, []);
    assert.deepEqual(Object.fromEntries(held.staying.map(({ run, why }) => [run, why])), { [second]: "it is the newest run of a", [first]: `${made} was made from it`, [made]: "it is the newest run of b" });
    const again = await start("b", "a2.jsonl");
    // Everything was last wanted some days ago.
    const at = Date.now() / 1000 - 300_000;
    for (const kind of ["objects", "models", "runner"]) for (const name of readdirSync(join(far, kind))) for (const path of [...readdirSync(join(far, kind, name)).map((one) => join(far, kind, name, one)), join(far, kind, name)]) utimesSync(path, at, at);
    const plan = await desk.cleaning(pipeline, "box", trusted);
    assert.deepEqual(plan.items.filter(({ kind }) => kind === "runs").map(({ name }) => name).sort(), [first, made].sort());
    assert.equal(plan.items.filter(({ kind }) => kind === "objects").length, 1, "only the rows of the first run are nobody's: all else is shared");
    assert.ok(plan.bytes > 0 && !plan.items.some(({ kind }) => kind === "models" || kind === "runner"), JSON.stringify(plan.items));
    const cleared = await desk.clean(pipeline, "box", plan.items, trusted);
    assert.deepEqual([cleared.failed, cleared.left, there()], [[], 0, [second, again].sort()]);
    assert.ok(!existsSync(join(far, "work", first)) && existsSync(join(far, "work", second)));
    // What was copied here of it stays; what would need it says so; a second look finds nothing.
    assert.equal((await runs.list(box.root)).runs.length, 4);
    await assert.rejects(launcher.fetchCheckpoint(box.root, first, null, trusted), (error) => AppError.is(error, "not-found") && /was removed from `box` when it was cleaned up/.test(error.message));
    assert.deepEqual((await desk.cleaning(pipeline, "box", trusted)).items, []);
    writeFileSync(join(box.root, "b.jsonl"), '{"prompt": "yet", "completion": "another"}\n');
    const last = await start("b", "a2.jsonl");
    assert.ok(there().includes(last), "the chain goes on from the checkpoint that stayed");
  } finally {
    await stop();
    targets.dispose();
    box.dispose();
  }
});
