import type { Chain, ChainCheckpoint } from "../../domain/chain.ts";
import type { Pipeline } from "../../domain/pipelineModel.ts";
import type { Split } from "../../protocol/runSpec.ts";
import type { DriftChoices, DriftSelection } from "../../protocol/webview.ts";
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

export const startReference = "start";

/** What can be chosen, and what is chosen: what was asked for where it exists, else the most telling. Null: nothing to show. */
export function resolveSelection(views: readonly PipelineView[], asked: DriftSelection): { resolved: ResolvedSelection | null; choices: DriftChoices } {
  const usable = views.filter((view) => view.pipeline !== null && view.pipeline.skills.length > 0);
  const pipelines = usable.map((view) => ({ value: view.uri.fsPath, label: view.label }));
  const view = usable.find((one) => one.uri.fsPath === asked.pipeline) ?? usable.find((one) => one.listing.runs.length > 0) ?? usable[0];
  const none: DriftChoices = { pipelines, skills: [], splits: [], references: [] };
  if (view?.pipeline == null || view.chain === null) return { resolved: null, choices: none };
  const { pipeline, chain } = view;
  const skills = pipeline.skills.map(({ id }) => ({ value: id, label: id, flag: flagOf(chain, id) }));
  const skill = skills.find(({ value }) => value === asked.skill) ?? skills.find(({ flag }) => flag !== null) ?? skills[0];
  const spec = pipeline.skills.find(({ id }) => id === skill?.value);
  if (skill === undefined || spec === undefined) return { resolved: null, choices: none };
  const splits: DriftChoices["splits"] = [{ value: "id", label: "in-domain" }];
  if (spec.probes.ood !== undefined) splits.push({ value: "ood", label: "out-of-domain" });
  const split = splits.find(({ value }) => value === asked.split)?.value ?? "id";
  const references = referencesOf(chain, `${skill.value}.${split}`);
  const wanted = references.find(({ value }) => value === asked.reference)?.value;
  const reference = wanted ?? defaultReference(chain, skill.value, references.map(({ value }) => value));
  return { resolved: { view, pipeline, chain, skill: skill.value, split, reference }, choices: { pipelines, skills, splits, references } };
}

/** The checkpoints that a probe set can be shown for: scored ones, and untrained ones between them. */
export function shownCheckpoints(chain: Chain, probeSet: string): ChainCheckpoint[] {
  const last = chain.checkpoints.findLastIndex((checkpoint) => checkpoint.traces[probeSet] !== undefined);
  return chain.checkpoints.slice(0, last + 1);
}

function referencesOf(chain: Chain, probeSet: string): DriftChoices["references"] {
  const scored = shownCheckpoints(chain, probeSet).filter((checkpoint) => checkpoint.traces[probeSet] !== undefined);
  if (scored.length === 0) return [];
  return [
    { value: startReference, label: "the start of each stage" },
    ...scored.map(({ label, stage }) => ({ value: label, label: stage === null ? `${label}, the base` : `${label}, after ${stage}` })),
  ];
}

/** After the skill's own stage, where it stands highest; for a skill whose stage is the last, or has none, the base. */
function defaultReference(chain: Chain, skill: string, values: readonly string[]): string {
  const own = chain.checkpoints.find((checkpoint) => checkpoint.stage === skill)?.label;
  if (own !== undefined && values.includes(own) && own !== values.at(-1)) return own;
  return values.includes("M0") ? "M0" : startReference;
}

/** A word for the worst flag of a skill, or null. */
function flagOf(chain: Chain, skill: string): string | null {
  const states = Object.values(chain.newest).flatMap((run) => run.state.flags.filter((flag) => flag.skill === skill).map((flag) => flag.state));
  return states.includes("confirmed") ? "loss confirmed" : states.includes("drifting") ? "drifting" : null;
}
