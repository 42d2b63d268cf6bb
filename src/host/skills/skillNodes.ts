import { flagMark, skillsTable, type SkillCell, type SkillRow, type SkillsTable } from "../../domain/drift/skillsTable.ts";
import { skillStanding, type SkillStanding } from "../../domain/drift/skillStanding.ts";
import { formatInterval, formatPercent, formatPlural, formatSigned } from "../../domain/format.ts";
import { flagTitle, probeSetName } from "../../domain/run/flagText.ts";
import type { FlagState } from "../../protocol/journal.ts";
import type { Split } from "../../protocol/runSpec.ts";
import { isLive } from "../runWords.ts";
import type { NodeTarget, StageNode } from "../stageNodes.ts";
import type { PipelineView } from "../workspaceModel.ts";

const splitWords: Record<Split, string> = { id: "ID", ood: "OOD" };

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
  if (shown === null || chain === null) return [note(view, "seesaw.yaml has errors", "see the Problems view", "pipeline")];
  if (shown.skills.length === 0) return [note(view, "No skills yet", "add one to seesaw.yaml", "pipeline")];
  const table = skillsTable(shown.skills, chain);
  return table.rows.map((row) => skillNode(view, table, row));
}

function skillNode(view: PipelineView, table: SkillsTable, row: SkillRow): StageNode {
  const { skill, split } = row;
  const standing = skillStanding(table, row);
  const flag = liveFlag(view, row) ?? standing.flag;
  const raised = flag !== null && (flag.state === "drifting" || flag.state === "confirmed");
  return node(view, `${skill}.${split}`, {
    label: `${skill} ${splitWords[split]}`,
    description: `${raised ? "⚑ " : ""}${describe(table, standing)}`,
    tooltip: tooltip(row, standing, flag),
    icon: iconOf(flag?.state ?? null),
    context: "skill",
    children: checkpointNodes(view, table, row),
    target: { skill, split },
    opens: "drift",
  });
}

/** `31 % (21–43) · −69 since M1`: short, for a narrow side bar; the tooltip has it in full. */
function describe({ columns }: SkillsTable, { now, change, reference }: SkillStanding): string {
  if (now === null) return "not checked yet";
  const newest = columns.findLast(({ status }) => status !== "missing")?.label === now.label;
  const since = change === null || reference === null ? "" : ` · ${points(change, "")} since ${reference.label}`;
  return `${formatPercent(now.accuracy, 0)} (${formatInterval(now.interval, 0).replace(" %", "")})${newest ? "" : ` at ${now.label}`}${since}`;
}

/** Accuracies are compared in points: `−69 points`, and `unchanged` where nothing of it would be seen. */
function points(change: number, unit = Math.abs(Math.round(change * 100)) === 1 ? " point" : " points"): string {
  const text = formatSigned(change * 100, 0);
  return Number(text.replace("−", "-")) === 0 ? "unchanged" : `${text}${unit}`;
}

function tooltip(row: SkillRow, { now, reference, change }: SkillStanding, flag: { state: FlagState; stage: string } | null): string {
  const name = probeSetName(row.skill, row.split);
  const lines =
    now === null
      ? [`${name}: the check has not been run on any checkpoint yet.`]
      : [`${name}: ${now.correct} of ${formatPlural(now.n ?? 0, "answer")} pass the check at ${now.label} (${formatPercent(now.accuracy)}, 95 % interval ${formatInterval(now.interval)}).`];
  if (reference !== null && change !== null) lines.push(`${formatPercent(reference.accuracy)} at ${reference.label}, ${reference.own ? "the end of its own stage" : "where it stood best before"}: ${points(change)}.`);
  if (now?.stale === true) lines.push(`${now.label} is stale: it was not trained from the newest chain.`);
  if (row.tooFew !== null) lines.push(row.tooFew);
  if (flag !== null) lines.push(`Flag of ${flag.stage}: ${flagTitle({ skill: row.skill, split: row.split, state: flag.state })}.`);
  return lines.join("\n");
}

/** The newest first, as the runs in Stages. */
function checkpointNodes(view: PipelineView, { columns }: SkillsTable, { skill, split, cells }: SkillRow): StageNode[] {
  const nodes = cells.flatMap((cell, index) => {
    const column = columns[index];
    if (cell.accuracy === null || column === undefined) return [];
    const mark = cell.flag === null || cell.flag === "not-measurable" ? "" : ` ${flagMark(cell.flag)}`;
    return node(view, `${skill}.${split}/${cell.label}`, {
      label: `${cell.label} ${column.stage ?? "base"}`,
      description: `${accuracyText(cell)}${cell.stale ? " · stale" : ""}${mark}`,
      tooltip: [`${cell.correct} of ${formatPlural(cell.n ?? 0, "answer")} pass the check.`, cell.stale ? column.reason ?? "" : "", cell.flag === null ? "" : `${flagTitle({ skill, split, state: cell.flag })}.`].filter(Boolean).join("\n"),
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
