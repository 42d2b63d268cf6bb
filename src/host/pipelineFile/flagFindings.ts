import type { SourceRange } from "../../domain/pipeline/pipelineModel.ts";
import type { FlaggedStage } from "../../domain/pipeline/stageEdits.ts";
import type { FlagFact } from "../../domain/run/flagCard.ts";
import { lastGoodStep, raisedAt } from "../../domain/run/flagEpisode.ts";
import { flagsOfRun, probeSetName } from "../../domain/run/flagText.ts";
import { t } from "../../util/l10n.ts";
import { factsOf } from "../flags/flagFacts.ts";
import type { PipelineView } from "../workspaceModel.ts";

/** A raised flag where its stage stands in `seesaw.yaml`. */
export interface FlagFinding {
  file: string;
  range: SourceRange;
  severity: "warning" | "info";
  code: "flag-confirmed" | "flag-drifting";
  message: string;
  /** `math (in-domain)`, and what is known besides the finding. */
  name: string;
  facts: FlagFact[];
  /** The probes it was seen on. */
  probes: { file: string; message: string } | null;
  run: string;
  /** The installation has a report card of its detectors. */
  hasCard: boolean;
  /** What a quick fix needs to know. */
  flagged: FlaggedStage;
}

/** The flags that stand: those of each stage's newest run that are drifting or confirmed. A newer run without them ends them. */
export function flagFindings(view: PipelineView): FlagFinding[] {
  const { shown, chain } = view;
  if (shown === null || chain === null) return [];
  return shown.stages.flatMap((stage) => {
    const run = chain.newest[stage.id];
    if (run === undefined) return [];
    const entries = flagsOfRun(run);
    return run.state.flags.flatMap((flag): FlagFinding[] => {
      if (flag.state !== "drifting" && flag.state !== "confirmed") return [];
      const confirmed = flag.state === "confirmed";
      const message = entries.findLast(({ id }) => id === flag.id)?.text ?? "";
      const file = shown.skills.find(({ id }) => id === flag.skill)?.probes[flag.split];
      const probes = file === undefined ? null : { file, message: t("The probes of {0}", probeSetName(flag.skill, flag.split)) };
      return [{ file: view.uri.fsPath, range: stage.range, severity: confirmed ? "warning" : "info", code: confirmed ? "flag-confirmed" : "flag-drifting", message, name: probeSetName(flag.skill, flag.split), facts: factsOf(view, run, flag), probes, run: run.id, hasCard: view.card != null, flagged: { stage: stage.id, skill: flag.skill, split: flag.split, moved: (flag.moved ?? []).map(({ line }) => line), step: raisedAt(run, flag.id) ?? flag.step, goodStep: lastGoodStep(run, flag.id) } }];
    });
  });
}
