import { csvLine, type CsvCell } from "../report/csv.ts";
import type { EvaluationRow } from "./evaluationRow.ts";

const columns = ["system", "question", "measure", "skill", "split", "unit", "estimate", "low", "high", "p", "p_adjusted", "n", "groups", "seeds", "from", "from_accuracy", "to", "to_accuracy", "lost", "gained", "smallest_drop", "method", "note"] as const;

/** One line a row; shares and differences are fractions, not percent. */
export function evaluationCsv(tables: readonly { system: string; rows: readonly EvaluationRow[] }[]): string {
  const lines = tables.flatMap(({ system, rows }) => rows.map((row): CsvCell[] => [
    system, row.question, row.measure, row.skill, row.split, row.unit, row.estimate, row.interval?.low ?? null, row.interval?.high ?? null, row.p, row.adjusted, row.n, row.groups, row.seeds,
    row.from?.label ?? null, row.from?.accuracy ?? null, row.to?.label ?? null, row.to?.accuracy ?? null, row.lost, row.gained, row.smallestDrop, row.method, row.why ?? row.tooFew,
  ]));
  return [columns, ...lines].map((cells) => csvLine(cells)).join("");
}
