import type { Chain } from "../../domain/run/chain.ts";
import { ownReference, probeSetsOf, scoredCheckpoints, startReference, type ProbeSet } from "../../domain/drift/driftSelection.ts";
import type { Pipeline } from "../../domain/pipeline/pipelineModel.ts";
import type { Split } from "../../protocol/runSpec.ts";
import type { DriftChoices, DriftSelection } from "../../protocol/webview.ts";
import { t } from "../../util/l10n.ts";
import type { PipelineView } from "../workspaceModel.ts";

/** A selection with every gap filled in. */
export interface ResolvedSelection {
  view: PipelineView;
  pipeline: Pipeline;
  chain: Chain;
  skill: string;
  split: Split;
  /** `start`, or the label of a checkpoint. */
  reference: string;
}

const splitWords: Record<Split, string> = { get id() { return t("in-domain"); }, get ood() { return t("out-of-domain"); } };

/** What can be chosen, and what is chosen: what was asked for where it exists, else the most telling. Null: nothing to show. */
export function resolveSelection(views: readonly PipelineView[], asked: DriftSelection): { resolved: ResolvedSelection | null; choices: DriftChoices } {
  const usable = views.filter((view) => view.shown !== null && view.shown.skills.length > 0);
  const pipelines = usable.map((view) => ({ value: view.uri.fsPath, label: view.label }));
  const view = usable.find((one) => one.uri.fsPath === asked.pipeline) ?? usable.find((one) => one.listing.runs.length > 0) ?? usable[0];
  const none: DriftChoices = { pipelines, skills: [], splits: [], references: [] };
  if (view?.shown == null || view.chain === null) return { resolved: null, choices: none };
  const { shown: pipeline, chain } = view;
  const skills = pipeline.skills.map(({ id }) => ({ value: id, label: id, flag: flagOf(chain, id) }));
  const skill = skills.find(({ value }) => value === asked.skill) ?? skills.find(({ flag }) => flag !== null) ?? skills[0];
  const spec = pipeline.skills.find(({ id }) => id === skill?.value);
  if (skill === undefined || spec === undefined) return { resolved: null, choices: none };
  const splits = probeSetsOf(spec).map(({ split }) => ({ value: split, label: splitWords[split] }));
  const split = splits.find(({ value }) => value === asked.split)?.value ?? "id";
  const set: ProbeSet = { skill: skill.value, split };
  const references = referencesOf(chain, set);
  const reference = references.find(({ value }) => value === asked.reference)?.value ?? ownReference(chain, set);
  return { resolved: { view, pipeline, chain, skill: skill.value, split, reference }, choices: { pipelines, skills, splits, references } };
}

/** What the scores of a probe set can be compared with. */
function referencesOf(chain: Chain, set: ProbeSet): DriftChoices["references"] {
  const scored = scoredCheckpoints(chain, set);
  if (scored.length === 0) return [];
  return [
    { value: startReference, label: t("the start of each stage") },
    ...scored.map(({ label, stage }) => ({ value: label, label: stage === null ? t("{0}, the base", label) : t("{0}, after {1}", label, stage) })),
  ];
}

/** A word for the worst flag of a skill, or null. */
function flagOf(chain: Chain, skill: string): string | null {
  const states = Object.values(chain.newest).flatMap((run) => run.state.flags.filter((flag) => flag.skill === skill).map((flag) => flag.state));
  return states.includes("confirmed") ? t("loss confirmed") : states.includes("drifting") ? t("drifting") : null;
}
