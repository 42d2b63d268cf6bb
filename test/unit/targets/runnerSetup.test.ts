import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { packagesOf, RunnerSetup, type SetupOptions } from "../../../src/targets/runnerSetup.ts";
import { AppError } from "../../../src/util/errors.ts";
import { silentLog } from "../../../src/util/log.ts";

const repository = join(dirname(fileURLToPath(import.meta.url)), "../../..");
const windows = process.platform === "win32";
/** pip asks no index: what is installed comes from this disk, or nothing does. */
const env = { ...process.env, PIP_NO_INDEX: "1", PIP_CONFIG_FILE: windows ? "nul" : "/dev/null" };

/** A runner folder whose packages are `requirements`, with a probe that finds `missing` missing. */
function fixture(requirements: string, missing: string[] = []): { folder: string; setup: RunnerSetup; options: SetupOptions } {
  const dir = mkdtempSync(join(tmpdir(), "seesaw setup "));
  const [folder, runnerDir] = [join(dir, "project"), join(dir, "runner")];
  mkdirSync(folder);
  mkdirSync(join(runnerDir, "tiny"), { recursive: true });
  writeFileSync(join(runnerDir, "requirements.txt"), requirements.replaceAll("TINY", join(runnerDir, "tiny")));
  const packages = Object.fromEntries(missing.map((name) => [name, null]));
  writeFileSync(join(runnerDir, "probe.py"), `import json, sys\nprint(json.dumps({"seesaw_probe": 1, "version": "%d.%d.0" % sys.version_info[:2], "executable": sys.executable, "prefix": sys.prefix, "packages": json.loads('${JSON.stringify(packages)}')}))\n`);
  return { folder, setup: new RunnerSetup({ runnerDir, log: silentLog }), options: { trusted: true, python: { top: folder }, env } };
}

const quiet = { step: () => {}, line: () => {} };

test("sets up an environment, is idempotent, and tells every line", { timeout: 120_000 }, async () => {
  const { folder, setup, options } = fixture("# nothing to fetch\npip\n");
  const plan = await setup.plan(folder, options);
  assert.ok(plan.base !== null);
  assert.deepEqual(plan.commands.map((argv) => argv.slice(1, 4)), [["-m", "venv", join(folder, ".venv")], ["-m", "pip", "install"]]);
  assert.deepEqual(plan.packages, ["pip"]);
  assert.ok((plan.free ?? 0) > 0);
  assert.ok(!existsSync(plan.venv), "a plan only looks");
  const told: string[] = [];
  const choice = await setup.run(plan, options, { step: (name) => told.push(name), line: (text) => told.push(text) });
  assert.equal(choice.command, plan.python);
  assert.deepEqual(told.slice(0, 2), ["venv", "packages"]);
  assert.ok(told.some((line) => /Requirement already satisfied: pip/.test(line)), told.join("\n"));
  // Again: what is there is used.
  const marker = join(plan.venv, "kept");
  writeFileSync(marker, "");
  const again = await setup.plan(folder, options);
  assert.equal(again.base, null);
  assert.equal(again.commands.length, 1);
  await setup.run(again, options, quiet);
  assert.ok(existsSync(marker));
  rmSync(dirname(folder), { recursive: true });
});

test("a failure is pip's own last line, and what was made stays for the next try", { timeout: 120_000 }, async () => {
  const { folder, setup, options } = fixture("seesaw-no-such-package==1.0\n");
  const plan = await setup.plan(folder, options);
  await assert.rejects(setup.run(plan, options, quiet), (error) => {
    assert.ok(AppError.is(error, "python-packages"));
    assert.match(error.message, /^pip did not install the packages \(exit code 1\): ERROR: No matching distribution found for seesaw-no-such-package==1\.0\. Try again/);
    return true;
  });
  assert.equal((await setup.plan(folder, options)).base, null);
  rmSync(dirname(folder), { recursive: true });
});

test("packages that are still missing afterwards are said", { timeout: 120_000 }, async () => {
  const { folder, setup, options } = fixture("pip\n", ["torch"]);
  await assert.rejects(setup.run(await setup.plan(folder, options), options, quiet), /torch is missing/);
  rmSync(dirname(folder), { recursive: true });
});

test("cancelled while it works: the program is stopped and half an environment is not left", { timeout: 120_000 }, async () => {
  const { folder, setup, options } = fixture("pip\n");
  const plan = await setup.plan(folder, options);
  const abort = new AbortController();
  await assert.rejects(setup.run(plan, { ...options, signal: abort.signal }, { ...quiet, step: () => setTimeout(() => abort.abort(), 150) }), (error) => AppError.is(error, "cancelled"));
  assert.ok(!existsSync(plan.venv));
  rmSync(dirname(folder), { recursive: true });
});

test("nothing without trust; a .venv that is none of Python's is not touched; a Python that is missing is named", async () => {
  const { folder, setup, options } = fixture("pip\n");
  await assert.rejects(setup.plan(folder, { ...options, trusted: false }), (error) => AppError.is(error, "untrusted"));
  await assert.rejects(setup.plan(folder, { ...options, python: { explicit: { command: "/nowhere/python", setting: "the setting seesaw.python.path" } } }), /the setting seesaw.python.path names \/nowhere\/python/);
  mkdirSync(join(folder, ".venv"));
  writeFileSync(join(folder, ".venv", "notes.txt"), "mine");
  await assert.rejects(setup.plan(folder, options), /is no Python environment: rename or remove it/);
  assert.equal(readFileSync(join(folder, ".venv", "notes.txt"), "utf8"), "mine");
  rmSync(dirname(folder), { recursive: true });
});

test("a broken .venv is made again with another Python, not with itself", { skip: windows }, async () => {
  const { folder, setup, options } = fixture("pip\n");
  mkdirSync(join(folder, ".venv", "bin"), { recursive: true });
  writeFileSync(join(folder, ".venv", "pyvenv.cfg"), "home = /gone\n");
  writeFileSync(join(folder, ".venv", "bin", "python"), "#!/bin/sh\nexit 3\n");
  chmodSync(join(folder, ".venv", "bin", "python"), 0o755);
  const { base } = await setup.plan(folder, options);
  assert.ok(base !== null && !base.command.startsWith(folder), JSON.stringify(base));
  rmSync(dirname(folder), { recursive: true });
});

test("what is installed is what requirements.txt names, torch pinned exactly", () => {
  const packages = packagesOf(readFileSync(join(repository, "runner/requirements.txt"), "utf8"));
  assert.ok(packages.some((line) => /^torch==\d+\.\d+\.\d+$/.test(line)), packages.join());
  assert.deepEqual(packagesOf("a==1 # why\n# no\n\n b\r\n"), ["a==1", "b"]);
});
