import { existsSync } from "node:fs";
import { readFile, rm, statfs } from "node:fs/promises";
import { join } from "node:path";
import { AppError } from "../util/errors.ts";
import { t } from "../util/l10n.ts";
import type { Log } from "../util/log.ts";
import { findBasePython, findPython, type BasePython, type PythonChoice, type PythonRequest } from "./python.ts";
import { run, type RunResult } from "./spawn.ts";

/** What setting up will do: shown before anything is done. */
export interface SetupPlan {
  /** Folder that gets, or has, the `.venv`. */
  folder: string;
  venv: string;
  /** The environment's own Python. */
  python: string;
  /** What the environment is made with; null where a usable one is there already and only packages are installed. */
  base: BasePython | null;
  /** `torch==2.13.0` and so on. */
  packages: string[];
  /** What will be run, in this order. */
  commands: string[][];
  /** Bytes free on the disk of `folder`; null where that cannot be told. */
  free: number | null;
}

export interface SetupOptions {
  /** The person trusted the workspace: only then a program is started. */
  trusted: boolean;
  python: Pick<PythonRequest, "explicit" | "fromHost" | "top">;
  signal?: AbortSignal;
  env?: NodeJS.ProcessEnv;
}

/** What the person is told while it works. */
export interface SetupProgress {
  step(name: "venv" | "packages"): void;
  /** One line of pip or of Python. */
  line(text: string): void;
}

const windows = process.platform === "win32";

/** Makes a Python environment for the runner: `.venv` in a folder, with what `runner/requirements.txt` names. */
export class RunnerSetup {
  private readonly runnerDir: string;
  private readonly log: Log;

  constructor(deps: { runnerDir: string; log: Log }) {
    this.runnerDir = deps.runnerDir;
    this.log = deps.log;
  }

  /** Looks only; a Python is asked for its version, so the workspace must be trusted. */
  async plan(folder: string, options: SetupOptions): Promise<SetupPlan> {
    mustTrust(options, folder);
    const venv = join(folder, ".venv");
    const python = join(venv, windows ? "Scripts/python.exe" : "bin/python");
    const requirements = join(this.runnerDir, "requirements.txt");
    const whole = existsSync(python) && (await this.starts(python, options));
    // A `.venv` that is there and does not start is no place to look for the Python that makes a new one: it is the one that is replaced.
    const base = whole ? null : await findBasePython(this.request(folder, options));
    if (!whole && existsSync(venv) && !existsSync(join(venv, "pyvenv.cfg"))) throw new AppError("bad-input", t("{0} is there and is no Python environment: rename or remove it first.", venv));
    return {
      folder,
      venv,
      python,
      base,
      packages: packagesOf(await readFile(requirements, "utf8")),
      commands: [
        ...(base === null ? [] : [[base.command, "-m", "venv", venv]]),
        [python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--progress-bar", "off", "-r", requirements],
      ],
      free: await statfs(folder).then(({ bavail, bsize }) => bavail * bsize, () => null),
    };
  }

  /** Does what the plan says; what is there already is left alone, so it can be repeated. Resolves with the Python a stage would then use. */
  async run(plan: SetupPlan, options: SetupOptions, progress: SetupProgress): Promise<PythonChoice> {
    mustTrust(options, plan.folder);
    // Half an environment that was made by us is not left behind.
    const fresh = !existsSync(plan.venv);
    for (const argv of plan.commands) {
      const step = argv.includes("venv") ? "venv" : "packages";
      progress.step(step);
      this.log.info(argv.join(" "));
      const result = await this.command(argv, plan.folder, options, progress).catch(async (error: unknown) => {
        if (fresh && step === "venv") await rm(plan.venv, { recursive: true, force: true });
        throw error;
      });
      if (result.code === 0) continue;
      if (fresh && step === "venv") await rm(plan.venv, { recursive: true, force: true });
      throw new AppError("python-packages", failure(step, plan, result));
    }
    const choice = await findPython({ ...this.request(plan.folder, options), explicit: { command: plan.python, setting: "the new environment" } });
    if (choice.problems.length > 0) throw new AppError("python-packages", choice.problems.join("\n"));
    return choice;
  }

  private async starts(python: string, options: SetupOptions): Promise<boolean> {
    const result = await run([python, "-m", "pip", "--version"], { timeout: 30_000, ...commandOptions(options) }).catch((error: unknown) => {
      if (AppError.is(error, "spawn-failed")) return null;
      throw error;
    });
    return result?.code === 0;
  }

  private command(argv: readonly string[], cwd: string, options: SetupOptions, progress: SetupProgress): Promise<RunResult> {
    let rest = "";
    const onOutput = (text: string): void => {
      const lines = (rest + text).split(/\r\n|\r|\n/);
      rest = lines.pop() ?? "";
      for (const line of lines) if (line.trim() !== "") progress.line(line);
    };
    // The end of the output says what went wrong: megabytes of it are kept.
    return run(argv, { cwd, maxBytes: 8 << 20, onOutput, ...commandOptions(options) });
  }

  private request(folder: string, options: SetupOptions): PythonRequest {
    return { root: folder, ...options.python, probeFile: join(this.runnerDir, "probe.py"), log: this.log, ...(options.env ? { env: options.env } : {}), ...(options.signal ? { signal: options.signal } : {}) };
  }
}

function commandOptions({ env, signal }: SetupOptions): { env: NodeJS.ProcessEnv; signal?: AbortSignal } {
  return { env: { ...(env ?? process.env), PYTHONIOENCODING: "utf-8", PYTHONUNBUFFERED: "1" }, ...(signal ? { signal } : {}) };
}

/** The lines of a requirements file that name packages. */
export function packagesOf(requirements: string): string[] {
  return requirements.split("\n").map((line) => line.replace(/(^|\s)#.*$/, "").trim()).filter((line) => line !== "");
}

/** The honest sentence: what failed, the last line that says why, and what to do. */
function failure(step: "venv" | "packages", { base, venv }: SetupPlan, { stdout, stderr, code, signal }: RunResult): string {
  const text = `${stdout}\n${stderr}`;
  const how = signal === null ? t("exit code {0}", String(code)) : t("signal {0}", signal);
  if (step === "venv") {
    if (/ensurepip is not available|No module named '?(venv|ensurepip)/.test(text)) return t("{0} has no venv module: install it (Debian and Ubuntu: python3-venv) and try again.", base?.command ?? "Python");
    return t("{0} could not be made ({1}): {2}", venv, how, lastLine(stderr) ?? lastLine(stdout) ?? t("Python said nothing"));
  }
  const why = lastLine(stderr, /^\s*error:/i) ?? lastLine(stderr) ?? lastLine(stdout) ?? t("pip said nothing");
  const fix = /No space left on device/.test(text) ? t("Free some space and try again.") : /Could not fetch URL|NewConnectionError|Name or service not known|Temporary failure in name resolution|ConnectTimeout|Max retries/.test(text) ? t("Check the network or pip's proxy settings and try again.") : t("Try again: what was installed stays.");
  return t("pip did not install the packages ({0}): {1} {2}", how, why.replace(/[.\s]*$/, "."), fix);
}

/** The last line of a text that is not blank, and fits `pattern`. */
function lastLine(text: string, pattern = /\S/): string | null {
  return text.trim().split("\n").findLast((line) => pattern.test(line) && !/^\[?notice\]?/i.test(line.trim()))?.trim().slice(0, 400) ?? null;
}

function mustTrust({ trusted }: SetupOptions, folder: string): void {
  if (!trusted) throw new AppError("untrusted", t("Nothing is installed into {0} before you trust this workspace.", folder));
}
