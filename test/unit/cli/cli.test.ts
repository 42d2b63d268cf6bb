import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { version } from "../../../src/util/version.ts";
import { run, type RunResult } from "../../../src/targets/spawn.ts";
import { BundledCli, repo } from "./bundledCli.ts";

const bundled = await BundledCli.build();
const box = mkdtempSync(join(tmpdir(), "seesaw-cli-"));
after(() => {
  rmSync(box, { recursive: true });
  bundled.dispose();
});

let count = 0;
const folder = (): string => {
  const path = join(box, `w${++count}`);
  mkdirSync(join(path, ".git"), { recursive: true });
  return path;
};
const cli = (cwd: string, ...args: string[]): Promise<RunResult> => bundled.run(cwd, args);
const sample = join(repo, "media/sample/seesaw.yaml");

test("help names every command, the exit codes, and gives examples", async () => {
  const { stdout, code } = await cli(box, "--help");
  assert.equal(code, 0);
  for (const name of ["init", "validate", "run", "status", "logs", "stop", "checkpoints", "flags", "confirm", "drift", "tokens", "benchmark", "compare", "weights", "replay", "report", "targets", "fetch"]) {
    assert.match(stdout, new RegExp(`^  ${name}\\b`, "m"));
    const help = await cli(box, name, "--help");
    assert.match(help.stdout, /Examples:\n  seesaw /, name);
    assert.match(help.stdout, /--json/, `${name} shows the global options`);
  }
  assert.match(stdout, /Exit codes:/);
  assert.doesNotMatch(stdout, /\u001b/);
});

test("the version is the package's", async () => {
  assert.equal(version, (JSON.parse(readFileSync(join(repo, "package.json"), "utf8")) as { version: string }).version);
  assert.equal((await cli(box, "--version")).stdout, `${version}\n`);
});

test("wrong usage is exit code 2 with a hint", async () => {
  const unknown = await cli(box, "validat");
  assert.deepEqual([unknown.code, unknown.stderr], [2, "error: unknown command 'validat'\n(Did you mean validate?)\n"]);
  assert.equal((await cli(box, "run", "--bogus")).code, 2);
  assert.equal((await cli(box, "drift", "--sort", "sideways", "-f", sample)).code, 2);
  const neither = await cli(box, "run", "-f", sample);
  assert.deepEqual([neither.code, neither.stderr], [2, "error: Name the stages to run (math, search, tool, format), or give --all.\n"]);
  const both = await cli(box, "run", "math", "--all", "-f", sample);
  assert.equal(both.code, 2);
});

test("init writes a file that validates but for the paths, and never overwrites", async () => {
  const dir = folder();
  const first = await cli(dir, "init");
  assert.deepEqual([first.code, first.stderr], [0, ""]);
  const text = readFileSync(join(dir, "seesaw.yaml"), "utf8");
  const checked = await cli(dir, "validate", "--json");
  const { valid, diagnostics } = JSON.parse(checked.stdout) as { valid: boolean; diagnostics: { code: string }[] };
  assert.deepEqual([valid, [...new Set(diagnostics.map(({ code }) => code))]], [false, ["missing-file"]]);
  const second = await cli(dir, "init");
  assert.equal(second.code, 2);
  assert.match(second.stderr, /exists already and was left as it is/);
  assert.equal(readFileSync(join(dir, "seesaw.yaml"), "utf8"), text);
});

test("a faulty pipeline is exit code 2 with file, line and column", async () => {
  const dir = folder();
  writeFileSync(join(dir, "seesaw.yaml"), "seesaw: 1\nbase: m\nskills: {}\nstages:\n  - { id: a, recipe: sft, dta: x }\n");
  const { code, stdout } = await cli(dir, "validate");
  assert.equal(code, 2);
  assert.match(stdout, /seesaw\.yaml:5:\d+: error: /);
  const json = await cli(dir, "status", "--json");
  assert.equal(json.code, 2);
  assert.equal((JSON.parse(json.stdout) as { error: string }).error, "bad-pipeline");
});

test("what is not there is exit code 3", async () => {
  const dir = folder();
  const none = await cli(dir, "status");
  assert.deepEqual([none.code, /There is no seesaw\.yaml in .* or above it: make one with `seesaw init`/.test(none.stderr)], [3, true], none.stderr);
  for (const args of [["run", "nope"], ["logs"], ["logs", "math"], ["stop"], ["tokens"], ["drift", "nope"]]) {
    const copy = folder();
    writeFileSync(join(copy, "seesaw.yaml"), readFileSync(sample));
    const { code, stderr } = await cli(copy, ...args);
    assert.equal(code, 3, `${args.join(" ")}: ${stderr}`);
    assert.match(stderr, /^error: [A-Z].*[.)]\n$/s, args.join(" "));
  }
});

