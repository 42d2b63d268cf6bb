import { dryRunText } from "../domain/targets/dryRunText.ts";
import { targetAddress } from "../domain/targets/targetList.ts";
import type { Pipeline } from "../domain/pipeline/pipelineModel.ts";
import type { SeedList } from "../domain/pipeline/seedList.ts";
import type { LoadedPipeline } from "../targets/pipelineFile.ts";
import { AppError } from "../util/errors.ts";
import type { StartOptions } from "../targets/launcher.ts";
import type { CommandContext } from "./context.ts";

/** `seesaw run … --dry-run`: what each stage would do, word for word; nothing is started and nothing is copied. */
export async function showDryRun(context: CommandContext, pipeline: Pipeline, { diagnostics }: Pick<LoadedPipeline, "diagnostics">, stages: readonly string[], start: StartOptions, seeds?: SeedList): Promise<void> {
  const { out, services } = context;
  const shown: object[] = [];
  for (const id of stages) {
    const stage = pipeline.stages.find((one) => one.id === id);
    const target = pipeline.targets.find((one) => one.id === stage?.on);
    const address = target === undefined ? "this machine" : targetAddress(target);
    const about = { stage: id, target: target?.id ?? "local", address };
    out.rewrite(`looking up what running ${id} would do`);
    try {
      const described = await services.launcher.describeStage(pipeline, diagnostics, id, start, seeds);
      const { commands, files, script } = described;
      const notes = [...seedNote(seeds, services.launcher.startsTogether(pipeline, id)), ...described.notes];
      shown.push({ ...about, commands, files, script, notes });
      if (!context.json) out.print(dryRunText(id, target === undefined || target.kind === "local" ? address : `${target.id} (${address})`, { commands, files, script, notes }));
    } catch (error) {
      // A later stage of the chain starts from what is not there yet: the others can be shown all the same.
      if (!AppError.is(error, "not-finished") || stages.length === 1) throw error;
      shown.push({ ...about, problem: error.message });
      if (!context.json) out.note(`${id}: ${error.message}`);
    }
  }
  out.rewrite("");
  if (context.json) out.json({ v: 1, dry_run: shown });
}

/** What is shown is the first of several runs where they do not start at once. */
function seedNote(list: SeedList | undefined, together: boolean): string[] {
  if (list === undefined || list.seeds.length < 2 || together) return [];
  const how = (list.limit ?? 1) < 2 ? "one after the other" : `at most ${list.limit} at once`;
  return [`Shown is the run with seed ${list.seeds[0]}; those with ${list.seeds.slice(1).join(", ")} differ by the seed alone, and run ${how}.`];
}
