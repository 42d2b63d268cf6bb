import { mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { constants } from "node:os";
import { basename, dirname, join } from "node:path";
import type { AttemptProbe, AttemptSpec } from "../protocol/attempt.ts";
import { AppError, messageOf } from "../util/errors.ts";
import { t } from "../util/l10n.ts";
import { run } from "./spawn.ts";
import type { FilePiece, Target } from "./target.ts";

const launchTimeoutMs = 90_000;
const verbTimeoutMs = 30_000;
/** Seconds, where an attempt does not say. */
const graceSeconds = 20;

/** This machine: the agent's verbs are plain child processes. */
export class LocalTarget implements Target {
  readonly kind = "local";
  private readonly agent: string;
  private readonly python: string;
  private readonly verbMs: number;

  /** `runnerDir` holds `seesaw_runner`; `python` runs the agent (any Python ≥ 3.8, packages do not matter). */
  constructor(runnerDir: string, python: string, verbMs = verbTimeoutMs) {
    this.verbMs = verbMs;
    this.agent = join(runnerDir, "seesaw_runner", "agent.py");
    this.python = python;
  }

  async launch(attemptDir: string, spec: AttemptSpec): Promise<AttemptProbe> {
    await mkdir(attemptDir, { recursive: true });
    await writeJson(join(attemptDir, "spec.json"), spec);
    return this.ask(["run", attemptDir, "--detach"], launchTimeoutMs);
  }

  probe(attemptDir: string): Promise<AttemptProbe> {
    return this.ask(["probe", attemptDir]);
  }

  /** Where the agent is gone, the verb itself waits for the training to end. */
  async cancel(attemptDir: string): Promise<AttemptProbe> {
    return this.ask(["cancel", attemptDir], (await graceOf(attemptDir)) * 1000 + this.verbMs);
  }

  reap(attemptDir: string): Promise<AttemptProbe> {
    return this.ask(["reap", attemptDir]);
  }

  /** Read directly: on this machine the detour through the agent would give the same bytes. */
  async read(attemptDir: string, file: string, offset: number, max = 1 << 20): Promise<FilePiece> {
    let handle;
    try {
      handle = await open(join(attemptDir, file), "r");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return { bytes: new Uint8Array(), size: 0 };
      throw error;
    }
    try {
      const { size } = await handle.stat();
      const bytes = new Uint8Array(Math.max(0, Math.min(max, size - offset)));
      const { bytesRead } = await handle.read(bytes, 0, bytes.length, offset);
      return { bytes: bytes.subarray(0, bytesRead), size };
    } finally {
      await handle.close();
    }
  }

  private async ask(verb: string[], timeout = this.verbMs): Promise<AttemptProbe> {
    const result = await run([this.python, this.agent, ...verb], { timeout });
    // The last line that is an object is the answer; a site's start-up files may print before it.
    for (const line of result.stdout.trim().split("\n").reverse()) {
      if (!line.startsWith("{")) continue;
      try {
        return JSON.parse(line) as AttemptProbe;
      } catch {
        // not the answer
      }
    }
    const said = result.stderr.trim().split("\n").at(-1) ?? "";
    const how = result.timedOut ? t("no answer in time") : result.signal === null ? t("exit code {0}", String(result.code)) : t("signal {0}", result.signal);
    throw new AppError("agent-failed", t("The run agent failed at `{0}` in {1} ({2}){3}", verb[0] ?? "", verb[1] ?? "", how, said ? `: ${said.slice(0, 500)}` : ""));
  }
}

/** How long a training gets to end by itself, as its attempt says. */
async function graceOf(attemptDir: string): Promise<number> {
  try {
    const { grace_s: grace } = JSON.parse(await readFile(join(attemptDir, "spec.json"), "utf8")) as Partial<AttemptSpec>;
    return typeof grace === "number" && grace >= 0 ? grace : graceSeconds;
  } catch {
    return graceSeconds;
  }
}

/** Writes JSON to a temporary name in the same folder, syncs, renames. AppError("disk-full") when there is no room. */
export async function writeJson(path: string, value: unknown): Promise<void> {
  const temporary = join(dirname(path), `.${basename(path)}.${process.pid}.tmp`);
  try {
    const handle = await open(temporary, "w");
    try {
      await handle.writeFile(`${JSON.stringify(value, null, 1)}\n`);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => {});
    throw diskError(path, error);
  }
}

const words: Readonly<Record<string, () => string>> = {
  EISDIR: () => t("it is a folder"),
  ENOTDIR: () => t("a part of the path is a file"),
  ENOENT: () => t("its folder does not exist"),
  EEXIST: () => t("a file of that name is in the way"),
  ENAMETOOLONG: () => t("the name is too long"),
  EMFILE: () => t("too many files are open"),
  EACCES: () => t("you are not allowed to"),
  EPERM: () => t("you are not allowed to"),
  EIO: () => t("the disk reports an error"),
  EBUSY: () => t("another program holds it"),
};

/** A system's error code in words. */
export function systemWords(error: NodeJS.ErrnoException): string {
  return words[error.code ?? ""]?.() ?? error.code ?? error.message;
}

/** Whether a person's disk quota is used up. Node has no name for it: the code is UNKNOWN, only the number tells. */
export function isQuota({ code, errno }: NodeJS.ErrnoException): boolean {
  return code === "EDQUOT" || (errno !== undefined && errno === -constants.errno.EDQUOT);
}

/** A failed write as a sentence. */
export function diskError(path: string, error: unknown): AppError {
  const code = (error as NodeJS.ErrnoException).code;
  if (isQuota(error as NodeJS.ErrnoException)) {
    return new AppError("disk-full", t("{0} could not be written: your disk quota is used up (`quota -s` shows it, on Lustre `lfs quota`). Free some space and try again.", path), { cause: error });
  }
  if (code === "ENOSPC") {
    return new AppError("disk-full", t("{0} could not be written: {1}. Free some space and try again.", path, t("the disk is full")), { cause: error });
  }
  if (code === "EACCES" || code === "EROFS" || code === "EPERM") {
    return new AppError("not-writable", t("{0} could not be written: this folder is read-only for you.", path), { cause: error });
  }
  if (error instanceof AppError) return error;
  return code === undefined
    ? new AppError("internal", t("{0} could not be written: {1}.", path, messageOf(error)), { cause: error })
    : new AppError("not-writable", t("{0} could not be written: {1}.", path, systemWords(error as NodeJS.ErrnoException)), { cause: error });
}