test("a Python that is not complete is exit code 5, before anything is written", async () => {
  const dir = folder();
  writeFileSync(join(dir, "seesaw.yaml"), readFileSync(sample, "utf8").replaceAll(/: (data|models)\//g, `: ${repo}/media/sample/$1/`));
  const { code, stderr } = await cli(dir, "run", "math", "--python", "/nowhere/python");
  assert.equal(code, 5, stderr);
  assert.match(stderr, /--python names \/nowhere\/python could not be started: it does not exist/);
  const status = JSON.parse((await cli(dir, "status", "--json")).stdout) as { runs: unknown[] };
  assert.deepEqual(status.runs, []);
});

test("a pipe gets no colours, FORCE_COLOR and --no-color decide", async () => {
  const forced = { ...process.env, FORCE_COLOR: "1", NO_COLOR: "" };
  const argv = bundled.argv("status", "-f", sample);
  assert.doesNotMatch((await cli(box, "status", "-f", sample)).stdout, /\u001b/);
  assert.match((await run(argv, { env: forced })).stdout, /\u001b\[/);
  assert.doesNotMatch((await run([...argv, "--no-color"], { env: forced })).stdout, /\u001b/);
});

test("arguments that cannot be understood are one JSON document too", async () => {
  for (const args of [["--json", "validat"], ["status", "--bogus", "--json"]]) {
    const { code, stdout } = await cli(box, ...args);
    assert.equal(code, 2);
    const { error, message } = JSON.parse(stdout) as { error: string; message: string };
    assert.deepEqual([error, /^unknown (command|option)/.test(message)], ["usage", true]);
  }
  assert.doesNotMatch((await cli(box, "--json", "--help")).stdout, /^\{/m);
});

test("a name that is nearly right gets the right one", async () => {
  const { stderr } = await cli(box, "run", "mth", "-f", sample);
  assert.match(stderr, /Did you mean "math"\?\n$/);
  assert.match((await cli(box, "drift", "serch", "-f", sample)).stderr, /Did you mean "search"\?\n$/);
});

test("a place that cannot be written is a sentence, exit code 5, and leaves nothing behind", async () => {
  const dir = folder();
  writeFileSync(join(dir, "seesaw.yaml"), readFileSync(sample));
  mkdirSync(join(dir, "taken"));
  const report = await cli(dir, "report", "-o", "taken");
  assert.deepEqual([report.code, report.stderr], [5, `error: ${dir}/taken could not be written: it is a folder.\n`]);
  const below = await cli(dir, "report", "-o", "seesaw.yaml/x.html");
  assert.deepEqual([below.code, /could not be written: a file of that name is in the way\.\n$/.test(below.stderr)], [5, true], below.stderr);
  assert.deepEqual(readdirSync(dir).sort(), [".git", "seesaw.yaml", "taken"]);
  assert.equal((await cli(dir, "init", "seesaw.yaml")).code, 3);
});

test("a run that cannot be read is said everywhere, and is not 'not run yet'", async () => {
  const dir = folder();
  writeFileSync(join(dir, "seesaw.yaml"), readFileSync(sample));
  const id = "math-20260101T000000-abcd";
  mkdirSync(join(dir, ".seesaw/runs", id), { recursive: true });
  writeFileSync(join(dir, ".seesaw/runs", id, "run.json"), "{ torn");
  const status = await cli(dir, "status");
  assert.equal(status.code, 0);
  assert.match(status.stdout, /M1 math +unreadable/);
  assert.match(status.stderr, new RegExp(`^${id}: (?!${id})`, "m"));
  for (const name of ["math", id]) {
    const logs = await cli(dir, "logs", name);
    assert.deepEqual([logs.code, logs.stderr.startsWith(`error: ${id}: `)], [6, true], logs.stderr);
  }
  const checkpoints = await cli(dir, "checkpoints");
  assert.match(checkpoints.stdout, new RegExp(`M1: The run ${id} cannot be read\\.`));
  for (const command of ["checkpoints", "flags", "drift"]) assert.match((await cli(dir, command)).stderr, new RegExp(`^${id}: `, "m"), command);
});

test("what is odd about a data file as a whole is said", async () => {
  const dir = folder();
  writeFileSync(join(dir, "seesaw.yaml"), readFileSync(sample));
  writeFileSync(join(dir, "a.jsonl.zst"), Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0, 0, 0, 0]));
  writeFileSync(join(dir, "b.jsonl"), '\ufeff{"text":"a"}\n{"text":"b","text":"c"}\n{"text":\n');
  assert.match((await cli(dir, "replay", "a.jsonl.zst")).stderr, /this is a zstd file; unpack it/);
  const { stderr, code } = await cli(dir, "replay", "b.jsonl");
  assert.equal(code, 0);
  for (const text of [/BOM at the start/, /b\.jsonl:2:\d+: duplicate key "text"/, /b\.jsonl:3:\d+: /]) assert.match(stderr, text);
});
