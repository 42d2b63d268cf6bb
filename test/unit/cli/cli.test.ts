import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { version } from "../../../src/cli/version.ts";
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
  for (const name of ["init", "validate", "run", "status", "logs", "stop", "checkpoints", "flags", "drift", "tokens", "replay", "report"]) {
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
