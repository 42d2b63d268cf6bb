import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, dirname, isAbsolute, join, resolve } from "node:path";
import { AppError } from "../util/errors.ts";
import { t } from "../util/l10n.ts";
import type { Log } from "../util/log.ts";
import { explainPythonFailure, parseProbe, type ProbeAnswer } from "./pythonProbe.ts";
import { run } from "./spawn.ts";

/** A place where a Python may be, and in words why we look there. */
export interface PythonPlace {
  command: string;
  how: string;
  /** What to look at again when it changes: `setting`, `target`, `extension:<id>`, `PATH` or `path:<folder>`. */
  dependsOn: string;
  /** The person named this one: use it or say why not, but never silently another. */
  named: boolean;
}

/** Which Python runs things, and how it was found. `problems` is empty exactly when it can be used. */
export interface PythonChoice {
  /** Absolute path; null when there is no Python at all. */
  command: string | null;
  how: string;
  version: string | null;
  packages: Record<string, string>;
  /** Sentences that name what is missing and the fix. */
  problems: string[];
  /** Everything the answer depends on, in the order of the chain. */
  dependsOn: string[];
}

export interface PythonRequest {
  /** Folder of `seesaw.yaml`. */
  root: string;
  /** Folder at which the search for `.venv` ends (workspace or repository); default: the repository around `root`. */
  top?: string | undefined;
  /** The setting `seesaw.python.path`, `--python` or SEESAW_PYTHON; `setting` names which. */
  explicit?: { command: string; setting: string } | undefined;
  /** `targets: { x: { python } }`. */
  target?: { id: string; python: string } | undefined;
  /** What the host knows, e.g. the interpreter chosen in a Python extension. */
  fromHost?: { command: string; how: string; dependsOn: string }[];
  /** `runner/probe.py`. */
  probeFile: string;
  env?: NodeJS.ProcessEnv;
  timeout?: number;
  log?: Log;
  signal?: AbortSignal;
}

const probeTimeoutMs = 30_000;
const requiredVersion = [3, 10] as const;
const windows = process.platform === "win32";

/** The ordered chain of places, first to last. Only what exists on disk is listed; nothing is started. */
export function pythonPlaces(request: PythonRequest): PythonPlace[] {
  const places: PythonPlace[] = [];
  const add = (command: string, how: string, dependsOn: string, named = false): void => {
    if (!places.some((place) => place.command === command)) places.push({ command, how, dependsOn, named });
  };
  if (request.explicit) add(atRoot(request.root, request.explicit.command), request.explicit.setting, "setting", true);
  if (request.target) add(atRoot(request.root, request.target.python), t("target `{0}` in seesaw.yaml", request.target.id), "target", true);
  for (const place of request.fromHost ?? []) add(place.command, place.how, place.dependsOn);
  for (const folder of upTo(request.root, request.top)) {
    const command = join(folder, ".venv", windows ? "Scripts/python.exe" : "bin/python");
    if (existsSync(command)) add(command, t(".venv in {0}", folder), `path:${join(folder, ".venv")}`);
  }
  for (const name of windows ? ["python"] : ["python3", "python"]) {
    const command = onPath(name, request.env ?? process.env);
    if (command !== null) add(command, t("{0} on PATH", name), "PATH");
  }
  return places;
}

/** Walks the chain and asks each Python what it has. The first with every package wins. Never throws, except when cancelled. */
export async function findPython(request: PythonRequest): Promise<PythonChoice> {
  const places = pythonPlaces(request);
  const dependsOn = [...new Set([...places.map((place) => place.dependsOn), "PATH"])];
  const failed: PythonChoice[] = [];
  for (const place of places) {
    const choice = { ...(await askPython(place, request)), dependsOn };
    request.log?.debug(`Python: ${place.how}: ${place.command}: ${choice.problems.join(" ") || `${choice.version}, complete`}`);
    if (choice.problems.length === 0) return choice;
    if (place.named) return choice;
    failed.push(choice);
  }
  // The most nearly complete one is the one whose problems are worth reading.
  failed.sort((a, b) => Object.keys(b.packages).length - Object.keys(a.packages).length);
  const best = failed[0];
  if (best !== undefined) return best;
  return {
    command: null,
    how: t("nowhere"),
    version: null,
    packages: {},
    problems: [
      t("No Python was found: there is no .venv in the pipeline's folder or above it, and neither python3 nor python is on PATH. Install Python 3.10 or newer, or name one with --python, SEESAW_PYTHON or the setting seesaw.python.path."),
    ],
    dependsOn,
  };
}

