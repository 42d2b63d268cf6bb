import * as vscode from "vscode";
import { formatPlural } from "../../domain/format.ts";
import { parseSeeds, seedsProblem, type SeedList } from "../../domain/pipeline/seedList.ts";
import { standingOfSeed } from "../../targets/seedRuns.ts";
import { AppError } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";
import type { ChosenStage } from "../choices.ts";
import { confirmed, preview, whileStarting, type RunCommandHost } from "../runStage.ts";
import { runLine } from "../runWords.ts";
import { seedLines, type SeedsPreview } from "../stageDetail.ts";

/** Asks with which seeds the stage is to run, judged as it is typed; undefined when the person gave none. */
export async function askSeeds(chosen: ChosenStage): Promise<ChosenStage | undefined> {
  const { seed } = chosen.pipeline;
  const text = await vscode.window.showInputBox({
    title: t("Run {0} with Several Seeds", chosen.stage.id),
    prompt: t("A run for each of these seeds. 0,1,2 or 0-4; 0-4%2 lets at most two run at once."),
    placeHolder: "0-4%2",
    value: `${seed}-${seed + 2}`,
    ignoreFocusOut: true,
    validateInput: seedsProblem,
  });
  return text === undefined ? undefined : { ...chosen, seeds: parseSeeds(text) };
}

/** Shows what the seeds come to, asks once, and starts those that need a run, all of them as one job array. */
export async function runSeveralSeeds(host: RunCommandHost, chosen: ChosenStage, list: SeedList): Promise<void> {
  const { stage, pipeline } = chosen;
  const seeds = await standings(host, chosen, list);
  const [first] = seeds.run;
  if (first === undefined) return void vscode.window.showInformationMessage(t("{0}: there is nothing to start. {1}", stage.id, seedLines(seeds).join(" ")));
  const shown = await preview(host, chosen, [], first);
  // What stands beside the chain makes nothing stale.
  const stale = seeds.run.includes(pipeline.seed) ? shown.stale : [];
  if (!(await confirmed(host, chosen, { ...shown, stale, seeds }))) return;
  await startSeeds(host, chosen, list);
}

/** What there is for each seed. AppError("already-running") where a run with other inputs is in the way. */
async function standings({ launcher }: RunCommandHost, { pipeline, stage }: ChosenStage, { seeds, limit }: SeedList): Promise<SeedsPreview> {
  const run: number[] = [];
  const upToDate: { seed: number; id: string }[] = [];
  const running: { seed: number; id: string }[] = [];
  for (const seed of seeds) {
    const { is, run: there } = await standingOfSeed(launcher, pipeline, stage.id, seed);
    if (is === "to-run" && there !== null) throw new AppError("already-running", t("Seed {0} of {1} runs already with other inputs: {2}.", seed, stage.id, runLine(there.state)));
    if (there === null) run.push(seed);
    else (is === "joined" ? running : upToDate).push({ seed, id: there.id });
  }
  return { run, limit, upToDate, running, fileSeed: pipeline.seed };
}

/** Resolves once the array is submitted; each of its runs is then followed like any other. */
async function startSeeds(host: RunCommandHost, { view, pipeline, stage }: ChosenStage, list: SeedList): Promise<void> {
  const shown = { location: vscode.ProgressLocation.Notification, title: t("Starting {0} with {1}", stage.id, formatPlural(list.seeds.length, "seed")) };
  await whileStarting(host, view, shown, (options) =>
    host.runSeeds(pipeline, view.diagnostics, {
      ...options,
      stage: stage.id,
      list,
      detach: true,
      onEvent: (_seed, event) => {
        if (event.type === "started") for (const note of event.run.notes) host.log.info(note);
      },
    }));
}
