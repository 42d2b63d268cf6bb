import { mkdir, open, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { AttemptProbe } from "../../protocol/attempt.ts";
import type { StoreCleared, StoreItem, StoreSurvey } from "../../protocol/cleaning.ts";
import type { MirrorFile, RemoteFile, StationFrame, TargetReport } from "../../protocol/remote.ts";
import { attemptName } from "../../storage/runs/runStore.ts";
import { AppError, messageOf } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";
import { diskError } from "../local.ts";
import { parseFindings } from "../preflight.ts";
import type { Progress, RemotePlan } from "./port.ts";
import { ReachError, reachOf } from "./reachError.ts";
import { runnerArchive, sendRunner } from "./runnerArchive.ts";
import type { Station, StationResult } from "./station.ts";
import { stationError } from "./stationErrors.ts";
import { uploadInputs } from "./uploads.ts";

/** What is the same on every machine whose files a station can reach; SSH and Slurm are made of it. */

/** As `PACKAGES` of runner/probe.py. */
export const runnerPackages = ["torch", "transformers", "trl", "peft", "accelerate", "datasets", "safetensors"] as const;
const requiredPython = [3, 10] as const;

/** How long one follow lasts on the target before it is asked for again, in s: what a cut link could leave behind. */
const followSeconds = 300;
/** The target says something at least every 2 s. */
const followSilence = 20_000;
const verbSilence = 60_000;

/** What an agent's verb answered. `nonce`: whose attempt it is. */
export interface AgentAnswer {
  code: number | null;
  probe: AttemptProbe | null;
  nonce: string | null;
}

export class StationRuns {
  readonly station: Station;
  private readonly runnerDir: string;
  private where: { dir: string; python: string } | null = null;

  constructor(station: Station, runnerDir: string) {
    this.station = station;
    this.runnerDir = runnerDir;
  }

  /** Asked once: neither moves while a window is open. ReachError("no-python") for one that is too old for a training. */
  async locate(dir: string, signal?: AbortSignal): Promise<{ dir: string; python: string }> {
    if (this.where !== null) return this.where;
    const found = await this.station.call({ verb: "locate", dir }, quickly(signal));
    const version = String(found["version"]);
    if (!newEnough(version)) throw new ReachError("no-python", oldPython(this.station.name, version));
    this.where = { dir: String(found["dir"]), python: String(found["python"]) };
    return this.where;
  }

  /** Folder, Python, packages, GPUs and disk. What only a scheduler knows is for the caller to add. */
  async check(about: Pick<TargetReport, "target" | "kind" | "address">, dir: string, signal?: AbortSignal): Promise<TargetReport> {
    const empty: TargetReport = { ...about, reachable: false, problems: [], python: null, gpus: null, disk: null, queue: null, versions: {}, roundTrip: null };
    try {
      const found = await this.station.call({ verb: "check", dir, packages: runnerPackages }, quickly(signal));
      // The first question may have had to make the connection.
      const asked = performance.now();
      await this.station.call({ verb: "have", items: [] }, quickly(signal));
      const roundTrip = Math.round(performance.now() - asked);
      const python = found["python"] as NonNullable<TargetReport["python"]>;
      return {
        ...empty,
        reachable: true,
        problems: problemsOf(this.station.name, found, python),
        python,
        gpus: found["gpus"] as TargetReport["gpus"],
        disk: found["disk"] as TargetReport["disk"],
        versions: { [t("host")]: String(found["host"]), [t("system")]: String(found["system"]) },
        roundTrip,
      };
    } catch (error) {
      const reason = reachOf(error);
      if (reason === null) throw error;
      return { ...empty, problems: [{ reason, message: messageOf(error) }] };
    }
  }

  /** Runner, inputs, run.json and the attempt's spec.json. What is there is not sent again. */
  async prepare(plan: RemotePlan, progress: Progress, signal?: AbortSignal): Promise<void> {
    const { remote, attempt, attemptSpec } = plan;
    const { version } = await runnerArchive(this.runnerDir);
    // A plan that was made by another version runs with the runner that it names, which was sent when it was made.
    if (remote.runner.endsWith(`/${version}`)) await sendRunner(this.station, this.runnerDir, remote.runner, signal);
    await uploadInputs(this.station, plan.inputs, progress, signal);
    const folder = `${remote.dir}/${attemptName(attempt)}`;
    await this.station.call(
      {
        verb: "write",
        items: [
          { path: attemptSpec.cwd },
          { path: `${remote.dir}/run.json`, text: json(plan.spec), unless: `${remote.dir}/run.json` },
          { path: `${folder}/spec.json`, text: json(attemptSpec), unless: `${folder}/claim` },
        ],
      },
      quickly(signal),
    );
  }

  /** What the preflight prints. AppError("agent-failed") where it gives no answer. */
  async preflight({ remote, attemptSpec }: RemotePlan, signal?: AbortSignal): Promise<string> {
    const argv = [remote.python, "-m", "seesaw_runner.preflight", `${remote.dir}/run.json`, "--json"];
    const done = await this.station.call({ verb: "exec", argv, cwd: remote.runner, env: attemptSpec.env, timeout: 120 }, { ...quickly(signal), silence: 150_000 });
    const stdout = text(done["stdout"]);
    if (parseFindings(stdout) !== null) return stdout;
    const how = done["timed_out"] === true ? t("no answer in time") : t("exit code {0}", String(done["code"]));
    const last = text(done["stderr"]).trim().split("\n").at(-1) ?? "";
    throw new AppError("agent-failed", t("The preflight check on {0} gave no answer ({1}){2}.", this.station.name, how, last ? `: ${last.slice(0, 400)}` : ""));
  }

  /** A verb of the run agent there. AppError("agent-failed") with its own words; 17 (the attempt is taken) is an answer. */
  async agent(run: Pick<RemoteFile, "dir" | "runner">, attempt: number, verb: "run" | "probe" | "cancel" | "reap", args: string[] = [], signal?: AbortSignal): Promise<AgentAnswer> {
    const timeout = verb === "run" || verb === "cancel" ? 120 : 60;
    const found = await this.station.call(
      { verb: "agent", runner: run.runner, verb_of_agent: verb, attempt: `${run.dir}/${attemptName(attempt)}`, args, timeout },
      { ...quickly(signal), silence: (timeout + 20) * 1000 },
    );
    const probe = found["answer"] as AttemptProbe | null;
    const said = String(found["stderr"] ?? "").trim().split("\n").at(-1) ?? "";
    if (probe === null && (said !== "" || found["code"] !== null)) {
      throw new AppError("agent-failed", t("The run agent on {0} failed at `{1}`{2}", this.station.name, verb, said ? `: ${said.slice(0, 500)}` : "."));
    }
    return { code: found["code"] as number | null, probe, nonce: found["nonce"] as string | null };
  }

  /** What the agent tells of an attempt that was begun. AppError("not-found") where its folder is gone. */
  async ask(run: Pick<RemoteFile, "dir" | "runner">, attempt: number, verb: "probe" | "cancel" | "reap", args: string[], signal?: AbortSignal): Promise<AttemptProbe> {
    const { probe } = await this.agent(run, attempt, verb, args, signal);
    if (probe === null) throw new AppError("not-found", t("{0} is not on {1}: it was moved or removed there.", `${run.dir}/${attemptName(attempt)}`, this.station.name));
    return probe;
  }

  /** Until the run's end or the signal. Throws on a cut link; what was passed on before it need not be sent again. */
  async follow(run: Pick<RemoteFile, "dir" | "runner">, known: MirrorFile["files"], onFrame: (frame: StationFrame) => Promise<void> | void, signal: AbortSignal): Promise<void> {
    const files = { ...known };
    const pass = async (frame: StationFrame): Promise<void> => {
      await onFrame(frame);
      keepAccount(files, frame);
    };
    while (!signal.aborted) {
      try {
        const request = { verb: "follow", run: run.dir, runner: run.runner, known: files, limit_s: followSeconds } as const;
        const { ended } = await this.station.call(request, { onFrame: pass, silence: followSilence, signal });
        if (ended === "end") return;
      } catch (error) {
        if (signal.aborted && AppError.is(error, "cancelled")) return;
        throw error;
      }
    }
  }

  /**
   * Copies all files of a folder there into `local`. Each has a temporary name until it is whole; a copy that was cut goes on
   * where it stopped if the file there is still the same version.
   */
  async fetch(folder: string, local: string, progress: Progress, signal?: AbortSignal): Promise<void> {
    const { items } = (await this.station.call({ verb: "list", dir: folder }, quickly(signal))) as unknown as { items: { path: string; bytes: number; mark: string }[] };
    const total = items.reduce((sum, { bytes }) => sum + bytes, 0);
    let before = 0;
    for (const { path, bytes, mark } of items) {
      if (!safeName(path)) throw new AppError("bad-input", t("{0} on {1} has a name that is no name here: rename it there.", `${folder}/${path}`, this.station.name));
      const tell = (copied: number): void => progress(t("Fetching {0} from {1}", path, this.station.name), before + copied, total);
      await this.fetchFile(`${folder}/${path}`, join(local, ...path.split("/")), { bytes, mark }, tell, signal);
      before += bytes;
    }
    for (const { path } of items) await rm(aside(join(local, ...path.split("/")), "mark"), { force: true });
    progress(t("Fetched from {0}", this.station.name), total, total);
  }

  async survey(dir: string, runs: readonly string[], signal?: AbortSignal): Promise<StoreSurvey> {
    return (await this.station.call({ verb: "survey", dir, runs }, quickly(signal))) as unknown as StoreSurvey;
  }

  async clear(dir: string, runs: readonly string[], items: readonly StoreItem[], signal?: AbortSignal): Promise<StoreCleared> {
    const asked = items.map(({ kind, name }) => ({ kind, name }));
    return (await this.station.call({ verb: "clear", dir, runs, items: asked }, quickly(signal))) as unknown as StoreCleared;
  }

  private async fetchFile(there: string, here: string, { bytes, mark }: { bytes: number; mark: string }, tell: (copied: number) => void, signal?: AbortSignal): Promise<void> {
    const part = aside(here, "part");
    const same = (await readFile(aside(here, "mark"), "utf8").catch(() => "")) === mark;
    if (same && (await sizeOf(here)) === bytes) return tell(bytes);
    await mkdir(dirname(here), { recursive: true });
    const offset = same ? Math.min(bytes, (await sizeOf(part)) ?? 0) : 0;
    if (!same) await writeFile(aside(here, "mark"), mark);
    const handle = await open(part, offset > 0 ? "r+" : "w");
    let at = offset;
    try {
      await handle.truncate(offset);
      await this.station.call(
        { verb: "get", path: there, offset, mark },
        {
          silence: verbSilence,
          ...(signal && { signal }),
          async onFrame(frame) {
            if (frame.kind === "restart") throw new AppError("bad-input", t("{0} was changed while it was copied: try again.", there));
            if (frame.kind !== "piece") return;
            const data = Buffer.from(frame.data, "base64");
            await handle.write(data, 0, data.length, frame.offset);
            at = frame.offset + data.length;
            tell(at);
          },
        },
      );
      if (at !== bytes) throw new AppError("bad-input", t("{0} was changed while it was copied: try again.", there));
      await handle.sync();
    } catch (error) {
      throw AppError.is(error) ? error : diskError(part, error);
    } finally {
      await handle.close();
    }
    await rename(part, here);
  }

  dispose(): void {
    this.station.dispose();
  }
}

/** Notes in `known` what a frame has brought, so that the next question asks for no byte of it again. */
export function keepAccount(known: MirrorFile["files"], frame: StationFrame): void {
  if (frame.kind === "piece") known[frame.file] = { size: frame.offset + Buffer.byteLength(frame.data, "base64"), mark: frame.mark };
  else if (frame.kind === "restart") known[frame.file] = { size: 0, mark: frame.mark };
}

function problemsOf(name: string, found: StationResult, { version, packages, path }: NonNullable<TargetReport["python"]>): TargetReport["problems"] {
  const problems: TargetReport["problems"] = [];
  if (found["trouble"] !== null) {
    const { reach, message } = stationError(name, found["trouble"] as StationResult);
    problems.push({ reason: reach, message });
  }
  const missing = Object.entries(packages).flatMap(([one, has]) => (has === null ? [one] : []));
  if (!newEnough(version)) problems.push({ reason: "no-python", message: oldPython(name, version) });
  else if (missing.length > 0) {
    const command = `${path} -m pip install ${missing.join(" ")}`;
    problems.push({ reason: "packages", message: t("Python packages are missing on {0} ({1}): run `{2}` there, or name another Python with `python:` of this target.", name, missing.join(", "), command) });
  }
  if (found["ends_on_logout"] === true) {
    problems.push({ reason: "other", message: t("{0} ends all programs of a person who logs out, runs included: run `loginctl enable-linger` there once, or ask its administrator to.", name) });
  }
  return problems;
}

function newEnough(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > requiredPython[0] || (major === requiredPython[0] && minor >= requiredPython[1]);
}

function oldPython(name: string, version: string): string {
  return t("The Python on {0} is {1}, but 3.10 or newer is needed: name another with `python:` of this target in seesaw.yaml.", name, version);
}

/** A relative path with `/` that stays below its folder, on Windows too. */
function safeName(path: string): boolean {
  return path.split("/").every((part) => part !== "" && part !== "." && part !== ".." && !/[\\:*?"<>|\0]/.test(part));
}

/** The hidden companion of a file that is being fetched. */
function aside(path: string, what: "part" | "mark"): string {
  return join(dirname(path), `.${basename(path)}.${what}`);
}

async function sizeOf(path: string): Promise<number | null> {
  return stat(path).then((info) => info.size, () => null);
}

function quickly(signal?: AbortSignal): { silence: number; signal?: AbortSignal } {
  return { silence: verbSilence, ...(signal && { signal }) };
}

function json(value: unknown): string {
  return `${JSON.stringify(value, null, 1)}\n`;
}

function text(base64: unknown): string {
  return Buffer.from(String(base64 ?? ""), "base64").toString("utf8");
}
