import type { Command } from "commander";
import { checkedText } from "../domain/run/checkedFlag.ts";
import { buildChain, fromName } from "../domain/run/chain.ts";
import { compareCost, measuredPeak } from "../domain/cost/measured.ts";
import { formatBytes, formatDuration, formatNumber, formatPlural } from "../domain/format.ts";
import { runSeconds } from "../domain/run/reduceRun.ts";
import { reasonText } from "../domain/run/reasonText.ts";
import { isBeside, newestBeside, seedLabel } from "../domain/run/seedOf.ts";
import { queuedText, unreachableText } from "../domain/run/remoteText.ts";
import type { RunRecord } from "../storage/runs/runStore.ts";
import { isActive } from "../targets/standing.ts";
import { messageOf } from "../util/errors.ts";
import type { CommandContext, ContextOf } from "./context.ts";
import { stageOfRunId } from "./runChoice.ts";
import { oneLine, table, type Output } from "./output.ts";

export function addStatus(program: Command, contextOf: ContextOf): void {
  program
    .command("status")
    .description("the stages of the chain and the state of their runs")
    .option("--runs", "all runs, newest first, instead of the newest of each stage")
    .option("--no-refresh", "do not ask other machines how their runs are; show what was heard last")
    .addHelpText("after", "\nExamples:\n  seesaw status\n  seesaw status --runs --json")
    .action(async (options: { runs?: boolean; refresh: boolean }, command: Command) => {
      const context = contextOf(command);
      const { out } = context;
      const pipeline = await context.pipeline();
      if (options.refresh) await askTargets(context, pipeline.root);
      const { runs, unreadable } = await context.services.runs.list(pipeline.root);
      const chain = buildChain(pipeline, runs);
      if (context.json) {
        const stages = pipeline.stages.map((stage) => {
          const checkpoint = chain.checkpoints.find((one) => one.stage === stage.id);
          return { stage: stage.id, label: `M${stage.index}`, from: fromName(stage), checkpoint: checkpoint?.status ?? "missing", reason: checkpoint?.reason ?? null, newest: chain.newest[stage.id]?.id ?? null };
        });
        out.json({ v: 1, pipeline: pipeline.file, root: pipeline.root, seed: pipeline.seed, stages, runs: runs.map(runJson), unreadable });
        return;
      }
      const besides = (stage: string): RunRecord[] => newestBeside(runs, stage, pipeline);
      const shown = options.runs ? runs : pipeline.stages.flatMap(({ id }) => [...runs.filter((run) => run.id === chain.newest[id]?.id), ...besides(id)]);
      // A seed is told where it is not the file's.
      const named = (run: RunRecord, name: string): string => [name, seedLabel(run, pipeline)].filter(Boolean).join(", ");
      const rows = options.runs
        ? runs.map((run) => runCells(run, named(run, run.id), out))
        : pipeline.stages.flatMap((stage) => {
            const newest = runs.find((run) => run.id === chain.newest[stage.id]?.id);
            const checkpoint = chain.checkpoints.find((one) => one.stage === stage.id);
            const name = `M${stage.index} ${stage.id}`;
            const beside = besides(stage.id).map((run) => runCells(run, `   ${seedLabel(run, pipeline)}`, out));
            if (!newest) return [[name, unreadable.some(({ id }) => stageOfRunId(id) === stage.id) ? out.paint("yellow", "unreadable") : out.paint("dim", "not run yet"), "", "", "", "", "", ""], ...beside];
            const cells = runCells(newest, named(newest, name), out);
            if (checkpoint?.status === "stale" && newest.state.status === "done") cells[1] = out.paint("yellow", "stale");
            return [cells, ...beside];
          });
      if (shown.length === 0 && options.runs) out.print(`No runs yet in ${pipeline.root}: start with \`seesaw run --all\`.`);
      else {
        // Only where there is one: runs tell their peak since `cost.measured`, and their target where that is another machine.
        const names = [options.runs ? "run" : "stage", "state", "on", "step", "loss", "took", "peak memory", "flags"];
        const columns = names.flatMap((name, column) => (["on", "peak memory"].includes(name) && rows.every((row) => (row[column] ?? "") === "") ? [] : [column]));
        const right = columns.flatMap((column, place) => (["step", "loss", "took"].includes(names[column] ?? "") ? [place] : []));
        out.print(table(columns.map((column) => names[column] ?? ""), rows.map((row) => columns.map((column) => row[column] ?? "")), { right, out }));
      }
      for (const checkpoint of chain.checkpoints) if (checkpoint.status === "stale") out.note(out.paint("yellow", `${checkpoint.label}: ${checkpoint.reason ?? "stale"}`));
      for (const run of shown) for (const line of remoteNotes(run, Date.now() / 1000)) out.note(out.paint("yellow", line));
      for (const run of shown) for (const skill of run.checked?.keys() ?? []) out.note(`${run.stage}, checked again: ${checkedText(run, skill)}`);
      for (const run of shown) {
        if (!isActive(run) && run.state.status !== "done") out.note(`${run.stage}: ${oneLine(reasonText(run.state.reason), 400)} \`seesaw run ${run.stage} --resume${isBeside(run, pipeline) ? ` --seeds ${run.spec.seed}` : ""}\` goes on with it.`);
      }
      for (const run of shown) {
        if (run.state.badLines > 0) out.note(out.paint("yellow", `${run.id}: ${formatPlural(run.state.badLines, "line")} of its journal cannot be read; what they said is missing here.`));
      }
      const gone = [...new Set(runs.map(({ stage }) => stage))].filter((stage) => !pipeline.stages.some(({ id }) => id === stage));
      if (gone.length > 0 && !options.runs) out.note(out.paint("dim", `There are also runs of ${gone.join(", ")}, which ${pipeline.file} no longer has: \`seesaw status --runs\` lists them.`));
      for (const { message } of unreadable) out.note(out.paint("yellow", message));
    });
}

