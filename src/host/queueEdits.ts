import { dirname, join, relative } from "node:path";
import type { QueueFile, StartingStage } from "../protocol/queueFile.ts";
import type { RunRecord } from "../storage/runs/runStore.ts";
import { t } from "../util/l10n.ts";
import { endText, statusWords } from "./runWords.ts";

/** What is asked for, and behind which runs. */
export interface Appended {
  file: string;
  stage: string;
  resume: string | null;
  behind: readonly Pick<RunRecord, "dir" | "stage">[];
  /** This machine, as the queue's file names it. */
  here: string;
  /** When it is asked for: after everything that waits already. */
  t: number;
}

/** Puts a stage at the end; one that waits already keeps its place. */
export function append(queue: QueueFile, { file, stage, resume, behind, here, t }: Appended): void {
  // How earlier runs ended, for which nothing waited, is past.
  if (queue.waiting.length === 0) Object.assign(queue, { behind: [], paused: null });
  // What somebody asked for elsewhere does not go on because something is asked for here.
  else if (queue.where !== here) queue.paused ??= { why: elsewhere(), run: null };
  queue.where = here;
  for (const { dir, stage: name } of behind) wait(queue, file, dir, name);
  if (!queue.waiting.some((one) => one.stage === stage)) queue.waiting.push({ stage, t, resume });
}

/** From now on what waits is behind this run. True when it was not before. */
export function wait(queue: QueueFile, file: string, dir: string, stage: string): boolean {
  const run = relative(dirname(file), dir);
  if (queue.behind.some((one) => one.run === run)) return false;
  queue.behind.push({ run, stage });
  return true;
}

/** Nothing runs any more: pauses unless everything the queue waited for was done. */
export function judge(queue: QueueFile, file: string, runs: readonly RunRecord[]): void {
  const ended = queue.behind.map(({ run, stage }) => ({ run, stage, record: runs.find(({ dir }) => dir === join(dirname(file), run)) }));
  queue.behind = [];
  if (queue.waiting.length === 0 || queue.paused !== null) return;
  const bad = ended.find(({ record }) => record?.state.status !== "done");
  if (bad === undefined) return;
  queue.paused = { why: bad.record === undefined ? t("the run folder of {0} is gone", bad.stage) : endWords(bad.stage, bad.record), run: bad.run };
}

/** A start whose process is gone: it has a run folder by now, or it comes first again. */
export function takeBack(queue: QueueFile, file: string, starting: StartingStage, runs: readonly RunRecord[]): void {
  if (queue.starting?.since !== starting.since) return;
  const { stage, t, resume, since } = starting;
  const mine = runs.filter((one) => one.stage === stage && ownerOf(one) === file && (resume !== null || one.spec.file_seed === undefined)); // `--seeds` starts its own
  const run = mine.find(({ id, spec, state }) => (resume === null ? spec.created >= since - 1 : id === resume && (state.endedAt ?? 0) >= since));
  queue.starting = null;
  if (run !== undefined) wait(queue, file, run.dir, stage);
  else queue.waiting = [{ stage, t, resume }, ...queue.waiting.filter((one) => one.stage !== stage)];
}

/** The `seesaw.yaml` beside whose `.seesaw/runs` a run lies. */
export function ownerOf({ dir }: RunRecord): string {
  return join(dir, "..", "..", "..", "seesaw.yaml");
}

function endWords(stage: string, { state }: RunRecord): string {
  if (state.status === "cancelled") return t("{0} was stopped", stage);
  if (state.reason?.kind === "paused") return t("{0} is paused at step {1} by a flag, and Resume goes on with it", stage, state.reason.step);
  const why = endText(state);
  return why === null ? t("{0} ended as {1}", stage, statusWords[state.status]) : t("{0} ended as {1} ({2})", stage, statusWords[state.status], why.replace(/[.。]$/, ""));
}

function elsewhere(): string {
  return t("the stages before were asked for on another machine, or before this one was restarted");
}
