import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { after, test } from "node:test";
import { remoteNotes } from "../../../src/cli/status.ts";
import { reportText } from "../../../src/cli/targets.ts";
import { terminalOutput } from "../../../src/cli/output.ts";
import { emptyRunState } from "../../../src/domain/run/reduceRun.ts";
import type { TargetReport } from "../../../src/protocol/remote.ts";
import type { RunResult } from "../../../src/targets/spawn.ts";
import { answeringHost, closedHost, makeStandInSsh } from "../../vscode/standInSsh.ts";
import { report, unreached } from "../domain/targets/reports.ts";
import { BundledCli, repo } from "./bundledCli.ts";

const bundled = await BundledCli.build();
const box = mkdtempSync(join(tmpdir(), "seesaw-cli-targets-"));
after(() => {
  rmSync(box, { recursive: true });
  bundled.dispose();
});
const PATH = [makeStandInSsh(box), process.env["PATH"] ?? ""].join(delimiter);
const root = join(box, "work");
mkdirSync(root);
const sample = join(repo, "media/sample");
writeFileSync(
  join(root, "seesaw.yaml"),
  `seesaw: 1
base: ${sample}/models/m0
skills:
  math: { probes: ${sample}/data/math.probe.jsonl, check: { kind: number-after, marker: so } }
stages:
  - { id: near, recipe: sft, data: ${sample}/data/math.train.jsonl, from: base, on: near }
  - { id: far, recipe: sft, data: ${sample}/data/math.train.jsonl, from: base, on: far }
targets:
  near: { kind: ssh, host: ${answeringHost}, dir: ${box}/there, python: ${process.env["SEESAW_PYTHON"] ?? "python3"} }
  far: { kind: ssh, host: ${closedHost}, dir: ~/seesaw }
`,
);
const cli = (...args: string[]): Promise<RunResult> => bundled.run(root, args, { env: { PATH }, timeout: 120_000 });
const out = terminalOutput(false);

test("targets are listed with their place and what runs on them, and nothing is contacted", async () => {
  const { stdout, code } = await cli("targets");
  assert.equal(code, 0);
  assert.match(stdout, /^near +ssh +here-box +\S+\/there +near$/m);
  assert.match(stdout, /^local +local +this machine +no stage$/m);
  const { targets } = JSON.parse((await cli("targets", "--json")).stdout) as { targets: { target: string; stages: string[] }[] };
  assert.deepEqual(targets.map(({ target, stages }) => [target, stages]), [["local", []], ["near", ["near"]], ["far", ["far"]]]);
  assert.equal(existsSync(join(box, "there")), false);
});

test("check: what cannot be reached is said in a sentence and is exit code 1, in both forms", async () => {
  const { stdout, code } = await cli("targets", "check", "far");
  assert.equal(code, 1);
  assert.match(stdout, /^✗ far {2}closed-box \(SSH\)\n {2}closed-box refused the connection: .*port 9/);
  const json = await cli("targets", "check", "far", "--json");
  assert.equal(json.code, 1);
  const answer = JSON.parse(json.stdout) as { ok: boolean; targets: TargetReport[] };
  assert.equal(answer.ok, false);
  assert.deepEqual([answer.targets[0]?.reachable, answer.targets[0]?.problems[0]?.reason, answer.targets[0]?.python], [false, "no-route", null]);
});

test("check: a machine that answers tells its Python, its packages and its disk", async () => {
  const { stdout } = await cli("targets", "check", "near", "--json");
  const [found] = (JSON.parse(stdout) as { targets: TargetReport[] }).targets;
  assert.equal(found?.reachable, true);
  assert.match(found?.python?.version ?? "", /^3\.\d+\.\d+/);
  assert.ok("torch" in (found?.python?.packages ?? {}));
  assert.ok((found?.disk?.free ?? 0) > 0 && (found?.roundTrip ?? 0) > 0);
});

test("clean: what nobody needs is shown with its size, and goes only with a yes", async () => {
  const nothing = await cli("targets", "clean", "near");
  assert.deepEqual([nothing.code, /Nothing there can go\./.test(nothing.stdout)], [0, true], nothing.stderr);
  const old = join(box, "there/objects/abc");
  mkdirSync(old, { recursive: true });
  writeFileSync(join(old, "data.jsonl"), "x".repeat(2048));
  const at = Date.now() / 1000 - 200_000;
  for (const path of [join(old, "data.jsonl"), old]) utimesSync(path, at, at);
  const asked = await cli("targets", "clean", "near");
  assert.deepEqual([asked.code, /`seesaw targets clean near --yes`/.test(asked.stderr)], [2, true], asked.stderr);
  assert.match(asked.stdout, /^data +abc +2\.0 kB +no run there names it/m);
  const shown = JSON.parse((await cli("targets", "clean", "near", "--json")).stdout) as { bytes: number; cleared: null };
  assert.deepEqual([shown.bytes, shown.cleared, existsSync(old)], [2048, null, true]);
  const gone = await cli("targets", "clean", "near", "--yes");
  assert.deepEqual([gone.code, /^Removed 2\.0 kB in 1 shared folder from near\.$/m.test(gone.stdout), existsSync(old)], [0, true, false], gone.stdout + gone.stderr);
  const wrong = [await cli("targets", "clean"), await cli("targets", "clean", "local"), await cli("targets", "clean", "far", "--yes"), await cli("targets", "clean", "nope")];
  assert.deepEqual(wrong.map(({ code }) => code), [2, 2, 5, 3], wrong.map(({ stderr }) => stderr).join("\n"));
});

