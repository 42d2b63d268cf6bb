import type { FlagState } from "../../protocol/journal.ts";
import type { SkillCell, SkillRow, SkillsTable } from "./skillsTable.ts";

/** Where a skill stands now, in one look: its newest accuracy, and what became of it since it stood best. */
export interface SkillStanding {
  /** The newest checkpoint on which the check was run; null when it never was. */
  now: (SkillCell & { accuracy: number; interval: NonNullable<SkillCell["interval"]> }) | null;
  /** What it is compared with: the end of the skill's own stage, else the checkpoint before where it stood best. */
  reference: { label: string; accuracy: number; own: boolean } | null;
  /** Difference of the two accuracies, as a share; negative: lost. */
  change: number | null;
  /**
   * The newest flag of the chain for this probe set, and the stage it belongs to. What is lost cannot be measured by the
   * stages after: that does not undo the loss.
   */
  flag: { state: FlagState; stage: string } | null;
}

/** Reads one row of the skills table, from its newest end. */
export function skillStanding({ columns }: SkillsTable, { skill, cells }: SkillRow): SkillStanding {
  const last = cells.findLastIndex(({ accuracy, interval }) => accuracy !== null && interval !== null);
  const now = cells[last] as SkillStanding["now"] | undefined;
  const said = cells.findLastIndex(({ flag }) => flag !== null && flag !== "not-measurable");
  const flagged = said >= 0 ? said : cells.findLastIndex(({ flag }) => flag !== null);
  const state = cells[flagged]?.flag ?? null;
  const flag = state === null ? null : { state, stage: columns[flagged]?.stage ?? "" };
  if (now === undefined || now === null) return { now: null, reference: null, change: null, flag };
  const own = columns.findIndex(({ stage }) => stage === skill);
  const earlier = cells.slice(0, last).filter((cell): cell is SkillCell & { accuracy: number } => cell.accuracy !== null);
  const ownCell = own >= 0 && own < last ? cells[own] : undefined;
  // On the skill's own stage, or before it, there is nothing yet that could have been lost: the start is the measure.
  const best = earlier.reduce<(typeof earlier)[number] | null>((found, cell) => (found === null || cell.accuracy > found.accuracy ? cell : found), null);
  const from = ownCell?.accuracy == null ? best : ownCell;
  if (from?.accuracy == null) return { now, reference: null, change: null, flag };
  return { now, reference: { label: from.label, accuracy: from.accuracy, own: from === ownCell }, change: now.accuracy - from.accuracy, flag };
}
