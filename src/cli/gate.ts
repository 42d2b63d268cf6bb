import type { Command } from "commander";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { askedDevice } from "../domain/cost/devices.ts";
import { benchmarkSets } from "../domain/evaluation/benchmarkChange.ts";
import { chainSystem } from "../domain/evaluation/chainSystem.ts";
import { evaluateSystem } from "../domain/evaluation/evaluateSystem.ts";
import type { EvaluationRow } from "../domain/evaluation/evaluationRow.ts";
import { checkGate, type GateItem, type GateResult } from "../domain/gate/gate.ts";
import { formatPlural } from "../domain/format.ts";
import type { Pipeline } from "../domain/pipeline/pipelineModel.ts";
import { parseRouterReport } from "../protocol/routerReport.ts";
import type { RunRecord } from "../storage/runs/runStore.ts";
import type { StageCost } from "../domain/cost/stageCost.ts";
import { AppError } from "../util/errors.ts";
import { readChainBenchmarks } from "./benchmarkData.ts";
import { noteUnreadable, readChain, type ChainData } from "./chainData.ts";
import type { CommandContext, ContextOf } from "./context.ts";
import { exitCodes } from "./exitCodes.ts";
import type { Output } from "./output.ts";

export function addGate(program: Command, contextOf: ContextOf): void {
  program
    .command("gate")
    .description("check the chain against the go-live list; exit code 1 with what is missing and how to get it")
    .option("--device <size or name>", "the device it goes live on, e.g. 80GB or H100: base and experts must fit")
    .addHelpText("after", "\nThe list: a rule router is recorded and the trained one is better by its margin; replay takes only good rows; memory was\ntested with all experts; merge coefficients were swept; every skill has a benchmark with a paired test: the lm-eval\ntasks under its `benchmark`, else its own check.\n\nExamples:\n  seesaw gate\n  seesaw gate --device 80GB\n  seesaw gate --json | jq '.items[] | select(.state != \"met\")'")
    .action(async (options: { device?: string }, command: Command) => {
      const context = contextOf(command);
      const device = options.device === undefined ? null : askedDevice(options.device);
      if (options.device !== undefined && device === null) throw new AppError("usage", `--device takes a size such as 80GB, or a name such as H100; \`${options.device}\` is neither.`);
      const pipeline = await context.pipeline();
      const data = await readChain(context.services, pipeline);
      noteUnreadable(data, context.out);
      const router = pipeline.stages.find(({ recipe }) => recipe === "router");
      const plan: StageCost | null = router === undefined ? null : await context.services.costs.plan(pipeline, router.id, { device });
      const result = checkGate({
        pipeline,
        runs: data.runs,
        routers: await Promise.all(doneRuns(data, "router").map(async (run) => ({ run, report: parseRouterReport((await textOf(run, "router-report.json")) ?? "") }))),
        merges: await Promise.all(doneRuns(data, "merge").map(async (run) => ({ run, reported: isObject(await textOf(run, "merge-report.json")) }))),
        memory: { plan },
        ...(await evaluationOf(context, pipeline, data)),
      });
      if (!result.ready) process.exitCode = exitCodes.failed;
      if (context.json) context.out.json({ v: 1, pipeline: pipeline.file, ...result });
      else show(result, context.out);
    });
}

/** Finished runs of the stages that have this recipe now, newest first. */
function doneRuns({ pipeline, runs }: ChainData, recipe: string): RunRecord[] {
  const stages = pipeline.stages.filter((stage) => stage.recipe === recipe).map(({ id }) => id);
  return runs.filter((run) => run.spec.recipe === recipe && run.state.status === "done" && stages.includes(run.stage));
}

async function textOf(run: RunRecord, name: string): Promise<string | null> {
  return readFile(join(run.dir, name), "utf8").catch(() => null);
}

function isObject(text: string | null): boolean {
  try {
    return text !== null && typeof JSON.parse(text) === "object";
  } catch {
    return false;
  }
}

async function evaluationOf(context: CommandContext, pipeline: Pipeline, data: ChainData): Promise<{ evaluation: EvaluationRow[] | null; why: string | null }> {
  try {
    const measured = await readChainBenchmarks(data.chain);
    const { system, problems } = chainSystem({ ...data, pipeline, traces: await context.services.traces(), benchmarks: benchmarkSets(measured.found) });
    for (const problem of [...measured.problems, ...problems]) context.out.note(context.out.paint("yellow", problem));
    return { evaluation: evaluateSystem([system]).rows, why: null };
  } catch (error) {
    if (!AppError.is(error)) throw error;
    return { evaluation: null, why: error.message };
  }
}

const marks: Record<GateItem["state"], readonly [mark: string, colour: "green" | "red" | "yellow"]> = { met: ["✓", "green"], failed: ["✗", "red"], missing: ["○", "yellow"] };

function show({ ready, items }: GateResult, out: Output): void {
  for (const { title, state, found, todo } of items) {
    const [mark, colour] = marks[state];
    out.print(`${out.paint(colour, mark)} ${out.paint("bold", title)}${state === "met" ? "" : ` (${state})`}`);
    for (const sentence of found) out.print(`    ${sentence}`);
    for (const sentence of todo) out.print(`    ${out.paint(colour, "→")} ${sentence}`);
  }
  const open = items.filter(({ state }) => state !== "met").length;
  out.print(ready ? `\n${out.paint("green", "Ready to go live.")}` : `\n${out.paint("yellow", `Not ready: ${formatPlural(open, "demand")} of ${items.length} not met.`)}`);
}
