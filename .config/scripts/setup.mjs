// The set-up every command shares: Node and npm and Python are new enough, `npm ci` and `.venv` are in step with
// the pinned files. Idempotent, and safe to run twice at once. Node's own modules only: runs under Node 20 with no node_modules.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, rmSync, statfsSync, unlinkSync, writeFileSync, writeSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { SetupError, done, failWith, liveLine, runStep, say, seconds } from "./progress.mjs";

export const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const windows = process.platform === "win32";
const bin = (dir, name) => join(dir, windows ? "Scripts" : "bin", windows ? `${name}.exe` : name);
export const venv = join(root, ".venv");
/** Node 24 from the registry: the one the bundles and the native module are made for. */
export const node24 = join(root, "node_modules", ".bin", windows ? "node.exe" : "node");
export const venvPython = bin(venv, "python");

function ask(argv, options = {}) {
  try {
    return execFileSync(argv[0], argv.slice(1), { encoding: "utf8", timeout: 60_000, stdio: ["ignore", "pipe", "pipe"], ...options }).trim();
  } catch {
    return null;
  }
}

function atLeast(version, floor) {
  const parts = String(version).split(".").map((part) => Number.parseInt(part, 10));
  const wanted = floor.split(".").map(Number);
  for (let i = 0; i < wanted.length; i++) if ((parts[i] ?? 0) !== wanted[i]) return (parts[i] ?? 0) > wanted[i];
  return true;
}

function checkNode() {
  if (!atLeast(process.versions.node, "20")) {
    throw new SetupError(`Node ${process.versions.node} is too old: install Node 20 or newer (22 LTS is a good choice) and run this again.`);
  }
  const npm = ask(["npm", "--version"], { shell: windows });
  if (npm === null) throw new SetupError("npm was not found on PATH: install npm 11 or newer (`npm` comes with Node; then `npm install -g npm@11`).");
  if (!atLeast(npm, "11")) throw new SetupError(`npm ${npm} is too old: run \`npm install -g npm@11\` and then this again.`);
}

/** True when what lies in node_modules is what package-lock.json asks for (optional packages of other platforms may lack). */
function nodeModulesInStep() {
  try {
    const wanted = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")).packages;
    const have = JSON.parse(readFileSync(join(root, "node_modules", ".package-lock.json"), "utf8")).packages;
    for (const [path, entry] of Object.entries(wanted)) {
      if (path === "") continue;
      const found = have[path];
      if (found === undefined ? !entry.optional : found.version !== entry.version || found.integrity !== entry.integrity) return false;
    }
    return existsSync(node24);
  } catch {
    return false;
  }
}

async function npmPackages() {
  if (nodeModulesInStep()) return;
  await runStep("Installing the npm packages (npm ci)", [windows ? "npm.cmd" : "npm", "ci", "--no-audit", "--no-fund"], {
    cwd: root,
    env: { ...process.env, NODE_ENV: "development" },
    problem: (text) => {
      if (/ENOSPC/.test(text)) return `The disk is full: free about 1 GB under ${root} and run this again.`;
      if (/ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ECONNREFUSED/.test(text)) return "The npm registry could not be reached: check the network or `npm config get registry`, then run this again.";
      if (/in sync/.test(text)) return "package.json and package-lock.json disagree: run `npm install` once and commit the lock file.";
      return "`npm ci` failed; its last lines are above.";
    },
    finished: "npm packages installed",
  });
  if (ask([node24, "--version"]) === null) throw new SetupError("node_modules/.bin/node does not start: remove node_modules and run this again.");
}

/** The Python that makes `.venv`: the first of SEESAW_BASE_PYTHON, python3, python … that is new enough. */
function basePython() {
  const names = [process.env.SEESAW_BASE_PYTHON, "python3", "python", "python3.13", "python3.12", "python3.11", "python3.10"].filter(Boolean);
  const seen = [];
  for (const name of names) {
    const version = ask([name, "-c", "import sys; print(sys.version.split()[0])"]);
    if (version === null) continue;
    seen.push(`${name} is ${version}`);
    if (atLeast(version, "3.10")) return { name, version };
  }
  throw new SetupError(
    seen.length === 0
      ? "No Python was found on PATH: install Python 3.10 or newer (Debian: `apt-get install python3 python3-venv`) and run this again."
      : `Python 3.10 or newer is needed (${seen.join(", ")}): install it, or name it in SEESAW_BASE_PYTHON, and run this again.`,
  );
}

const sha256 = (text) => createHash("sha256").update(text).digest("hex");

function stamp(files) {
  return Object.fromEntries(files.map((name) => [name, sha256(readFileSync(join(root, "runner", name)))]));
}

function venvInStep(wanted) {
  try {
    const have = JSON.parse(readFileSync(join(venv, "seesaw-stamp.json"), "utf8"));
    return Object.entries(wanted).every(([name, hash]) => have[name] === hash) && ask([venvPython, "-c", ""]) !== null;
  } catch {
    return false;
  }
}

