import { availableParallelism } from "node:os";
import { delimiter } from "node:path";

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

/** The command line of a recipe; what a person is shown before it runs. */
export function recipeArgv(python: string, recipe: string, runDir: string, launch: { kind: "python" | "torchrun"; processes: number }): string[] {
  const module = ["-m", `seesaw_runner.recipes.${recipe.replaceAll("-", "_")}`, runDir];
  if (launch.kind === "python") return [python, ...module];
  return [python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", String(launch.processes), ...module];
}
