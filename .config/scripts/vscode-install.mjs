// Installs what runs a real VS Code here: code-server (the VS Code server and its workbench, MIT) from npm into
// .cache/code-server. Idempotent. Chromium for the tests comes from setup.mjs.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { SetupError, failWith, runStep, say } from "./progress.mjs";
import { node24, root, setup } from "./setup.mjs";

/** code-server 4.139.1 is VS Code 1.139.1. */
const version = "4.139.1";
const home = join(root, ".cache", "code-server");
const server = join(home, "node_modules", "code-server");
export const codeServerEntry = join(server, "out", "node", "entry.js");

/** Installs code-server where it is missing or of another version: about 50 s and 620 MB, from npm only. */
export async function installCodeServer() {
  const done = join(home, ".done");
  if (existsSync(done) && readFileSync(done, "utf8") === version) return;
  if (process.platform === "win32") throw new SetupError("code-server does not run on Windows: run this in WSL, or press F5 in a desktop VS Code.");
  rmSync(home, { recursive: true, force: true });
  mkdirSync(home, { recursive: true });
  writeFileSync(join(home, "package.json"), '{ "private": true }\n');
  const env = npmEnvironment();
  const npm = (label, cwd, ...args) =>
    runStep(label, ["npm", ...args, "--no-audit", "--no-fund"], {
      cwd,
      env,
      problem: () => `code-server could not be installed (${label}): check the network and run this again.`,
    });
  // What code-server's own postinstall does, without compiling the modules that are never loaded here.
  const vscode = join(server, "lib", "vscode");
  await npm(`code-server ${version}: downloading`, home, "install", "--save-exact", "--ignore-scripts", `code-server@${version}`);
  await npm("code-server: packages of the VS Code server", vscode, "install", "--omit=dev", "--ignore-scripts");
  await npm("code-server: packages of the built-in extensions", join(vscode, "extensions"), "install", "--omit=dev", "--ignore-scripts");
  link("code-linux.sh", join(vscode, "bin", "remote-cli", "code-server"));
  link("browser-linux.sh", join(vscode, "bin", "helpers", "browser.sh"));
  if (canCompile()) await npm("code-server: compiling its logger and watchdog", vscode, "rebuild", "@vscode/spdlog", "@vscode/native-watchdog");
  else say("no C++ compiler: code-server will write no log files of its own; everything else works");
  writeFileSync(done, version);
}

/** Chromium or Chrome, or null. CHROMIUM overrides the search. */
export function findChromium() {
  if (process.env.CHROMIUM) return process.env.CHROMIUM;
  const names = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"];
  const places = (process.env.PATH ?? "").split(delimiter).flatMap((dir) => names.map((name) => join(dir, name)));
  places.push("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome", "/Applications/Chromium.app/Contents/MacOS/Chromium");
  return places.find((file) => existsSync(file)) ?? null;
}

/** npm must run under Node 24, and node-gyp must find that Node's headers. */
function npmEnvironment() {
  const headers = ["node_modules/node/node_modules", "node_modules"]
    .map((dir) => join(root, dir, `node-${process.platform}-${process.arch}`))
    .find((dir) => existsSync(join(dir, "include", "node", "node.h")));
  return {
    ...process.env,
    PATH: join(root, "node_modules", ".bin") + delimiter + (process.env.PATH ?? ""),
    JOBS: "2",
    XDG_CONFIG_HOME: join(home, "xdg", "config"),
    XDG_DATA_HOME: join(home, "xdg", "data"),
    ...(headers === undefined ? {} : { npm_config_nodedir: headers }),
  };
}

function canCompile() {
  try {
    for (const tool of ["make", "g++", "python3"]) execFileSync(tool, ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

function link(target, place) {
  rmSync(place, { force: true });
  symlinkSync(target, place);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  setup({ python: false, browser: true }).then(installCodeServer).catch(failWith);
}
