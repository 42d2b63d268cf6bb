// Starts and stops a code-server of our own (own data, own extensions, 127.0.0.1 only), installs extensions into it, and
// opens a browser page on it. Only processes started here are ever ended, by their recorded pid.
import { spawn } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { codeServerEntry, findChromium } from "./vscode-install.mjs";
import { node24 } from "./setup.mjs";
import { SetupError } from "./progress.mjs";

/** Settings that keep the workbench quiet and offline. */
const quietSettings = {
  "telemetry.telemetryLevel": "off",
  "update.mode": "none",
  "extensions.autoUpdate": false,
  "extensions.autoCheckUpdates": false,
  "extensions.ignoreRecommendations": true,
  "workbench.startupEditor": "none",
  "workbench.tips.enabled": false,
  "workbench.secondarySideBar.defaultVisibility": "hidden",
  "workbench.enableExperiments": false,
  "workbench.settings.enableNaturalLanguageSearch": false,
  "workbench.welcomePage.walkthroughs.openOnInstall": false,
  "chat.disableAIFeatures": true,
  "json.schemaDownload.enable": false,
  "npm.fetchOnlinePackageInfo": false,
  "editor.minimap.enabled": false,
  "git.enabled": false,
  "window.confirmBeforeClose": "never",
};

/** The person asked to stop before the server was there. */
export class Interrupted extends Error {}

/**
 * Makes `dir` this process's own until `release` is called: of two that start at once, one gets it. The other is told, in a
 * sentence, where the first one is. A claim whose process is gone is taken over.
 */
export function claimFolder(dir) {
  const file = path.join(dir, "owner.json");
  fs.mkdirSync(dir, { recursive: true });
  for (let tries = 0; tries < 3; tries++) {
    const aside = `${file}.${process.pid}`;
    fs.writeFileSync(aside, JSON.stringify({ pid: process.pid, start: startTime(process.pid) }));
    try {
      fs.linkSync(aside, file);
      return () => fs.rmSync(file, { force: true });
    } catch (error) {
      if (error.code !== "EEXIST") throw error;
    } finally {
      fs.rmSync(aside, { force: true });
    }
    const owner = readJson(file);
    if (owner !== null && isAlive(owner)) {
      const origin = readJson(path.join(dir, "pid.json"))?.origin;
      const where = origin === undefined ? "is just being started" : `already runs at ${origin}`;
      throw new SetupError(`VS Code ${where} (process ${owner.pid}): use that one, stop it with Ctrl-C, or start another with \`npm run vscode -- --dir OTHER\`.`);
    }
    fs.rmSync(file, { force: true });
  }
  throw new SetupError(`${file} could not be claimed: remove it and run this again.`);
}

/**
 * Starts a server whose data lives in `dir`. `trust`: "all" (no question, everything trusted) or "none" (every
 * folder is in Restricted Mode). `smokeTest` lets the page's payload name an extension under test.
 */
export async function startServer({ dir, settings = {}, env = {}, trust = "all", smokeTest = false, port, signal }) {
  await stopLeftover(dir);
  if (port !== undefined) await mustBeFree(port);
  const { data, exts, config } = prepareFolders(dir);
  const trustSettings =
    trust === "all"
      ? { "security.workspace.trust.enabled": false }
      : { "security.workspace.trust.enabled": true, "security.workspace.trust.startupPrompt": "never", "security.workspace.trust.banner": "never" };
  fs.writeFileSync(path.join(data, "User/settings.json"), JSON.stringify({ ...quietSettings, ...trustSettings, ...settings }, null, 2));
  const chosen = port ?? (await freePort());
  const logFile = path.join(dir, "server.log");
  fs.rmSync(logFile, { force: true });
  const log = fs.openSync(logFile, "a");
  const sockets = socketFolder(dir);
  const child = spawn(
    node24,
    [codeServerEntry, "--config", config, "--bind-addr", `127.0.0.1:${chosen}`, "--auth", "none", "--user-data-dir", data, "--extensions-dir", exts,
      "--disable-telemetry", "--disable-update-check", "--disable-getting-started-override", "--disable-proxy", "--ignore-last-opened",
      ...(trust === "all" ? ["--disable-workspace-trust"] : []),
      "--vscode-option", "force-disable-user-env", ...(smokeTest ? ["--vscode-option", "enable-smoke-test-driver"] : [])],
    { stdio: ["ignore", log, log], detached: true, env: { ...serverEnvironment(dir), TMPDIR: sockets, ...env } },
  );
  fs.closeSync(log);
  fs.writeFileSync(path.join(dir, "pid.json"), JSON.stringify({ pid: child.pid, start: startTime(child.pid), origin: `http://127.0.0.1:${chosen}` }));
  const server = {
    host: `127.0.0.1:${chosen}`,
    origin: `http://127.0.0.1:${chosen}`,
    pid: child.pid,
    log: () => fs.readFileSync(logFile, "utf8"),
    /** Resolves when the server is gone, whoever ended it. */
    ended: new Promise((resolve) => child.once("exit", resolve)),
    /** Without waiting: for those who ask twice. */
    kill: () => signalGroup(child.pid, "SIGKILL"),
    stop: async () => {
      await stopChild(child);
      fs.rmSync(path.join(dir, "pid.json"), { force: true });
      if (!sockets.startsWith(dir)) fs.rmSync(sockets, { recursive: true, force: true });
    },
  };
  await waitUntilHealthy(server, child, logFile, signal);
  return server;
}