/** A Python that an environment can be made from: its packages do not matter. */
export type BasePython = Pick<PythonChoice, "how"> & { command: string; version: string };

/** The first Python of the chain that starts and is new enough, whatever it has installed. AppError("no-python") with the reason where there is none. */
export async function findBasePython(request: PythonRequest): Promise<BasePython> {
  const problems: string[] = [];
  for (const place of pythonPlaces(request)) {
    const { command, how, version, problems: found } = await askPython(place, request);
    if (command !== null && version !== null && newEnough(version)) return { command, how, version };
    problems.push(...found);
    if (place.named) break;
  }
  throw new AppError("no-python", problems[0] ?? t("No Python was found: neither python3 nor python is on PATH. Install Python 3.10 or newer (Debian and Ubuntu: python3 and python3-venv), or name one in the setting seesaw.python.path."));
}

function newEnough(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > requiredVersion[0] || (major === requiredVersion[0] && minor >= requiredVersion[1]);
}

/** The choice as an error, for callers that cannot go on without a Python. */
export function requirePython(choice: PythonChoice): PythonChoice & { command: string } {
  const { command } = choice;
  if (command !== null && choice.problems.length === 0) return { ...choice, command };
  const missingPackages = choice.version !== null;
  throw new AppError(missingPackages ? "python-packages" : "no-python", choice.problems.join("\n"));
}

async function askPython(place: PythonPlace, request: PythonRequest): Promise<Omit<PythonChoice, "dependsOn">> {
  const none = { command: place.command, how: place.how, version: null, packages: {} };
  let answer: ProbeAnswer | null;
  try {
    const env = { ...(request.env ?? process.env), PYTHONIOENCODING: "utf-8" };
    const result = await run([place.command, request.probeFile], {
      timeout: request.timeout ?? probeTimeoutMs,
      env,
      cwd: request.root,
      ...(request.signal ? { signal: request.signal } : {}),
    });
    answer = parseProbe(result.stdout);
    if (answer === null) return { ...none, problems: [explainPythonFailure(place, result)] };
  } catch (error) {
    if (!AppError.is(error, "spawn-failed")) throw error;
    return { ...none, problems: [t("{0} names {1} Correct it or remove it.", place.how, error.message)] };
  }
  const packages: Record<string, string> = {};
  const missing: string[] = [];
  for (const [name, version] of Object.entries(answer.packages)) {
    if (version === null) missing.push(name);
    else packages[name] = version;
  }
  const problems: string[] = [];
  if (!newEnough(answer.version)) {
    problems.push(t("{0} ({1}) is Python {2}, but 3.10 or newer is needed: choose another with --python or the setting seesaw.python.path.", place.command, place.how, answer.version));
  } else if (missing.length > 0) {
    const command = `${place.command} -m pip install ${missing.join(" ")}`;
    problems.push(
      missing.length === 1
        ? t("{0} is missing in {1} ({2}): run `{3}`, or choose another Python with --python or the setting seesaw.python.path.", missing[0] ?? "", place.command, place.how, command)
        : t("{0} and {1} are missing in {2} ({3}): run `{4}`, or choose another Python with --python or the setting seesaw.python.path.", missing.slice(0, -1).join(", "), missing.at(-1) ?? "", place.command, place.how, command),
    );
  }
  // A shim (pyenv, a wrapper script) is replaced by what it starts, so that the run does not depend on the shim's state.
  const command = isAbsolute(answer.executable) && existsSync(answer.executable) ? answer.executable : place.command;
  return { command, how: place.how, version: answer.version, packages, problems };
}

function atRoot(root: string, command: string): string {
  if (command.startsWith("~/")) return join(homedir(), command.slice(2));
  if (isAbsolute(command)) return command;
  if (command.includes("/") || (windows && command.includes("\\"))) return resolve(root, command);
  return onPath(command, process.env) ?? command;
}

function onPath(name: string, env: NodeJS.ProcessEnv): string | null {
  for (const folder of (env["PATH"] ?? "").split(delimiter)) {
    const file = join(folder, windows ? `${name}.exe` : name);
    if (isAbsolute(folder) && existsSync(file)) return file;
  }
  return null;
}

/** `root` and its parents up to `top`, or up to the repository's top folder, or `root` alone where there is neither. */
function upTo(root: string, top: string | undefined): string[] {
  const folders: string[] = [];
  for (let folder = resolve(root); ; folder = dirname(folder)) {
    folders.push(folder);
    if (top !== undefined ? folder === resolve(top) : existsSync(join(folder, ".git"))) return folders;
    if (dirname(folder) === folder) return [resolve(root)];
  }
}
