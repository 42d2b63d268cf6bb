import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { afterEach, before, beforeEach, test } from "node:test";
import { appendFileSync, cpSync, readFileSync, writeFileSync } from "node:fs";
import { followRun } from "../../../src/targets/followRun.ts";
import { run, type RunResult } from "../../../src/targets/spawn.ts";
import { FakeWorkspace } from "../targets/fakeWorkspace.ts";
import { BundledCli } from "./bundledCli.ts";

// `run`, `stop` and `logs` as processes, with the real agent and a stand-in recipe.
let bundle: BundledCli;
let box: FakeWorkspace;
before(async () => {
  bundle = await BundledCli.build();
  return () => bundle.dispose();
});
beforeEach(() => {
  box = new FakeWorkspace();
  cpSync(bundle.dir, join(box.install, "dist"), { recursive: true });
});
afterEach(() => box.dispose());

const argv = (...args: string[]): string[] => [process.execPath, join(box.install, "dist/cli.js"), ...args];
const env = (): NodeJS.ProcessEnv => ({ ...process.env, XDG_CACHE_HOME: join(box.dir, "cache"), NO_COLOR: "1", FORCE_COLOR: undefined, SEESAW_PYTHON: undefined });
const cli = (...args: string[]): Promise<RunResult> => run(argv(...args), { cwd: box.root, env: env(), timeout: 60_000 });
const newest = async () => (await box.services.runs.list(box.root)).runs[0];

test("a stage is followed to its end; then it is up to date", async () => {
  await box.pipeline();
  const first = await cli("run", "a");
  assert.equal(first.code, 0, first.stderr);
  assert.match(first.stdout, /^✓ a  M1  2 steps  .*loss 0\.500\n$/);
  assert.match(first.stderr, /^a: starting \(1 of 1\)\n/);
  const second = await cli("run", "a");
  assert.match(second.stdout, /^✓ a  up to date \(a-\d{8}T\d{6}-[0-9a-f]{4}\)\n$/);
  assert.equal((await cli("run", "b", "--json")).code, 0);
});

test("a failure is exit code 1 with its reason and what to do; --resume goes on", async () => {
  await box.pipeline({ fail_at: 1 });
  const failed = await cli("run", "--all");
  assert.equal(failed.code, 1);
  assert.match(failed.stdout, /^✗ a  failed after .*\. It failed \(nan-loss\): The loss became NaN at step 1\.\n$/);
  assert.match(failed.stderr, /The chain stopped at a: `seesaw logs a` shows its output, `seesaw run a --resume` goes on/);
  const resumed = await cli("run", "a", "--resume");
  assert.equal(resumed.code, 0, resumed.stderr);
  assert.equal((await newest())?.state.attempt, 2);
  assert.equal((await cli("run", "a", "--resume")).code, 3);
});