/** Hears how the runs on other machines are. One that cannot be reached is shown as it was last heard of, so this waits only so long. */
async function askTargets(context: CommandContext, root: string): Promise<void> {
  const limit = AbortSignal.timeout(askMs);
  context.out.rewrite("asking other machines how their runs are");
  await context.services.remotes.refresh(root, { signal: limit }).catch((error: unknown) => context.log.info(messageOf(error)));
  context.out.rewrite("");
}

/** What there is to say of a run that waits in a queue, or whose machine does not answer. */
export function remoteNotes({ stage, state }: Pick<RunRecord, "stage" | "state">, now: number): string[] {
  const { remote } = state;
  if (remote === null) return [];
  const job = remote.job === null ? "" : `, job ${remote.job}`;
  if (state.status === "queued") return [`${stage}: ${queuedText(remote)} (${remote.address}${job}). It starts there by itself.`];
  if (state.status !== "unreachable") return [];
  const heard = remote.heard === null ? "it was not heard of yet" : `heard of ${formatDuration(Math.max(0, now - remote.heard))} ago`;
  const last = remote.unreachable?.last ?? "unknown";
  const step = state.total > 0 && state.step > 0 ? ` at step ${state.step} of ${state.total}` : "";
  return [`${stage}: ${unreachableText(remote, now)} (${remote.address}${job}): ${oneLine(remote.unreachable?.message ?? "", 400)} Last known: ${last}${step}, ${heard}; it may well go on there.`];
}

const askMs = 20_000;
const colours = { done: "green", running: "cyan", starting: "cyan", queued: "cyan", unreachable: "yellow", stopping: "yellow", orphan: "yellow", paused: "yellow" } as const;

function runCells(run: RunRecord, name: string, out: Output): string[] {
  const { state } = run;
  const colour = colours[state.status as keyof typeof colours] ?? "red";
  const took = runSeconds(state, Date.now() / 1000);
  const counts = new Map<string, number>();
  for (const flag of state.flags) counts.set(flag.state, (counts.get(flag.state) ?? 0) + 1);
  const flags = ["confirmed", "drifting", "recovered"].flatMap((kind) => (counts.has(kind) ? [`${counts.get(kind)} ${kind}`] : [])).join(", ");
  return [
    name,
    out.paint(colour, state.status),
    state.remote?.target ?? "",
    state.total > 0 ? `${state.step}/${state.total}` : "",
    state.loss === null ? "" : formatNumber(state.loss, 3),
    took === null ? "" : formatDuration(took),
    peakText(run),
    flags,
  ];
}

/** `791 MB, predicted 228 MB`; without the second where nothing was. */
function peakText(run: RunRecord): string {
  const memory = compareCost(run)?.rows.find(({ what }) => what === "memory");
  if (memory === undefined) return "";
  return `${formatBytes(memory.measured)}${memory.predicted === null ? "" : `, predicted ${formatBytes(memory.predicted.expected)}`}`;
}

/** One run in `--json`. */
export function runJson({ id, stage, dir, spec, state, checked }: RunRecord): object {
  return {
    id,
    stage,
    dir,
    status: state.status,
    attempt: state.attempt,
    seed: spec.seed,
    start: spec.start,
    fingerprint: spec.fingerprint,
    created: spec.created,
    started: state.startedAt,
    ended: state.endedAt,
    seconds: runSeconds(state, Date.now() / 1000),
    step: state.step,
    total: state.total,
    loss: state.loss,
    tokens_per_s: state.tokensPerSecond,
    eta_s: state.etaSeconds,
    phase: state.phase,
    device: state.device,
    probe_share: state.probeShare,
    predicted: spec.predicted ?? null,
    measured: state.cost === null ? null : { ...state.cost, model_bytes: measuredPeak(state.cost) },
    reason: state.reason,
    target: spec.target.id,
    remote: state.remote,
    checkpoints: state.checkpoints.map(({ step, path, kind, final, weightsHash, bytes }) => ({ step, path, kind, final, weights_hash: weightsHash, bytes, size: formatBytes(bytes) })),
    flags: state.flags,
    checked: [...(checked ?? [])].map(([skill, check]) => ({ skill, ...("problem" in check ? check : { step: check.step, t: check.t, prompts: check.prompts, ...check.found }) })),
    warnings: state.warnings,
    bad_lines: state.badLines,
  };
}
