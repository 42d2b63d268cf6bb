import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { parsePipeline } from "../../../src/domain/pipeline/pipeline.ts";
import type { SshSettings } from "../../../src/protocol/remote.ts";
import { FolderRunStore } from "../../../src/storage/runs/folderRunStore.ts";
import { parseGpus } from "../../../src/targets/localReport.ts";
import { SshTarget } from "../../../src/targets/remote/sshTarget.ts";
import { TargetDesk } from "../../../src/targets/targetDesk.ts";
import { AppError } from "../../../src/util/errors.ts";

const box = mkdtempSync(join(tmpdir(), "seesaw-desk-"));
after(() => rmSync(box, { recursive: true }));
const runnerDir = join(import.meta.dirname, "../../../runner");
const log = { debug() {}, info() {}, warn() {}, error() {} };

const { pipeline } = parsePipeline(
  `seesaw: 1
base: m0
skills: { math: { probes: math.jsonl, check: { kind: text } } }
stages: [{ id: math, recipe: sft, data: math.jsonl }]
targets: { far: { kind: ssh, host: closed-box, dir: ~/seesaw }, silent: { kind: ssh, host: silent-box, dir: ~/seesaw } }
`,
  join(box, "seesaw.yaml"),
);
assert.ok(pipeline);
const config = join(box, "config");
writeFileSync(config, "Host closed-box\n  HostName 127.0.0.1\n  Port 9\n");
const silent = join(box, "silent");
writeFileSync(silent, "#!/bin/sh\nexec sleep 8\n", { mode: 0o755 });

let made = 0;
const desk = new TargetDesk({
  runnerDir,
  log,
  runs: new FolderRunStore(),
  remote: (named, id) => {
    made += 1;
    const settings = named.targets.find((target) => target.id === id) as SshSettings;
    return Promise.resolve(new SshTarget(settings, { runnerDir, log, token: () => Promise.resolve(null), sshProgram: id === "silent" ? [silent] : ["ssh", "-F", config] } as ConstructorParameters<typeof SshTarget>[1]));
  },
});

test("nothing is contacted from a workspace that is not trusted, nor a target that is not named", async () => {
  await assert.rejects(desk.check(pipeline, "far", { trusted: false }), (error: unknown) => AppError.is(error, "untrusted"));
  await assert.rejects(desk.check(pipeline, "fra", { trusted: true }), (error: unknown) => AppError.is(error, "not-found") && /there are local, far, silent/.test(error.message));
  assert.equal(made, 0);
});

test("that a target cannot be reached is an answer, with its reason and a sentence", async () => {
  const report = await desk.check(pipeline, "far", { trusted: true });
  assert.deepEqual([report.target, report.kind, report.address, report.reachable], ["far", "ssh", "closed-box", false]);
  assert.deepEqual(report.problems.map(({ reason }) => reason), ["no-route"]);
  assert.match(report.problems[0]?.message ?? "", /closed-box refused the connection/);
});

test("a target that never answers is given up, and a check that is stopped stops", async () => {
  const report = await desk.check(pipeline, "silent", { trusted: true, limitMs: 1500 });
  assert.deepEqual([report.reachable, report.problems[0]?.reason], [false, "no-route"]);
  assert.match(report.problems[0]?.message ?? "", /silent-box did not answer within 2 s/);
  const abort = new AbortController();
  const check = desk.check(pipeline, "silent", { trusted: true, signal: abort.signal });
  abort.abort();
  await assert.rejects(check, (error: unknown) => AppError.is(error, "cancelled"));
});

test("this machine tells its Python and its disk", async () => {
  const report = await desk.check(pipeline, "local", { trusted: true });
  assert.deepEqual([report.kind, report.reachable, report.address], ["local", true, "this machine"]);
  assert.ok((report.disk?.free ?? 0) > 0 && (report.disk?.total ?? 0) >= (report.disk?.free ?? 0));
  assert.equal(report.python === null, report.problems.some(({ reason }) => reason === "no-python"));
});

test("GPUs as nvidia-smi tells them: MiB become bytes, what the driver cannot tell is null", () => {
  assert.deepEqual(parseGpus("NVIDIA H200, 143771, 4, 0\nGrace, Hopper, [N/A], [N/A], 17\n\n"), [
    { name: "NVIDIA H200", total: 143771 * 2 ** 20, used: 4 * 2 ** 20, utilisation: 0 },
    { name: "Grace, Hopper", total: null, used: null, utilisation: 17 },
  ]);
  assert.deepEqual(parseGpus(""), []);
});