test("an interrupt leaves the stage running; others see it, and stop ends it", async () => {
  await box.pipeline({ steps: 200 });
  const child = spawn(argv("run", "a")[0] ?? "", argv("run", "a").slice(1), { cwd: box.root, env: env(), stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  while ((await newest())?.state.status !== "running") await new Promise((resolve) => setTimeout(resolve, 50));
  child.kill("SIGINT");
  const code = await new Promise((resolve) => child.once("close", resolve));
  assert.equal(code, 130);
  assert.match(said, /a goes on without this window \(a-.*\)\. Follow it with `seesaw logs a -f`, stop it with `seesaw stop a`/);
  assert.equal((await newest())?.state.status, "running");
  const second = await cli("run", "a");
  assert.deepEqual([second.code, /Stage `a` is already running as a-/.test(second.stderr)], [4, true], second.stderr);
  const stopped = await cli("stop", "--json");
  assert.equal(stopped.code, 0, stopped.stderr);
  assert.deepEqual((JSON.parse(stopped.stdout) as { stopped: { status: string }[] }).stopped.map(({ status }) => status), ["cancelled"]);
  assert.equal((await cli("stop", "a")).code, 2);
});

test("on a terminal one line is rewritten, and a second Ctrl-C stops the stage too", async () => {
  await box.pipeline({ steps: 200 });
  const ended = await run(["python3", join(import.meta.dirname, "terminal.py"), "█", "Press Ctrl-C again", "--", ...argv("run", "a")], { cwd: box.root, env: { ...env(), TERM: "xterm" }, timeout: 60_000 });
  const { code, output } = JSON.parse(ended.stdout) as { code: number; output: string };
  assert.equal(code, 130, output);
  assert.match(output, /\r\u001b\[2Ka {2}█/);
  assert.match(output, /\d+\/200  loss \d\.\d{3}  100 tokens\/s  ETA 1\.0 s/);
  assert.match(output, /a was stopped \(cancelled\)/);
  assert.equal((await newest())?.state.status, "cancelled");
});

test("logs shows the output or the events, and follows to the end", async () => {
  await box.pipeline({ steps: 10, pause: 0.1 });
  assert.equal((await cli("run", "a", "--detach")).code, 0);
  const followed = await cli("logs", "-f");
  assert.equal(followed.stdout, Array.from({ length: 10 }, (_, i) => `step ${i + 1}\n`).join(""));
  assert.match(followed.stderr, /It finished\./);
  assert.equal((await cli("logs", "a", "-n", "2")).stdout, "step 9\nstep 10\n");
  const events = (await cli("logs", "a", "-n", "1", "--json")).stdout;
  assert.equal((JSON.parse(events) as { type: string }).type, "run.finished");
});

test("a detached chain goes on without its terminal", async () => {
  await box.pipeline();
  const started = await cli("run", "--all", "--detach", "--json");
  const { event, log } = JSON.parse(started.stdout) as { event: string; log: string };
  assert.deepEqual([started.code, event, log], [0, "detached", join(box.root, ".seesaw/chain.log")]);
  for (let tries = 0; tries < 300 && (await newest())?.stage !== "b"; tries++) await new Promise((resolve) => setTimeout(resolve, 50));
  const last = await newest();
  assert.equal((await followRun(box.services.runs, box.root, last?.id ?? "", () => {})).state.status, "done");
});

test("runs by the beginning of their id; runs of a stage that is gone; a journal with damaged lines", async () => {
  await box.pipeline();
  await cli("run", "a");
  await cli("run", "a", "--force");
  const id = (await newest())?.id ?? "";
  assert.equal((await cli("logs", id.slice(0, -1))).stdout, "step 1\nstep 2\n");
  const both = await cli("logs", "a-2");
  assert.deepEqual([both.code, /Several runs begin with `a-2` \(a-.*, a-.*\): give more of the id\./.test(both.stderr)], [2, true], both.stderr);
  const near = await cli("logs", `${id}x`);
  assert.deepEqual([near.code, near.stderr.endsWith(`Did you mean "${id}"?\n`)], [3, true], near.stderr);
  appendFileSync(join(box.runsDir, id, "journal.jsonl"), "garbage\n");
  const text = readFileSync(join(box.root, "seesaw.yaml"), "utf8");
  assert.match((await cli("status")).stderr, new RegExp(`^${id}: 1 line of its journal cannot be read`, "m"));
  writeFileSync(join(box.root, "seesaw.yaml"), text.replace("id: a,", "id: c,"));
  assert.match((await cli("status")).stderr, /^There are also runs of a, which .*seesaw\.yaml no longer has/m);
});

test("without SQLite the chain and its rows can still be seen; only traces cannot", async () => {
  await box.pipeline();
  const [node = "", ...rest] = argv();
  const without = (...args: string[]) => run([node, "--no-experimental-sqlite", ...rest, ...args], { cwd: box.root, env: env() });
  for (const args of [["checkpoints"], ["flags"], ["status"], ["replay", "a.jsonl"]]) {
    const { code, stderr } = await without(...args);
    assert.equal(code, 0, `${args.join(" ")}: ${stderr}`);
  }
  const drift = await without("drift", "--json");
  assert.deepEqual([drift.code, (JSON.parse(drift.stdout) as { error: string }).error], [5, "sqlite-missing"]);
});

test("a command of the person's own is shown before it runs", async () => {
  await box.pipeline();
  const yaml = join(box.root, "seesaw.yaml");
  writeFileSync(yaml, readFileSync(yaml, "utf8").replace(/id: a, .*/, `id: a, recipe: command, options: { run: [python, "my train.py", "{start}"] } }`));
  const shown = await cli("run", "a", "--python", "/no/such/python");
  assert.match(shown.stderr, /^a: starting \(1 of 1\)\na runs your own command in .*work:\n {2}python 'my train\.py' \{start\}\n/);
  const json = await cli("run", "a", "--json", "--python", "/no/such/python");
  assert.deepEqual((JSON.parse(json.stdout.split("\n")[0] ?? "") as { command: unknown }).command, { line: "python 'my train.py' {start}", shell: false, cwd: null });
});

test("--seeds runs the stage with each seed, beside the chain; status tells them apart", { timeout: 180_000 }, async () => {
  await box.pipeline();
  const ran = await cli("run", "a", "--seeds", "0,2");
  assert.equal(ran.code, 0, ran.stderr);
  assert.match(ran.stdout, /^✓ a seed 0  2 steps .*\n✓ a seed 2  2 steps .*loss 0\.500  a-\S+\n$/);
  const status = await cli("status", "--no-refresh");
  assert.match(status.stdout, /^M1 a +done .*\n +seed 2 +done .*\nM2 b +not run yet/m);
  const json = JSON.parse((await cli("status", "--json", "--no-refresh")).stdout) as { seed: number; stages: { newest: string }[]; runs: { id: string; seed: number }[] };
  assert.deepEqual([json.seed, json.runs.map(({ seed }) => seed)], [0, [2, 0]]);
  assert.equal(json.stages[0]?.newest, json.runs[1]?.id, "the chain's own");
  const again = await cli("run", "a", "--seeds", "2", "--json");
  const said = again.stdout.trim().split("\n").map((line) => JSON.parse(line) as { event: string; seed?: number });
  assert.deepEqual(said.map(({ event, seed }) => [event, seed]), [["up-to-date", 2], ["result", undefined]]);
  for (const [args, text] of [[["--seeds", "x"], /no list of seeds/], [["b", "--seeds", "1"], /exactly one stage/], [["--seeds", "1,2", "--resume"], /give the one seed/]] as const) {
    const wrong = await cli("run", "a", ...args);
    assert.equal(wrong.code, 2, wrong.stdout);
    assert.match(wrong.stderr, text);
  }
  await box.pipeline({ fail_at: 1 });
  const failed = await cli("run", "a", "--seeds", "4,2");
  assert.equal(failed.code, 1);
  assert.match(failed.stdout, /^✗ a seed 4  failed .*NaN at step 1\. \(a-\S+\)\n✗ a seed 2  failed /);
  assert.match(failed.stderr, /`seesaw logs a-\S+` shows its output, `seesaw run a --resume --seeds 4` goes on with it/);
  const resumed = await cli("run", "a", "--resume", "--seeds", "2");
  assert.equal(resumed.code, 0, resumed.stderr);
  assert.match((await cli("run", "a", "--resume", "--seeds", "2")).stderr, /The newest run of `a` with seed 2, a-\S+, is finished/);
});

test("--seeds on a terminal: a second Ctrl-C stops every run that has started, and no other begins", { timeout: 120_000 }, async () => {
  await box.pipeline({ steps: 200 });
  const ended = await run(["python3", join(import.meta.dirname, "terminal.py"), "seed 5 1", "Press Ctrl-C again", "--", ...argv("run", "a", "--seeds", "0,5,7%2")], { cwd: box.root, env: { ...env(), TERM: "xterm" }, timeout: 90_000 });
  const { code, output } = JSON.parse(ended.stdout) as { code: number; output: string };
  assert.equal(code, 130, output);
  assert.match(output, /2 runs of a go on without this window \(a-\S+, a-\S+\); seeds that had not started do not start\. `seesaw stop RUN` stops one, `seesaw stop --all` all that runs\./);
  assert.match(output, /Press Ctrl-C again now to stop them as well\./);
  assert.match(output, /Stopped: a-\S+ \(cancelled\), a-\S+ \(cancelled\)\./);
  assert.deepEqual((await box.services.runs.list(box.root)).runs.map(({ spec, state }) => [spec.seed, state.status]), [[5, "cancelled"], [0, "cancelled"]]);
});

test("--dry-run --seeds shows the job array word for word, and asks nobody", { timeout: 120_000 }, async () => {
  await box.pipeline();
  const file = join(box.root, "seesaw.yaml");
  writeFileSync(file, `${readFileSync(file, "utf8").replace("id: a,", "id: a, on: cluster,")}targets:\n  cluster: { kind: slurm, host: login1, python: /shared/python, dir: /shared/me, resources: { partition: gpu } }\n`);
  const shown = await cli("run", "a", "--seeds", "0-4%2", "--dry-run");
  assert.equal(shown.code, 0, shown.stderr);
  assert.match(shown.stdout, /\* One array of 5 tasks, each a run of its own: task 0 is seed 0 \(a-\S+\), task 1 is seed 1 /);
  assert.match(shown.stdout, /^#SBATCH --array=0-4%2$/m);
  assert.match(shown.stdout, /slurm_job\.py --array \/shared\/me\/arrays\/[0-9a-f]{32}\/runs\.json 1$/m);
  assert.equal((shown.stdout.match(/→ \/shared\/me\/runs\/a-\S+\/run\.json/g) ?? []).length, 5);
  await box.pipeline();
  assert.match((await cli("run", "a", "--seeds", "3,4", "--dry-run")).stdout, /Shown is the run with seed 3; those with 4 differ by the seed alone, and run one after the other/);
});
