import { formatCount, formatP, formatSigned } from "../format.ts";
import type { EvaluationRow } from "../evaluation/evaluationRow.ts";
import type { GateInput, GateItem } from "./gate.ts";

const title = "One benchmark per skill, with a paired test";

/** Every skill's check was run at the end of its own stage and of the chain, and the two were compared prompt by prompt. */
export function benchmarkCheck({ pipeline, evaluation, why }: Pick<GateInput, "pipeline" | "evaluation" | "why">): GateItem {
  const item = { id: "benchmark" as const, title };
  if (evaluation === null) return { ...item, state: "missing", found: [why ?? "Nothing was evaluated."], todo: ["seesaw run --all, then seesaw compare"] };
  const found: string[] = [];
  const todo: string[] = [];
  let small = false;
  for (const { id } of pipeline.skills) {
    const row = evaluation.find((one) => one.skill === id && one.split === "id" && (one.question === "retention" || one.question === "new-skill") && one.p !== null)
      ?? evaluation.find((one) => one.skill === id && one.split === "id" && (one.question === "retention" || one.question === "new-skill"));
    if (row !== undefined && row.p === null && row.n > 0 && row.from !== null && row.to !== null) found.push(`${id}: ${row.why ?? "compared"} (${formatCount(row.n)} prompts at ${row.from.label} and ${row.to.label})`);
    else if (row === undefined || row.p === null) todo.push(`${id} has no paired test: ${row?.why ?? "its check was not run at both ends"} Run its stage and the last one to their ends (the checks are run there), then seesaw compare.`);
    else if (row.tooFew !== null) {
      small = true;
      todo.push(`${id}: ${row.tooFew} Add prompts to its probes.`);
    } else found.push(rowText(id, row));
  }
  return { ...item, state: todo.length === 0 ? "met" : small ? "failed" : "missing", found, todo };
}

function rowText(skill: string, { from, to, n, p, adjusted }: EvaluationRow): string {
  const change = from === null || to === null ? "" : `${formatSigned(100 * (to.accuracy - from.accuracy), 1)} points from ${from.label} to ${to.label}, `;
  return `${skill}: ${change}${formatP(adjusted ?? p)} over ${formatCount(n)} prompts.`;
}
