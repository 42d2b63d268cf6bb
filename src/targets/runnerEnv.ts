import { availableParallelism } from "node:os";
import { delimiter } from "node:path";
import type { LaunchSpec } from "../protocol/runSpec.ts";

/** Mirrors `RUNNER_ENV` of `seesaw_runner/environment.py`, where each is explained. */
export const runnerEnv: Readonly<Record<string, string>> = {
  HF_HUB_OFFLINE: "1",
  HF_DATASETS_OFFLINE: "1",
  HF_HUB_DISABLE_TELEMETRY: "1",
  TOKENIZERS_PARALLELISM: "false",
  OMP_WAIT_POLICY: "passive",
  MALLOC_MMAP_MAX_: "0",
  MALLOC_TRIM_THRESHOLD_: "4294967296",
  PYTHONUNBUFFERED: "1",
};

/** What an attempt's environment adds to the agent's own. What the person set, in the shell or in seesaw.yaml, is kept. */
export function attemptEnv(
  runnerDir: string,
  stageEnv: Readonly<Record<string, string>>,
  processes: number,
  own: NodeJS.ProcessEnv = process.env,
): Record<string, string> {
  const env: Record<string, string> = {};
  const threads = String(Math.max(1, Math.floor(availableParallelism() / Math.max(1, processes))));
  for (const [name, value] of Object.entries({ ...runnerEnv, OMP_NUM_THREADS: threads })) {
    if (own[name] === undefined) env[name] = value;
  }
  Object.assign(env, stageEnv);
  const path = stageEnv["PYTHONPATH"] ?? own["PYTHONPATH"];
  env["PYTHONPATH"] = path ? `${runnerDir}${delimiter}${path}` : runnerDir;
  return env;
}

/**
 * The same for a target. How many threads there are, and what the person set there, is known there: `environment.py` fills in
 * what is missing, and nothing of this machine's environment goes along.
 */
export function remoteEnv(runnerDir: string, stageEnv: Readonly<Record<string, string>>): Record<string, string> {
  const path = stageEnv["PYTHONPATH"];
  return { ...runnerEnv, ...stageEnv, PYTHONPATH: path ? `${runnerDir}:${path}` : runnerDir };
}

/** The command line of a recipe; what a person is shown before it runs. */
export function recipeArgv(python: string, recipe: string, runDir: string, launch: LaunchSpec): string[] {
  const module = `seesaw_runner.recipes.${recipe.replaceAll("-", "_")}`;
  const { processes, config, args = [] } = launch;
  switch (launch.kind) {
    case "python":
      return [python, "-m", module, runDir];
    case "torchrun":
      return [python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", String(processes), ...args, "-m", module, runDir];
    case "accelerate":
      // Every process is one of DDP, on any free port. What a default configuration of the person's own says of precision and
      // compilation must not decide a run that does not mention it.
      return [
        python, "-m", "accelerate.commands.launch", ...(config === undefined ? [] : ["--config_file", config]),
        ...(processes > 1 ? ["--multi_gpu"] : []), "--num_processes", String(processes), "--num_machines", "1", "--main_process_port", "0",
        "--mixed_precision", "no", "--dynamo_backend", "no", ...args, "-m", module, runDir,
      ];
    case "deepspeed":
      // The launcher alone: the training is DDP. --no_local_rank: the rank is in the environment, as with torchrun.
      return [python, "-m", "deepspeed.launcher.runner", "--num_gpus", String(processes), "--no_local_rank", ...args, "--module", module, runDir];
  }
}