async function pythonPackages(files) {
  const wanted = stamp(files);
  if (venvInStep(wanted)) return;
  if (ask([venvPython, "-c", ""]) === null) {
    const base = basePython();
    if (ask([base.name, "-m", "ensurepip", "--version"]) === null) {
      throw new SetupError(`Python's venv module is missing for ${base.name} ${base.version}: run \`apt-get install python3-venv\` (or your system's package of that name) and then this again.`);
    }
    const { bavail, bsize } = statfsSync(root);
    if (bavail * bsize < 3e9) throw new SetupError(`Only ${(bavail * bsize / 1e9).toFixed(1)} GB are free under ${root}: the Python packages need about 3 GB.`);
    rmSync(venv, { recursive: true, force: true });
    await runStep(`Creating .venv with Python ${base.version}`, [base.name, "-m", "venv", venv], {
      cwd: root,
      problem: () => `\`${base.name} -m venv .venv\` failed: install python3-venv (Debian: \`apt-get install python3-venv\`) and run this again.`,
    });
  }
  for (const file of files) {
    await runStep(`Installing the Python packages of runner/${file}`, [venvPython, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--progress-bar", "off", "-r", join("runner", file)], {
      cwd: root,
      pick: (line) => /^(Collecting|Downloading|Processing|Installing collected|Building)\b/.exec(line.trim()) && line.trim().split(/\s+/).slice(0, 2).join(" ").slice(0, 60),
      problem: (text) => {
        if (/No space left/.test(text)) return "The disk filled up while the Python packages were installed: free about 3 GB and run this again.";
        const missing = /No matching distribution found for (\S+)/.exec(text);
        if (missing) return `pip found no ${missing[1]} for this Python and platform: use Python 3.10 to 3.13 on a 64-bit system, or check \`pip config list\`.`;
        return "`pip install` failed; its last lines are above. Run this again: it goes on where it stopped.";
      },
      finished: `Python packages of runner/${file} installed`,
    });
  }
  let have = {};
  try {
    have = JSON.parse(readFileSync(join(venv, "seesaw-stamp.json"), "utf8"));
  } catch {}
  writeFileSync(join(venv, "seesaw-stamp.json"), `${JSON.stringify({ ...have, ...wanted }, null, 2)}\n`);
}

/** Debian's Chromium, for the tests that drive a real workbench. */
async function chromium() {
  for (const dir of (process.env.PATH ?? "").split(delimiter)) if (existsSync(join(dir, "chromium"))) return;
  const fix = "install it (`apt-get install --no-install-recommends chromium fonts-dejavu-core`) and run this again";
  if (ask(["apt-get", "--version"]) === null || process.getuid?.() !== 0) throw new SetupError(`Chromium was not found on PATH: ${fix}.`);
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  const problem = () => `Chromium could not be installed: ${fix}.`;
  await runStep("Reading Debian's package lists", ["apt-get", "update"], { env, problem });
  await runStep("Installing Chromium", ["apt-get", "install", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=500", "chromium", "fonts-dejavu-core"], {
    env,
    problem,
    pick: (line) => /^(Get:|Unpacking|Setting up)/.exec(line) && line.slice(0, 60),
  });
}

function alive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}

/** Holds `.cache/setup.lock` while `work` runs; waits for a living owner, takes over from a dead one. */
async function locked(work) {
  mkdirSync(join(root, ".cache"), { recursive: true });
  const path = join(root, ".cache", "setup.lock");
  let line;
  for (;;) {
    try {
      const fd = openSync(path, "wx");
      writeSync(fd, String(process.pid));
      closeSync(fd);
      break;
    } catch (error) {
      if (error.code !== "EEXIST") throw error;
      const owner = Number(readFileSync(path, { encoding: "utf8", flag: "a+" }));
      if (owner > 0 && !alive(owner)) {
        rmSync(path, { force: true });
        continue;
      }
      line ??= liveLine(`Waiting for the set-up of process ${owner}`);
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
  }
  line?.end();
  const release = () => {
    try {
      unlinkSync(path);
    } catch {}
  };
  process.once("exit", release);
  try {
    return await work();
  } finally {
    process.removeListener("exit", release);
    release();
  }
}

/**
 * Brings the checkout in step. `python`: "run" (what recipes need), "dev" (and pytest, ruff, lm-eval) or false.
 * SEESAW_PYTHON names a Python that already has the packages; then `.venv` is not touched.
 * Returns the programs to use.
 */
export async function setup({ python = "run", browser = false } = {}) {
  const start = Date.now();
  checkNode();
  const files = { run: ["requirements.txt"], dev: ["requirements.txt", "requirements-dev.txt"] }[python] ?? [];
  const own = process.env.SEESAW_PYTHON;
  await locked(async () => {
    await npmPackages();
    if (files.length > 0 && !own) await pythonPackages(files);
    if (browser) await chromium();
  });
  if (own && files.length > 0) say(`using SEESAW_PYTHON ${own}`);
  done(`set-up in step (${seconds(start)})`);
  return { root, node: node24, python: own || venvPython };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  setup({ python: process.argv[2] ?? "run", browser: process.argv.includes("--browser") }).catch(failWith);
}
