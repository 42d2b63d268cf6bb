import { flagMark, skillsTable, type SkillCell, type SkillRow, type SkillsTable } from "../../domain/drift/skillsTable.ts";
import { skillStanding, type SkillStanding } from "../../domain/drift/skillStanding.ts";
import { formatInterval, formatPercent, formatPlural, formatSigned } from "../../domain/format.ts";
import type { ChainRun } from "../../domain/run/chain.ts";
import type { FlagRecord } from "../../domain/run/runState.ts";
import { flagTitle, probeSetName } from "../../domain/run/flagText.ts";
import type { FlagState } from "../../protocol/journal.ts";
import type { Split } from "../../protocol/runSpec.ts";
import { t } from "../../util/l10n.ts";
import { isLive } from "../runWords.ts";
import type { NodeTarget, StageNode } from "../stageNodes.ts";
import { factLines, factsOf, fullHover } from "../flags/flagFacts.ts";
import type { PipelineView } from "../workspaceModel.ts";

const splitWords: Record<Split, string> = { get id() { return t("ID"); }, get ood() { return t("OOD"); } };

/** The Skills view: every skill and split with its newest accuracy. With one pipeline its skills are the top level. */
export function skillNodes(views: readonly PipelineView[]): StageNode[] {
  const [only] = views;
  if (views.length === 1 && only !== undefined) return skillsOf(only);
  return views.map((view) =>
    node(view, "skills", { label: view.shown?.name ?? view.label, description: view.label, tooltip: view.uri.fsPath, icon: { name: "list-tree" }, context: "pipeline", children: skillsOf(view), expanded: true }),
  );
}

function skillsOf(view: PipelineView): StageNode[] {
  const { shown, chain } = view;
  if (shown === null || chain === null) return [note(view, t("seesaw.yaml has errors"), t("see the Problems view"), "pipeline")];
  if (shown.skills.length === 0) return [note(view, t("No skills yet"), t("add one to seesaw.yaml"), "pipeline")];
  const table = skillsTable(shown.skills, chain);
  return table.rows.map((row) => skillNode(view, table, row));
}

function skillNode(view: PipelineView, table: SkillsTable, row: SkillRow): StageNode {
  const { skill, split } = row;
  const standing = skillStanding(table, row);
  const flag = liveFlag(view, row) ?? standing.flag;
  const raised = flag !== null && (flag.state === "drifting" || flag.state === "confirmed");
  const words = tooltip(row, standing, flag);
  const known = raised ? flagOf(view, row, flag.stage) : null;
  return node(view, `${skill}.${split}`, {
    label: `${skill} ${splitWords[split]}`,
    description: `${raised ? "⚑ " : ""}${describe(table, standing)}`,
    tooltip: known === null ? words : `${words}\n${factLines(factsOf(view, known.run, known.flag))}`,
    ...(known === null ? {} : { hover: () => fullHover(words.split("\n"), view, known.run, known.flag) }),
    icon: iconOf(flag?.state ?? null),
    context: "skill",
    children: checkpointNodes(view, table, row),
    target: { skill, split },
    opens: "drift",
  });
}

/** The flag of a stage's newest run. */
function flagOf(view: PipelineView, { skill, split }: SkillRow, stage: string): { run: ChainRun; flag: FlagRecord } | null {
  const run = view.chain?.newest[stage];
  const flag = run?.state.flags.find((one) => one.skill === skill && one.split === split);
  return run === undefined || flag === undefined ? null : { run, flag };
}

/** `31 % (21–43) · −69 since M1`: short, for a narrow side bar; the tooltip has it in full. */
function describe({ columns }: SkillsTable, { now, change, reference }: SkillStanding): string {
  if (now === null) return t("not checked yet");
  const newest = columns.findLast(({ status }) => status !== "missing")?.label === now.label;
  const since = change === null || reference === null ? "" : ` · ${t("{0} since {1}", points(change, false), reference.label)}`;
  return `${formatPercent(now.accuracy, 0)} (${formatInterval(now.interval, 0).replace(" %", "")})${newest ? "" : ` ${t("at {0}", now.label)}`}${since}`;
}

