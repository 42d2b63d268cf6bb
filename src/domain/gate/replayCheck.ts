import { formatCount, formatNumber, formatPercent } from "../format.ts";
import type { Buffer } from "../pipeline/pipelineModel.ts";
import type { ReplaySpec } from "../../protocol/runSpec.ts";
import type { ChainRun } from "../run/chain.ts";
import { isBeside } from "../run/seedOf.ts";
import type { GateInput, GateItem } from "./gate.ts";

const title = "Replay quality gate on";

/** Every buffer that a stage replays from lets only rows in that are good enough, in the file and in the run that was made with it. */
export function replayCheck({ pipeline, runs }: Pick<GateInput, "pipeline" | "runs">): GateItem {
  const item = { id: "replay" as const, title };
  const found: string[] = [];
  const todo: string[] = [];
  let measured = true;
  const replaying = pipeline.stages.flatMap((stage) => {
    const id = stage.replay?.buffer ?? (stage.recipe === "replay" ? String(stage.options["buffer"]) : null);
    const buffer = pipeline.buffers.find((one) => one.id === id);
    return buffer === undefined ? [] : [{ stage, buffer, ratio: stage.replay?.ratio ?? 1 }];
  });
  if (replaying.length === 0) return { ...item, state: "missing", found: ["No stage replays rows of earlier stages."], todo: ["Add a buffer (buffers: { main: { from: [<stage>], rows: 200, quality: { check: true } } }) and replay: { buffer: main, ratio: 0.1 } to the later stages."] };
  for (const buffer of new Set(replaying.map((one) => one.buffer))) {
    if (buffer.quality !== null) continue;
    todo.push(`Buffer ${buffer.id} takes every row: add quality: { check: true }, or { reward: 0.7 } where rows have one.`);
  }
  for (const { stage, buffer, ratio } of replaying) {
    const run = newestDone(runs.filter((one) => !isBeside(one, pipeline)), stage.id);
    if (run === null) {
      measured = false;
      todo.push(`${stage.id} has not been run with its buffer: seesaw run ${stage.id}`);
    } else if (run.spec.replay === null) {
      measured = false;
      todo.push(`The newest run of ${stage.id} (${run.id}) replayed nothing: seesaw run ${stage.id}`);
    } else if (run.spec.replay.quality === null) {
      if (buffer.quality !== null) todo.push(`${run.id} was run before buffer ${buffer.id} had a quality gate: seesaw run ${stage.id}`);
    } else found.push(`${run.id}: ${formatPercent(ratio, 0)} replay from ${buffer.id}, ${formatCount(run.spec.replay.rows)} rows at most, ${qualityText(run.spec.replay.quality)}.`);
  }
  return { ...item, state: todo.length === 0 ? "met" : measured ? "failed" : "missing", found, todo };
}

function newestDone(runs: readonly ChainRun[], stage: string): ChainRun | null {
  return runs.find((run) => run.stage === stage && run.state.status === "done") ?? null;
}

function qualityText(quality: NonNullable<ReplaySpec["quality"] | Buffer["quality"]>): string {
  if ("reward_model" in quality) return `only rows with at least ${formatNumber(quality.min)} by the reward model ${quality.reward_model}`;
  return "check" in quality ? "only rows that pass their skill's check" : `only rows with ${quality.field ?? "reward"} ≥ ${formatNumber(quality.min)}`;
}
