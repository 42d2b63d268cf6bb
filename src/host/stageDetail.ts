import { formatCount, formatNumber, formatPlural } from "../domain/format.ts";
import { ownCommand } from "../domain/pipeline/ownCommand.ts";
import type { Stage } from "../domain/pipeline/pipelineModel.ts";
import { seedsText } from "../domain/pipeline/seedList.ts";
import type { PlannedSteps } from "../domain/run/plannedSteps.ts";
import { t } from "../util/l10n.ts";
import { shellText } from "../util/shellText.ts";
import { queueNote } from "./runQueue.ts";

/** What a person should know before a stage is started. */
export interface StagePreview {
  stage: Stage;
  /** Where it starts from: `M1 of math-20260101…`, `M0, the base model`. */
  start: string;
  /** The finished run with the same inputs, if there is one. */
  upToDate: string | null;
  steps: PlannedSteps | null;
  /** What it will need and take, in a few sentences; empty where that cannot be told. */
  cost: readonly string[];
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
  /** Where it runs, if not on this machine. */
  place?: { target: string; address: string; dir: string } | null;
  /** Several runs instead of one. */
  seeds?: SeedsPreview;
}

/** What several seeds of a stage come to. */
export interface SeedsPreview {
  /** Seeds that get a run, and how many of these go at once. */
  run: readonly number[];
  limit: number | null;
  /** Seeds that get none: the run there is. */
  upToDate: readonly { seed: number; id: string }[];
  running: readonly { seed: number; id: string }[];
  fileSeed: number;
}

/** The text of the question before a stage starts: what it does, what it leaves, and the exact command. */
export function stageDetail(preview: StagePreview): string {
  const { stage, upToDate, ahead, argv, python, place = null } = preview;
  return [
    ...(ahead.length === 0 ? [] : [`${t("Runs now: {0}. {1} starts when that is done; if it fails or is stopped, the queue pauses.", ahead.join("; "), stage.id)} ${queueNote()}`, ""]),
    ...(upToDate === null ? [] : [t("Up to date: {0} has the same inputs. Running again repeats it.", upToDate), ""]),
    ...(preview.seeds === undefined ? [] : [...seedLines(preview.seeds), ""]),
    ...(place === null ? [] : [t("Runs on {0}: {1}.", place.target, place.address)]),
    t("Starts from {0}.", preview.start),
    stepsText(preview),
    ...preview.cost,
    `${folderText(preview)} ${overwriteText(preview)}`,
    ...(preview.stale.length === 0 ? [] : [staleText(stage.id, preview.stale)]),
    "",
    commandText(argv),
    ...ownLines(preview),
    "",
    place === null ? t("Python {0}. The run goes on when this window is closed.", python) : t("Python {0}. The run goes on there when this window is closed and when the connection is cut.", python),
  ].join("\n");
}

/** Which seeds get a run, which get none and why, and where their runs stand; a sentence a line. */
export function seedLines({ run, limit, upToDate, running, fileSeed }: SeedsPreview): string[] {
  const [only] = run;
  return [
    ...(run.length > 1 ? [t("One job array of {0} tasks, for each seed a run of its own: {1}.", run.length, seedsText(run)) + (limit === null || limit >= run.length ? "" : ` ${t("At most {0} at once.", limit)}`)] : only === undefined ? [] : [t("One run, with seed {0}.", only)]),
    ...upToDate.map(({ seed, id }) => t("Seed {0} is up to date ({1}): it is not run again.", seed, id)),
    ...running.map(({ seed, id }) => t("Seed {0} runs already ({1}).", seed, id)),
    ...(run.some((seed) => seed !== fileSeed) ? [t("Runs with another seed than the file's ({0}) stand beside the chain: the next stage does not start from them.", fileSeed)] : []),
    ...(run.length > 1 ? ["", t("What follows holds for each run.")] : []),
  ];
}

function folderText({ folder, label, place = null }: StagePreview): string {
  if (place === null) return t("Writes checkpoints, traces and a journal to {0}, next to {1}.", folder, label);
  return t("Copies the runner, the data and the start checkpoint to {0} where they are not there yet. Checkpoints stay there; journal, traces and log come back as they are written.", place.dir);
}

function stepsText({ stage, steps, data }: StagePreview): string {
  if (ownCommand(stage) !== null) return t("Its checkpoints are scored where it writes them, as they appear.");
  const replay = stage.replay === null ? "" : t(", {0} % replay from {1}", Math.round(stage.replay.ratio * 100), stage.replay.buffer);
  const head = steps === null ? t("Steps as the data and arguments give") : steps.from === null ? formatPlural(steps.steps, "step") : t("About {0}", formatPlural(steps.steps, "step"));
  const from = steps?.from == null ? "" : t(" ({0} × {1} ÷ {2} a step)", formatPlural(steps.from.rows, "row"), steps.from.epochs === 1 ? t("1 epoch") : t("{0} epochs", number(steps.from.epochs)), formatPlural(steps.from.batch, "row"));
  return t("{0} of {1} on {2}{3}{4}.", head, stage.recipe, data, from, replay);
}

function overwriteText({ stage, runs }: StagePreview): string {
  if (runs === 0) return t("Nothing is overwritten.");
  return runs === 1 ? t("Nothing is overwritten: the run of {0} that is there already stays.", stage.id) : t("Nothing is overwritten: the {0} runs of {1} that are there already stay.", formatCount(runs), stage.id);
}

function staleText(stage: string, stale: readonly string[]): string {
  if (stale.length === 1) return t("When it is done, {0} is stale until run again: it was trained from the present checkpoint of {1}.", stale[0] ?? "", stage);
  const names = t("{0} and {1}", stale.slice(0, -1).join(", "), stale.at(-1) ?? "");
  return t("When it is done, {0} are stale until run again: they were trained from the present checkpoint of {1}.", names, stage);
}

function number(value: number): string {
  return formatNumber(value, Number.isInteger(value) ? 0 : 2);
}

/** The program of the person's own that this starts in turn. */
function ownLines({ stage, label }: StagePreview): string[] {
  const own = ownCommand(stage);
  if (own === null) return [];
  const where = own.cwd ?? t("the folder of {0}", label);
  return ["", own.shell ? t("That runs your own shell line in {0}:", where) : t("That runs your own command in {0}:", where), own.line];
}

/** The command line that starts a stage, for reading and copying. */
export function commandText(argv: readonly string[]): string {
  return shellText(argv);
}
