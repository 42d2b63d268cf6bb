import { formatCount, formatNumber, formatPlural } from "../domain/format.ts";
import type { Stage } from "../domain/pipeline/pipelineModel.ts";
import type { PlannedSteps } from "../domain/run/plannedSteps.ts";
import { queueNote } from "./runQueue.ts";

/** What a person should know before a stage is started. */
export interface StagePreview {
  stage: Stage;
  /** Where it starts from: `M1 of math-20260101…`, `M0, the base model`. */
  start: string;
  /** The finished run with the same inputs, if there is one. */
  upToDate: string | null;
  steps: PlannedSteps | null;
  /** Path of the data as the person writes it. */
  data: string;
  /** Stages whose finished runs this run makes stale. */
  stale: readonly string[];
  /** Runs of this stage there are already. */
  runs: number;
  argv: readonly string[];
  /** The run folder, with `<time>` for what is not known yet. */
  folder: string;
  /** Name of the pipeline file, to tell where the folder is. */
  label: string;
  /** `3.11.2 from .venv`. */
  python: string;
  /** What runs now, in one line each; when there is something, the stage is queued behind it. */
  ahead: readonly string[];
}

/** The text of the question before a stage starts: what it does, what it leaves, and the exact command. */
export function stageDetail(preview: StagePreview): string {
  const { stage, upToDate, ahead, folder, label, argv, python } = preview;
  return [
    ...(ahead.length === 0 ? [] : [`Runs now: ${ahead.join("; ")}. ${stage.id} starts when that is done; if it fails or is stopped, the queue pauses. ${queueNote}`, ""]),
    ...(upToDate === null ? [] : [`Up to date: ${upToDate} has the same inputs. Running again repeats it.`, ""]),
    `Starts from ${preview.start}.`,
    stepsText(preview),
    `Writes checkpoints, traces and a journal to ${folder}, next to ${label}. ${overwriteText(preview)}`,
    ...(preview.stale.length === 0 ? [] : [staleText(stage.id, preview.stale)]),
    "",
    commandText(argv),
    "",
    `Python ${python}. The run goes on when this window is closed.`,
  ].join("\n");
}

function stepsText({ stage, steps, data }: StagePreview): string {
  const replay = stage.replay === null ? "" : `, ${Math.round(stage.replay.ratio * 100)} % replay from ${stage.replay.buffer}`;
  const head = steps === null ? "Steps as the data and arguments give" : `${steps.from === null ? "" : "About "}${formatPlural(steps.steps, "step")}`;
  const from = steps?.from == null ? "" : ` (${formatPlural(steps.from.rows, "row")} × ${number(steps.from.epochs)} ${steps.from.epochs === 1 ? "epoch" : "epochs"} ÷ ${formatPlural(steps.from.batch, "row")} a step)`;
  return `${head} of ${stage.recipe} on ${data}${from}${replay}.`;
}

function overwriteText({ stage, runs }: StagePreview): string {
  return runs === 0 ? "Nothing is overwritten." : `Nothing is overwritten: the ${runs === 1 ? "run" : `${formatCount(runs)} runs`} of ${stage.id} that ${runs === 1 ? "is" : "are"} there already ${runs === 1 ? "stays" : "stay"}.`;
}

function staleText(stage: string, stale: readonly string[]): string {
  const names = stale.length === 1 ? stale[0] ?? "" : `${stale.slice(0, -1).join(", ")} and ${stale.at(-1) ?? ""}`;
  return `When it is done, ${names} ${stale.length === 1 ? "is" : "are"} stale until run again: ${stale.length === 1 ? "it was" : "they were"} trained from the present checkpoint of ${stage}.`;
}

function number(value: number): string {
  return formatNumber(value, Number.isInteger(value) ? 0 : 2);
}

/** As a shell would need it: only for reading, nothing is ever run through a shell. */
export function commandText(argv: readonly string[]): string {
  return argv.map((argument) => (/^[\w./:=@%+<>-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", `'\\''`)}'`)).join(" ");
}
