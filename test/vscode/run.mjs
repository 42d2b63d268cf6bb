// Tests of the packaged extension in a real VS Code: `node test/vscode/run.mjs [scenario…]`. Every scenario has a server of its
// own, with the VSIX of this platform installed. The first two check the driver itself: they must come out red.
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { packageExtension } from "../../.config/scripts/package.mjs";
import { SetupError, done, failWith, say, seconds } from "../../.config/scripts/progress.mjs";
import { node24, root, setup } from "../../.config/scripts/setup.mjs";
import { installCodeServer } from "../../.config/scripts/vscode-install.mjs";
import { installVsix } from "../../.config/scripts/vscode-server.mjs";
import { bundleSuite, declaredTests, runScenario } from "./driver.mjs";

const base = join(root, ".cache", "vscode-tests");
const scenarios = ["planted", "crash", "bare", "recorded", "untrusted", "targets", "nonative", "run", "killed"];
/** Fewer tests than this in all means that discovery is broken, not that they are green. */
const leastTests = 40;

async function main() {
  const wanted = process.argv.slice(2).filter((argument) => !argument.startsWith("-"));
  const unknown = wanted.filter((name) => !scenarios.includes(name));
  if (unknown.length > 0) throw new SetupError(`${unknown.join(", ")}: no such scenario; there are ${scenarios.join(", ")}.`);
  const onDisk = readdirSync(join(root, "test", "vscode", "suite"), { withFileTypes: true }).filter((entry) => entry.isDirectory()).map(({ name }) => name);
  const forgotten = onDisk.filter((name) => !scenarios.includes(name));
  if (forgotten.length > 0) throw new SetupError(`test/vscode/suite/${forgotten.join(", ")} would never run: name it in test/vscode/run.mjs.`);
  const total = scenarios.reduce((sum, name) => sum + declaredTests(name), 0);
  if (total < leastTests) throw new SetupError(`Only ${total} VS Code tests were found, at least ${leastTests} are expected.`);

  const needsPython = wanted.length === 0 || wanted.some((name) => ["run", "killed", "targets"].includes(name));
  const { python } = await setup({ python: needsPython ? "run" : false, browser: true });
  await installCodeServer();
  const vsix = process.env.SEESAW_VSIX ?? (await packageExtension({ platforms: [platform()], out: join(base, "vsix"), build: !process.argv.includes("--no-build") }))[0].vsix;
  const template = await installTemplate(vsix);
  const began = Date.now();
  const failed = [];
  for (const name of wanted.length === 0 ? scenarios : wanted) {
    const problems = await check(name, template, python);
    if (problems.length > 0) failed.push(name);
    for (const problem of problems) console.error(`  ✗ ${problem}`);
  }
  if (failed.length > 0) throw new SetupError(`VS Code tests failed: ${failed.join(", ")}`);
  const ran = (wanted.length === 0 ? scenarios : wanted).reduce((sum, name) => sum + declaredTests(name), 0);
  done(`VS Code: ${ran} passed in ${seconds(began)} (planted failures count as passed when they were noticed)`);
}

/** Runs one scenario and says what is wrong with it; an empty list is a pass. */
async function check(name, template, python) {
  const spaces = await import("./workspaces.mjs");
  const dir = join(base, name);
  rmSync(dir, { recursive: true, force: true });
  cpSync(template, dir, { recursive: true });
  const folder = join(dir, "ws a+b %41 #1"); // case V03: every scenario works in a folder with an odd name
  const suite = await bundleSuite(name, join(dir, "suite"));
  const common = { scenario: name, dir, folder, suite };
  say(`VS Code: ${name}`);
  spaces.makeWorkspace(name, folder, python);
  if (["planted", "crash"].includes(name)) {
    const outcome = await runScenario({ ...common, quiet: true });
    const seen = outcome.problems.join("; ");
    const wanted = name === "planted" ? /planted failure/ : /the extension host died/;
    if (outcome.ok || !wanted.test(seen)) return [`the driver did not notice the ${name === "planted" ? "planted failure" : "planted crash"}: ${seen || "it was green"}`];
    return report(name, outcome, []);
  }
  if (name === "killed") {
    const outcome = await runScenario(common);
    const problems = outcome.died === null ? ["the extension host was not killed"] : [];
    problems.push(...(await runEndsAlone(folder, outcome.result?.notes?.run)));
    return report(name, outcome, problems);
  }
  if (name === "nonative") withoutNative(dir);
  const env = name === "targets" ? spaces.standInEnv(folder) : {};
  const outcome = await runScenario({ ...common, env, trust: name === "untrusted" ? "none" : "all" });
  return report(name, outcome, outcome.problems);
}

/** As on a platform for which nothing native was packed. */
export function withoutNative(dir) {
  for (const extension of readdirSync(join(dir, "exts"))) rmSync(join(dir, "exts", extension, "node_modules", "better-sqlite3", "prebuilds"), { recursive: true, force: true });
}

function report(name, outcome, problems) {
  const notes = Object.entries(outcome.result?.notes ?? {}).map(([key, value]) => `${key} ${typeof value === "number" ? value.toFixed(1) : value}`);
  const line = `VS Code: ${name}, ${(outcome.ms / 1000).toFixed(1)} s${notes.length === 0 ? "" : ` (${notes.join(", ")})`}`;
  if (problems.length === 0) done(line);
  else console.error(`✗ ${line}`);
  return problems;
}

/** The run goes on after its window died, and ends done. */
async function runEndsAlone(folder, run) {
  if (typeof run !== "string") return ["no run was started before the host was killed"];
  const journal = join(folder, ".seesaw", "runs", run, "journal.jsonl");
  for (const deadline = Date.now() + 180_000; Date.now() < deadline; await new Promise((wake) => setTimeout(wake, 250))) {
    const last = existsSync(journal) ? readFileSync(journal, "utf8").trim().split("\n").at(-1) : undefined;
    const event = last === undefined ? null : safeJson(last);
    if (event?.type === "run.finished") return event.reason.kind === "done" ? [] : [`the run ended ${JSON.stringify(event.reason)}`];
  }
  return ["the run did not end after its window was killed"];
}

function safeJson(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Installs the VSIX once; every scenario gets a copy. */
async function installTemplate(vsix) {
  const dir = join(base, "template");
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(dir, { recursive: true });
  await installVsix(dir, vsix);
  const installed = readdirSync(join(dir, "exts")).filter((name) => name.startsWith("seesaw.seesaw-"));
  if (installed.length !== 1) throw new SetupError(`${vsix} was not installed; see ${join(dir, "install.log")}`);
  rmSync(join(dir, "tmp"), { recursive: true, force: true });
  return dir;
}

function platform() {
  return `${process.platform}-${process.arch}`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  // The workspaces are made by the project's own TypeScript, which Node runs as it is from 22.18 on.
  if (Number(process.versions.node.split(".")[0]) < 24) {
    await setup({ python: false });
    process.exitCode = spawnSync(node24, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], { stdio: "inherit" }).status ?? 1;
  } else {
    main().catch(failWith);
  }
}
