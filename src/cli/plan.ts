import type { Command } from "commander";
import { askedDevice, sizeClasses, type Device } from "../domain/cost/devices.ts";
import { momentName } from "../domain/cost/assumptions.ts";
import { comparisonRows, fitSentence, formatFlops, memoryRows, rangeOfBytes, sizeRows, workRows } from "../domain/cost/costText.ts";
import { compareCost } from "../domain/cost/measured.ts";
import type { StageCost } from "../domain/cost/stageCost.ts";
import { formatBytes, formatCount, formatDuration, formatNumber } from "../domain/format.ts";
import { AppError } from "../util/errors.ts";
import { readChain } from "./chainData.ts";
import type { CommandContext, ContextOf } from "./context.ts";
import { table, type Output } from "./output.ts";

export function addPlan(program: Command, contextOf: ContextOf): void {
  program
    .command("plan")
    .argument("[stage]", "a stage; default: all")
    .description("what a stage will need and take, before anything starts: memory, tokens, FLOPs, hours")
    .option("--device <size or name>", "price it for this device: a size (80GB), a name (H100, RTX 4090) or cpu; default: what the target's last run had")
    .option("--measured", "what finished runs took, beside what was predicted for them")
    .addHelpText("after", "\nNothing is loaded or started: sizes come from config.json and safetensors headers, lengths from a sample of the rows.\n\nExamples:\n  seesaw plan math\n  seesaw plan math --device 80GB\n  seesaw plan --measured\n  seesaw plan --json")
    .action(async (stage: string | undefined, options: { device?: string; measured?: boolean }, command: Command) => {
      const context = contextOf(command);
      if (options.measured === true) return showMeasured(context, stage);
      const device = options.device === undefined ? null : chosenDevice(options.device);
      const pipeline = await context.pipeline();
      const ids = stage === undefined ? pipeline.stages.map(({ id }) => id) : [stage];
      const costs: StageCost[] = [];
      for (const id of ids) costs.push(await context.services.costs.plan(pipeline, id, { device }));
      if (context.json) return context.out.json({ v: 1, pipeline: pipeline.file, stages: costs.map(planJson) });
      if (stage !== undefined) showOne(costs[0] as StageCost, context.out);
      else showAll(costs, context.out);
    });
}

function chosenDevice(text: string): Device {
  const device = askedDevice(text);
  if (device === null) throw new AppError("usage", `--device takes a size such as 80GB, a name such as H100 or RTX 4090, or cpu; \`${text}\` is none of them.`);
  return device;
}

function showAll(costs: readonly StageCost[], out: Output): void {
  const rows = costs.map((cost) => [
    cost.stage,
    cost.recipe,
    cost.memory === null ? "–" : formatBytes(cost.memory.peak),
    cost.memory === null ? "–" : `${formatBytes(cost.memory.low)} to ${formatBytes(cost.memory.high)}`,
    ...sizeClasses.map(({ label }) => cost.sizes.find((size) => size.label === label)?.fit ?? "–"),
    cost.tokens > 0 ? formatCount(cost.tokens) : "–",
    cost.flops > 0 ? formatFlops(cost.flops) : "–",
    cost.time === null ? "–" : formatDuration(cost.time.seconds),
  ]);
  out.print(table(["stage", "recipe", "peak memory", "range", ...sizeClasses.map(({ label }) => label), "tokens", "work", "time"], rows, { right: [2, 3, 8, 9, 10], out }));
  const known = costs.filter(({ time }) => time !== null);
  if (known.length > 0) out.print(`\nAll stages: ${formatFlops(costs.reduce((sum, one) => sum + one.flops, 0))}, about ${formatDuration(known.reduce((sum, one) => sum + (one.time?.seconds ?? 0), 0))} of training${known.length < costs.length ? `, without ${costs.filter(({ time }) => time === null).map(({ stage }) => stage).join(", ")}` : ""}.`);
  out.note(out.paint("dim", "seesaw plan <stage> shows where each number comes from."));
}