/** Accuracies are compared in points: `−69 points`, and `unchanged` where nothing of it would be seen. */
function points(change: number, unit = true): string {
  const text = formatSigned(change * 100, 0);
  const whole = Number(text.replace("−", "-"));
  if (whole === 0) return t("unchanged");
  return !unit ? text : Math.abs(whole) === 1 ? t("{0} point", text) : t("{0} points", text);
}

function tooltip(row: SkillRow, { now, reference, change }: SkillStanding, flag: { state: FlagState; stage: string } | null): string {
  const name = probeSetName(row.skill, row.split);
  const lines =
    now === null
      ? [t("{0}: the check has not been run on any checkpoint yet.", name)]
      : [t("{0}: {1} of {2} pass the check at {3} ({4}, 95 % interval {5}).", name, now.correct ?? 0, formatPlural(now.n ?? 0, "answer"), now.label, formatPercent(now.accuracy), formatInterval(now.interval))];
  if (reference !== null && change !== null) lines.push(t("{0} at {1}, {2}: {3}.", formatPercent(reference.accuracy), reference.label, reference.own ? t("the end of its own stage") : t("where it stood best before"), points(change)));
  if (now?.stale === true) lines.push(t("{0} is stale: it was not trained from the newest chain.", now.label));
  if (row.tooFew !== null) lines.push(row.tooFew);
  if (flag !== null) lines.push(t("Flag of {0}: {1}.", flag.stage, flagTitle({ skill: row.skill, split: row.split, state: flag.state })));
  return lines.join("\n");
}

/** The newest first, as the runs in Stages. */
function checkpointNodes(view: PipelineView, { columns }: SkillsTable, { skill, split, cells }: SkillRow): StageNode[] {
  const nodes = cells.flatMap((cell, index) => {
    const column = columns[index];
    if (cell.accuracy === null || column === undefined) return [];
    const mark = cell.flag === null || cell.flag === "not-measurable" ? "" : ` ${flagMark(cell.flag)}`;
    return node(view, `${skill}.${split}/${cell.label}`, {
      label: `${cell.label} ${column.stage ?? t("base")}`,
      description: `${accuracyText(cell)}${cell.stale ? ` · ${t("stale")}` : ""}${mark}`,
      tooltip: [t("{0} of {1} pass the check.", cell.correct ?? 0, formatPlural(cell.n ?? 0, "answer")), cell.stale ? column.reason ?? "" : "", cell.flag === null ? "" : `${flagTitle({ skill, split, state: cell.flag })}.`].filter(Boolean).join("\n"),
      icon: { name: column.stage === null ? "circle-outline" : "milestone" },
      context: "note",
      target: { skill, split },
      opens: "drift",
    });
  });
  return nodes.reverse();
}

function accuracyText({ accuracy, interval }: SkillCell): string {
  return `${formatPercent(accuracy, 0)}${interval === null ? "" : ` (${formatInterval(interval, 0)})`}`;
}

/** What a run that is under way says of this probe set: its end is not in the table yet. */
function liveFlag({ chain }: PipelineView, { skill, split }: SkillRow): { state: FlagState; stage: string } | null {
  for (const run of Object.values(chain?.newest ?? {})) {
    const flag = isLive(run.state.status) ? run.state.flags.find((one) => one.skill === skill && one.split === split) : undefined;
    if (flag !== undefined) return { state: flag.state, stage: run.stage };
  }
  return null;
}

/** Shape and colour: a fall is an arrow, a warning a triangle; nothing to say is a plain pulse. */
function iconOf(state: FlagState | null): StageNode["icon"] {
  if (state === "confirmed") return { name: "arrow-down", color: "list.errorForeground" };
  if (state === "drifting") return { name: "warning", color: "list.warningForeground" };
  return state === "not-measurable" ? { name: "question" } : { name: "beaker" };
}

function note(view: PipelineView, label: string, description: string, opens: "pipeline"): StageNode {
  return node(view, label, { label, description, icon: { name: "info" }, context: "note", opens });
}

type NodeParts = Partial<Omit<StageNode, "target">> & Pick<StageNode, "label" | "icon" | "context"> & { target?: Omit<NodeTarget, "file"> };

function node(view: PipelineView, id: string, item: NodeParts): StageNode {
  const file = view.uri.fsPath;
  return { description: "", tooltip: "", children: [], expanded: false, opens: null, ...item, id: `${file}#skill/${id}`, target: { file, ...item.target } };
}
