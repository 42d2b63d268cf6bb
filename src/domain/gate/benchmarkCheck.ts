import { formatCount, formatP, formatSigned } from "../format.ts";
import type { EvaluationRow } from "../evaluation/evaluationRow.ts";
import type { GateInput, GateItem } from "./gate.ts";

const title = "One benchmark per skill, with a paired test";

/** What is wrong with a comparison: not there, or too small to tell. */
interface Lack {
  small: boolean;
  sentence: string;
}

/**
 * Every skill is compared between its own stage's end and that of the chain, prompt by prompt: by the lm-eval tasks that its
 * `benchmark` names, else by its own check. Tasks that no skill names are told and ask for nothing.
 */
export function benchmarkCheck({ pipeline, evaluation, why }: Pick<GateInput, "pipeline" | "evaluation" | "why">): GateItem {
  const item = { id: "benchmark" as const, title };
  if (evaluation === null) return { ...item, state: "missing", found: [why ?? "Nothing was evaluated."], todo: ["seesaw run --all, then seesaw compare"] };
  const found: string[] = [];
  const lacks: Lack[] = [];
  const named = new Set<string>();
  for (const { id, benchmark = [] } of pipeline.skills) {
    const own = checkRow(evaluation, id);
    for (const task of benchmark) {
      named.add(task);
      add(taskFinding(id, task, taskRow(evaluation, task, own)));
    }
    if (benchmark.length === 0) add(checkFinding(id, own));
  }
  const others = [...new Set(evaluation.flatMap(({ question, skill }) => (question === "benchmark" && skill !== null && !named.has(skill) ? [skill] : [])))];
  for (const task of others) {
    const row = taskRow(evaluation, task, undefined);
    if (row !== undefined && row.p !== null && row.tooFew === null) found.push(`${rowText(task, row)} No skill names it under \`benchmark\`.`);
  }
  return { ...item, state: lacks.length === 0 ? "met" : lacks.some(({ small }) => small) ? "failed" : "missing", found, todo: lacks.map(({ sentence }) => sentence) };

  function add(finding: string | Lack): void {
    if (typeof finding === "string") found.push(finding);
    else lacks.push(finding);
  }
}

/** How the skill's check fared since its own stage; a row with a test rather than one without. */
function checkRow(evaluation: readonly EvaluationRow[], skill: string): EvaluationRow | undefined {
  const rows = evaluation.filter((row) => row.skill === skill && row.split === "id" && (row.question === "retention" || row.question === "new-skill"));
  return rows.find(({ p }) => p !== null) ?? rows[0];
}

/** How a task fared up to the end of the chain: since where its skill was taught if it was measured there, else since the first time. */
function taskRow(evaluation: readonly EvaluationRow[], task: string, own: EvaluationRow | undefined): EvaluationRow | undefined {
  const rows = evaluation.filter(({ question, skill }) => question === "benchmark" && skill === task);
  const last = rows.findLast(({ to }) => to !== null)?.to?.label;
  const toEnd = rows.filter(({ to }) => to?.label === last);
  return toEnd.find(({ from }) => from !== null && from.label === own?.from?.label) ?? toEnd.at(-1) ?? rows.at(-1);
}

function taskFinding(skill: string, task: string, row: EvaluationRow | undefined): string | Lack {
  const fix = `seesaw benchmark measures ${task} at a checkpoint, such as the end of the stage of ${skill} and that of the chain`;
  if (row === undefined || row.p === null) return { small: false, sentence: `${skill} has no paired test on ${task}: ${row?.why ?? "it was not measured at two checkpoints with equal settings."} ${upper(fix)}.` };
  if (row.tooFew !== null) return { small: true, sentence: `${skill}, ${task}: ${row.tooFew} Raise \`limit\` under \`benchmark\`, or choose a larger task.` };
  return rowText(`${skill}, ${task}`, row);
}

function checkFinding(skill: string, row: EvaluationRow | undefined): string | Lack {
  if (row !== undefined && row.p === null && row.n > 0 && row.from !== null && row.to !== null) return `${skill}: ${row.why ?? "compared"} (${formatCount(row.n)} prompts at ${row.from.label} and ${row.to.label})`;
  if (row === undefined || row.p === null) return { small: false, sentence: `${skill} has no paired test: ${row?.why ?? "its check was not run at both ends"} Run its stage and the last one to their ends (the checks are run there), then seesaw compare; or name lm-eval tasks under \`benchmark\` of the skill.` };
  if (row.tooFew !== null) return { small: true, sentence: `${skill}: ${row.tooFew} Add prompts to its probes.` };
  return rowText(skill, row);
}

function rowText(what: string, { from, to, n, p, adjusted }: EvaluationRow): string {
  const change = from === null || to === null ? "" : `${formatSigned(100 * (to.accuracy - from.accuracy), 1)} points from ${from.label} to ${to.label}, `;
  return `${what}: ${change}${formatP(adjusted ?? p)} over ${formatCount(n)} prompts.`;
}

const upper = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