function showOne(cost: StageCost, out: Output): void {
  const { model, memory, device, distill } = cost;
  const bold = (text: string): string => out.paint("bold", text);
  const moving = model.trainable === 0 ? "" : `, ${formatCount(model.trainable)} of them trained`;
  out.print(`${bold(cost.stage)}: ${cost.recipe} on ${formatCount(model.parameters)} parameters${moving}${device === null ? "" : `, ${device.name}`}\n`);
  if (memory !== null) {
    out.print(`${bold("Peak memory")} ${rangeOfBytes(memory)}, ${momentName(memory.moment)}`);
    out.print(`${table(["part", "bytes", "share"], memoryRows(cost), { right: [1, 2], out })}\n`);
    out.print(`${bold("Devices")} ${fitSentence(cost)}`);
    out.print(`${table(["memory", "this stage", "experts, float32", "bfloat16"], sizeRows(cost), { right: [2, 3], out })}`);
    out.print(`${out.paint("dim", `Experts: LoRA adapters of ${formatCount(cost.expertParameters)} parameters beside one frozen base.`)}\n`);
  }
  if (cost.work.length > 0) {
    out.print(`${bold("Work")} ${formatFlops(cost.flops)}${cost.steps === null ? "" : ` in ${formatCount(cost.steps)} steps`}`);
    out.print(`${table(["what", "model", "tokens", "FLOPs", "rule"], workRows(cost), { right: [2, 3], out })}\n`);
  }
  if (cost.time !== null) out.print(`${bold("Time")} about ${formatDuration(cost.time.seconds)} (${formatDuration(cost.time.low)} to ${formatDuration(cost.time.high)})${cost.time.otherSeconds === null ? "" : `, and ${formatDuration(cost.time.otherSeconds)} for loading and probes`}\n`);
  if (distill !== null) {
    const rows = (["online", "offline"] as const).map((name) => {
      const one = distill[name];
      return [name, rangeOfBytes(one.memory), formatCount(one.teacherTokens), formatFlops(one.teacherFlops), one.diskBytes === 0 ? "–" : formatBytes(one.diskBytes), one.note];
    });
    out.print(`${bold("Teachers")}\n${table(["", "peak memory", "tokens they score", "FLOPs", "on disk", ""], rows, { right: [2, 3, 4], out })}\n`);
  }
  for (const sentence of cost.assumptions) out.print(out.paint("dim", `· ${sentence}`));
}

/** One price in `--json`. */
export function planJson({ settings, ...cost }: StageCost): object {
  return { ...cost, settings: { ...settings, maxLength: settings.maxLength } };
}

async function showMeasured(context: CommandContext, stage: string | undefined): Promise<void> {
  const { out, json, services } = context;
  const pipeline = await context.pipeline();
  if (stage !== undefined && !pipeline.stages.some(({ id }) => id === stage)) throw new AppError("not-found", `There is no stage \`${stage}\` in ${pipeline.file}.`);
  const { runs } = await readChain(services, pipeline);
  const compared = runs.filter((run) => stage === undefined || run.stage === stage).flatMap((run) => compareCost(run) ?? []);
  if (json) return out.json({ v: 1, pipeline: pipeline.file, runs: compared });
  if (compared.length === 0) return out.print("No run has told what it took yet: runs do since they are started with this version.");
  const rows = compared.flatMap((one) => comparisonRows(one).map((cells, index) => [index === 0 ? one.run : "", ...cells]));
  out.print(table(["run", "", "predicted", "measured", "ratio", "in range"], rows, { right: [2, 3, 4], out }));
  const before = Math.max(...compared.map((one) => one.before));
  if (before > 0) out.note(out.paint("dim", `Memory is without the ${formatBytes(before)} that Python and its libraries take before a model is loaded.`));
  const ratios = compared.flatMap(({ rows: all }) => all.flatMap(({ what, ratio }) => (what === "memory" && ratio !== null ? ratio : [])));
  if (ratios.length > 1) out.note(out.paint("dim", `Predicted ÷ measured memory: ${formatNumber(Math.min(...ratios))} to ${formatNumber(Math.max(...ratios))} over ${ratios.length} runs.`));
}