test("wrong words are refused with what there is", async () => {
  const unknown = await cli("targets", "check", "nar");
  assert.deepEqual([unknown.code, /There is no target nar .* there are local, near, far\..*near/.test(unknown.stderr)], [3, true], unknown.stderr);
  const verb = await cli("targets", "near");
  assert.equal(verb.code, 2);
  assert.match(verb.stderr, /`seesaw targets check near`/);
  assert.equal((await cli("run", "near", "--dry-run", "--detach")).code, 2);
});

test("a dry run shows the commands, the files with their sizes, and leaves nothing anywhere", async () => {
  const { stdout, code, stderr } = await cli("run", "near", "--dry-run");
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^Dry run of near on near \(here-box\)\nNothing was started and nothing was copied\./);
  assert.match(stdout, /math\.train\.jsonl\n +→ \S+\/there\/objects\/[0-9a-f]{64}\/math\.train\.jsonl/);
  assert.match(stdout, /agent\.py run \S+\/there\/runs\/near-\S+\/attempt-0001 --detach/);
  assert.equal(existsSync(join(box, "there", "runs")), false);
  assert.equal(existsSync(join(root, ".seesaw", "runs")) ? readdirSync(join(root, ".seesaw", "runs")).filter((name) => name.startsWith("near")).length : 0, 0);
  const { dry_run: runs } = JSON.parse((await cli("run", "near", "--dry-run", "--json")).stdout) as { dry_run: { stage: string; files: { bytes: number }[]; commands: object[] }[] };
  assert.equal(runs[0]?.stage, "near");
  assert.ok((runs[0]?.commands.length ?? 0) > 0 && runs[0]?.files.every(({ bytes }) => bytes >= 0));
});

test("a report as text: problems first, columns below each other, packages on one line", () => {
  assert.equal(
    reportText(report, out),
    `✗ cluster  login1 (Slurm)  1 problem · 2 GPUs, 12 GB of 160 GB used · Python 3.11.2 · 42 ms
  n1 lacks peft.
  GPUs           2, 12 GB of 160 GB used
    0: NVIDIA H100  12 GB of 80 GB used · 40 % busy
    1: NVIDIA H100  0 B of 80 GB used · 0 % busy
  Queue          3 running, 5 waiting
    gpu  up · 2 nodes · gpu:4 · 3 running, 5 waiting
    old  down · 1 node · 0 running, 0 waiting
  Python 3.11.2  /envs/trl/bin/python · 1 package missing
    torch 2.4.0, peft missing
  Disk           20 GB free of 1.0 TB
  Versions       slurm 22.05.8
  Round trip     42 ms`,
  );
  assert.equal(reportText(unreached, out), "✗ box  gpu-box (SSH)\n  gpu-box wants a password.");
});

test("status says why a run waits, or since when nobody answers, and what was known last", () => {
  const now = new Date(2026, 10, 30, 16, 0, 0).getTime() / 1000;
  const remote = { target: "cluster", kind: "slurm" as const, address: "login1 (Slurm)", job: "17", word: { state: "queued" as const, reason: "Priority" }, unreachable: null, heard: now - 180, complete: false };
  const state = { ...emptyRunState(), status: "queued" as const, remote };
  assert.deepEqual(remoteNotes({ stage: "math", state }, now), ["math: queued on cluster: others come first (Priority) (login1 (Slurm), job 17). It starts there by itself."]);
  const away = { ...state, status: "unreachable" as const, step: 40, total: 80, remote: { ...remote, unreachable: { since: now - 3600, reason: "no-route" as const, message: "login1 does not answer.", last: "running" as const } } };
  assert.deepEqual(remoteNotes({ stage: "math", state: away }, now), ["math: cluster unreachable since 15:00 (login1 (Slurm), job 17): login1 does not answer. Last known: running at step 40 of 80, heard of 3 min 00 s ago; it may well go on there."]);
  assert.deepEqual(remoteNotes({ stage: "math", state: { ...state, status: "running" } }, now), []);
});
