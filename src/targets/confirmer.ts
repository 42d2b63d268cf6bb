import { mkdir, stat } from "node:fs/promises";
import { join } from "node:path";
import type { CheckedFlag } from "../domain/run/checkedFlag.ts";
import { judgeConfirmation, trainsOn, type Confirmation, type ConfirmationAnswer, type ConfirmationPlan } from "../domain/run/confirmation.ts";
import type { Pipeline } from "../domain/pipeline/pipelineModel.ts";
import { AppError, messageOf } from "../util/errors.ts";
import { t } from "../util/l10n.ts";
import type { Log } from "../util/log.ts";
import type { StartOptions } from "./launcher.ts";
import { writeJson } from "./local.ts";
import { findPython, requirePython } from "./python.ts";
import { mustBeHere } from "./remote/remoteFolder.ts";
import { attemptEnv } from "./runnerEnv.ts";
import { run } from "./spawn.ts";

/** Asks two checkpoints for the answers to further prompts, with the runner; what was found is kept beside the run, for every window and the command line. */
export class Confirmer {
  private readonly runnerDir: string;
  private readonly log: Log;

  constructor({ runnerDir, log }: { runnerDir: string; log: Log }) {
    this.runnerDir = runnerDir;
    this.log = log;
  }

  /** `prompts`: a file as probe files are. Starts Python, so the workspace must be trusted. AppError("bad-input") with the runner's sentence. */
  async confirm(pipeline: Pick<Pipeline, "root" | "stages">, plan: ConfirmationPlan, prompts: string, most: number, options: StartOptions): Promise<Confirmation> {
    if (!options.trusted) throw new AppError("untrusted", t("A check starts Python, which an untrusted workspace may not: trust the workspace first."));
    const trained = trainsOn(pipeline.stages, prompts);
    if (trained !== null) throw new AppError("bad-input", t("{0} is what stage {1} trains on: its prompts would show what was memorised. Name prompts that no stage has seen.", prompts, trained));
    if (!(await stat(prompts).catch(() => null))?.isFile()) throw new AppError("not-found", t("There is no file of prompts at {0}.", prompts));
    await mustBeHere(plan.start, plan.now);
    const signal = options.signal ? { signal: options.signal } : {};
    const python = requirePython(await findPython({ root: pipeline.root, ...options.python, probeFile: join(this.runnerDir, "probe.py"), log: this.log, ...signal }));
    const argv = [python.command, "-m", "seesaw_runner.confirm", plan.run.dir, plan.skill, prompts, plan.start, plan.now, "--most", String(most)];
    const result = await run(argv, { cwd: this.runnerDir, env: { ...process.env, ...attemptEnv(this.runnerDir, {}, 1) }, maxBytes: 64 << 20, ...signal });
    const said = parse(result.stdout);
    if (result.code === 0 && Array.isArray(said?.["rows"])) {
      const found = judgeConfirmation(said as unknown as ConfirmationAnswer);
      if (found.n > 0) await keepCheck(plan, prompts, found, this.log);
      return found;
    }
    if (typeof said?.["message"] === "string") throw new AppError("bad-input", said["message"]);
    const last = result.stderr.trim().split("\n").at(-1) ?? "";
    throw new AppError("agent-failed", t("{0} gave no verdicts ({1}){2}.", python.command, result.signal === null ? t("exit code {0}", String(result.code)) : t("signal {0}", result.signal), last ? `: ${last.slice(0, 400)}` : ""));
  }
}

/** Keeps a check in the run folder. Where it cannot be, that is logged, and the verdict is told all the same. */
export async function keepCheck({ run: { dir }, skill, step }: ConfirmationPlan, prompts: string, found: Confirmation, log: Log): Promise<void> {
  const file = join(dir, "checked", `${skill}.json`);
  try {
    // Not with the folders above it: a run that was deleted meanwhile stays so.
    await mkdir(join(dir, "checked")).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "EEXIST") throw error;
    });
    await writeJson(file, { v: 1, skill, step, t: Date.now() / 1000, prompts, found } satisfies CheckedFlag);
  } catch (error) {
    log.warn(t("The verdict could not be kept in {0}, so nothing else will show it: {1}", file, messageOf(error)));
  }
}

function parse(text: string): Record<string, unknown> | null {
  try {
    const value = JSON.parse(text) as unknown;
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}
