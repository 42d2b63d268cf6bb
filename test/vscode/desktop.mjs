// The mocha suite of run.mjs in a desktop VS Code, by @vscode/test-electron: `node test/vscode/desktop.mjs [scenario…] [--vscode PATH]`.
// PATH (or SEESAW_VSCODE) names the executable; without one, VS Code is downloaded. Needs a display: on Linux without one, `xvfb-run -a`.
// CI does not depend on it: there the same suite runs in code-server.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { packageExtension } from "../../.config/scripts/package.mjs";
import { SetupError, done, failWith, say } from "../../.config/scripts/progress.mjs";
import { node24, root, setup } from "../../.config/scripts/setup.mjs";
import { bundleSuite, declaredTests, judge } from "./driver.mjs";
import { withoutNative } from "./run.mjs";

/** Those that check the driver, and the one whose host is killed, are run.mjs's alone: they need the server's log. */
const scenarios = ["bare", "recorded", "untrusted", "nonative", "run"];
const base = join(root, ".cache", "vscode-desktop");

async function main() {
  const { wanted, path } = options(process.argv.slice(2));
  if (path !== undefined && !existsSync(path)) throw new SetupError(`There is no VS Code at ${path}: give the executable with --vscode PATH or SEESAW_VSCODE.`);
  const electron = await import("@vscode/test-electron").catch(() => {
    throw new SetupError("@vscode/test-electron is not installed: run `npm install`, then this again.");
  });
  const executable = path ?? (await download(electron));
  if (process.platform === "linux" && !process.env.DISPLAY && !process.env.WAYLAND_DISPLAY) throw new SetupError("A desktop VS Code needs a display: run this with `xvfb-run -a`, or where there is one.");
  const { python } = await setup({ python: wanted.includes("run") ? "run" : false });
  const vsix = process.env.SEESAW_VSIX ?? (await packageExtension({ platforms: [`${process.platform}-${process.arch}`], out: join(base, "vsix") }))[0].vsix;
  const failed = [];
  for (const name of wanted) {
    const problems = await check(electron, executable, name, vsix, python);
    if (problems.length > 0) failed.push(name);
    for (const problem of problems) console.error(`  ✗ ${problem}`);
  }
  if (failed.length > 0) throw new SetupError(`VS Code tests failed on the desktop: ${failed.join(", ")}`);
  done(`Desktop VS Code: ${wanted.reduce((sum, name) => sum + declaredTests(name), 0)} passed (${wanted.join(", ")})`);
}

function options(args) {
  const at = args.indexOf("--vscode");
  const names = args.filter((argument, index) => !argument.startsWith("--") && (at < 0 || index !== at + 1));
  for (const name of names) if (!scenarios.includes(name)) throw new SetupError(`${name}: no such scenario; there are ${scenarios.join(", ")}.`);
  const path = at < 0 ? process.env.SEESAW_VSCODE : args[at + 1];
  if (at >= 0 && path === undefined) throw new SetupError("--vscode needs the path of VS Code's executable.");
  return { wanted: names.length > 0 ? names : scenarios, path };
}

async function download({ downloadAndUnzipVSCode }) {
  try {
    return await downloadAndUnzipVSCode({ version: "stable", cachePath: join(base, "download") });
  } catch (error) {
    throw new SetupError(`There is no desktop VS Code here and it could not be downloaded (${String(error.message ?? error).split("\n")[0]}): give its executable with --vscode PATH or SEESAW_VSCODE.`);
  }
}

/** Runs one scenario and says what is wrong with it; an empty list is a pass. As in run.mjs only the result file is believed. */
async function check(electron, executable, name, vsix, python) {
  const { makeWorkspace } = await import("./workspaces.mjs");
  const dir = join(base, name);
  rmSync(dir, { recursive: true, force: true });
  // Short: VS Code puts sockets there.
  const data = join(tmpdir(), `seesaw-desktop-${process.pid}-${name}`);
  const exts = join(dir, "exts");
  const folder = join(dir, "ws a+b %41 #1");
  try {
    mkdirSync(join(data, "User"), { recursive: true });
    writeFileSync(join(data, "User", "settings.json"), JSON.stringify(settings(name !== "untrusted"), null, 2));
    install(electron, executable, vsix, ["--user-data-dir", data, "--extensions-dir", exts]);
    if (name === "nonative") withoutNative(dir);
    makeWorkspace(name, folder, python);
    const suite = await bundleSuite(name, join(dir, "suite"));
    const resultFile = join(dir, "result.json");
    const problems = [];
    say(`Desktop VS Code: ${name}`);
    await electron
      .runTests({
        vscodeExecutablePath: executable,
        extensionDevelopmentPath: join(root, "test", "vscode", "harness"),
        extensionTestsPath: suite,
        extensionTestsEnv: { SEESAW_TEST_RESULT: resultFile },
        launchArgs: [folder, "--user-data-dir", data, "--extensions-dir", exts, "--disable-updates", "--skip-welcome", "--skip-release-notes", "--disable-telemetry", ...(name === "untrusted" ? [] : ["--disable-workspace-trust"])],
      })
      .catch((error) => problems.push(error.message));
    return [...problems, ...judge(existsSync(resultFile) ? JSON.parse(readFileSync(resultFile, "utf8")) : null, declaredTests(name))];
  } finally {
    rmSync(data, { recursive: true, force: true });
  }
}

function install({ resolveCliArgsFromVSCodeExecutablePath }, executable, vsix, folders) {
  // The first is the command line's own program; the folders it adds by default are not ours.
  const [cli, ...args] = resolveCliArgsFromVSCodeExecutablePath(executable, { reuseMachineInstall: true });
  const { status, stderr, stdout } = spawnSync(cli, [...args, ...folders, "--install-extension", vsix, "--force"], { encoding: "utf8", shell: process.platform === "win32" });
  if (status !== 0) throw new SetupError(`${vsix} could not be installed in ${executable}: ${(stderr || stdout).trim().split("\n").at(-1)}`);
}

function settings(trusted) {
  return {
    "telemetry.telemetryLevel": "off",
    "update.mode": "none",
    "extensions.autoUpdate": false,
    "workbench.startupEditor": "none",
    "git.enabled": false,
    "window.confirmBeforeClose": "never",
    "security.workspace.trust.enabled": !trusted,
    "security.workspace.trust.startupPrompt": "never",
    "security.workspace.trust.banner": "never",
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  if (Number(process.versions.node.split(".")[0]) < 24) {
    await setup({ python: false });
    process.exitCode = spawnSync(node24, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], { cwd: root, stdio: "inherit" }).status ?? 1;
  } else {
    main().catch(failWith);
  }
}