/** Installs a VSIX into the server of `dir` (which need not run). */
export async function installVsix(dir, vsix) {
  const { data, exts, config } = prepareFolders(dir);
  const args = [codeServerEntry, "--config", config, "--user-data-dir", data, "--extensions-dir", exts, "--install-extension", vsix, "--force"];
  const log = fs.openSync(path.join(dir, "install.log"), "w");
  const child = spawn(node24, args, { env: serverEnvironment(dir), stdio: ["ignore", log, log] });
  const code = await new Promise((resolve) => child.once("error", resolve).once("exit", resolve));
  fs.closeSync(log);
  if (code !== 0) throw new SetupError(`${path.basename(vsix)} could not be installed; see ${path.join(dir, "install.log")}`);
}

/** Opens a headless browser that can reach nothing but 127.0.0.1. */
export async function startBrowser({ width = 1400, height = 900, scale = 1, locale = "en-US" } = {}) {
  const { chromium } = await import("playwright-core");
  const browser = await chromium.launch({
    executablePath: findChromium(),
    headless: true,
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update",
      "--disable-sync", "--font-render-hinting=none", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"],
  });
  const context = await browser.newContext({ viewport: { width, height }, deviceScaleFactor: scale, reducedMotion: "reduce", locale });
  return { browser, page: await context.newPage() };
}

function prepareFolders(dir) {
  const folders = { data: path.join(dir, "data"), exts: path.join(dir, "exts"), config: path.join(dir, "config.yaml") };
  fs.mkdirSync(path.join(folders.data, "User"), { recursive: true });
  fs.mkdirSync(folders.exts, { recursive: true });
  if (!fs.existsSync(folders.config)) fs.writeFileSync(folders.config, "auth: none\ncert: false\n");
  return folders;
}

/** Nothing is written outside `dir`, and no gallery is asked. */
function serverEnvironment(dir) {
  return {
    ...process.env,
    EXTENSIONS_GALLERY: "{}",
    XDG_CONFIG_HOME: path.join(dir, "xdg/config"),
    XDG_DATA_HOME: path.join(dir, "xdg/data"),
  };
}

/** VS Code's sockets: inside `dir` unless that path is too long for a socket (about 107 characters in all). */
function socketFolder(dir) {
  const inside = path.join(dir, "tmp");
  if (inside.length > 52) return fs.mkdtempSync(path.join(os.tmpdir(), "seesaw-"));
  fs.mkdirSync(inside, { recursive: true });
  return inside;
}

async function waitUntilHealthy(server, child, logFile, signal) {
  const deadline = Date.now() + 60_000;
  for (;;) {
    if (signal?.aborted) {
      await server.stop();
      throw new Interrupted();
    }
    if (child.exitCode !== null) throw new SetupError(`code-server ended with code ${child.exitCode}; see ${logFile}`);
    try {
      if ((await fetch(`${server.origin}/healthz`)).ok) return;
    } catch {
      // not listening yet
    }
    if (Date.now() > deadline) {
      await server.stop();
      throw new SetupError(`code-server did not answer within 60 s; see ${logFile}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

function stopChild(child) {
  return new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve();
    const timer = setTimeout(() => signalGroup(child.pid, "SIGKILL"), 5000);
    child.once("exit", () => {
      clearTimeout(timer);
      resolve();
    });
    signalGroup(child.pid, "SIGTERM");
  });
}

/** Ends a server that an earlier, killed script left behind in `dir`: only if it is the very process recorded there. */
async function stopLeftover(dir) {
  const file = path.join(dir, "pid.json");
  if (!fs.existsSync(file)) return;
  const { pid, start } = readJson(file) ?? {};
  fs.rmSync(file, { force: true });
  if (typeof start !== "string" || startTime(pid) !== start) return;
  signalGroup(pid, "SIGTERM");
  for (let tries = 0; tries < 50 && startTime(pid) === start; tries++) await new Promise((resolve) => setTimeout(resolve, 100));
}

/** When a process started, from /proc: with the pid it names one process. Null where there is no /proc. */
function startTime(pid) {
  try {
    return fs.readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1).split(" ")[19] ?? null;
  } catch {
    return null;
  }
}

function signalGroup(pid, signal) {
  try {
    process.kill(-pid, signal);
  } catch {
    // already gone
  }
}

/** False only for a process that is surely gone or another one by now. */
function isAlive({ pid, start }) {
  if (typeof start === "string") return startTime(pid) === start;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}

function readJson(file) {
  try {
    return JSON.parse(fs.readFileSync(file, "utf8"));
  } catch {
    return null;
  }
}

function mustBeFree(port) {
  return new Promise((resolve, reject) => {
    const probe = net.createServer();
    probe.once("error", ({ code }) => reject(new SetupError(`Port ${port} ${code === "EACCES" ? "may not be used by you" : "is taken"}: give another one with --port, or none.`)));
    probe.listen(port, "127.0.0.1", () => probe.close(() => resolve()));
  });
}

function freePort() {
  return new Promise((resolve, reject) => {
    const probe = net.createServer().once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}
