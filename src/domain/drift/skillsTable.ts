import type { FlagState } from "../../protocol/journal.ts";
import type { Split } from "../../protocol/runSpec.ts";
import type { Chain } from "../run/chain.ts";
import { tooFewItems } from "../statistics/pairs.ts";
import { wilsonInterval, type Interval } from "../statistics/shares.ts";

export interface SkillCell {
  label: string;
  /** null: the check was not run on this checkpoint. */
  n: number | null;
  correct: number | null;
  accuracy: number | null;
  /** Wilson, 95 %. */
  interval: Interval | null;
  /** The flag of the stage that ends here, for this skill and split. */
  flag: FlagState | null;
  stale: boolean;
}

export interface SkillRow {
  skill: string;
  split: Split;
  cells: SkillCell[];
  /** The sentence for a set too small to judge by, or null. */
  tooFew: string | null;
}

export interface SkillsTable {
  /** M0 … MN with the stage that ends there. */
  columns: { label: string; stage: string | null; status: "ready" | "stale" | "missing"; reason: string | null }[];
  rows: SkillRow[];
}

/** Check accuracy of every skill, in-domain and OOD, at every checkpoint of the chain. */
export function skillsTable(skills: readonly { id: string; probes: { id: string; ood?: string } }[], chain: Chain): SkillsTable {
  const columns = chain.checkpoints.map(({ label, stage, status, reason }) => ({ label, stage, status, reason }));
  const rows = skills.flatMap((skill) => {
    const splits: Split[] = skill.probes.ood === undefined ? ["id"] : ["id", "ood"];
    return splits.map((split) => skillRow(skill.id, split, chain));
  });
  return { columns, rows };
}

function skillRow(skill: string, split: Split, chain: Chain): SkillRow {
  const id = `${skill}.${split}`;
  const cells = chain.checkpoints.map((checkpoint): SkillCell => {
    const count = checkpoint.evals[id];
    return {
      label: checkpoint.label,
      n: count?.n ?? null,
      correct: count?.correct ?? null,
      accuracy: count === undefined || count.n === 0 ? null : count.correct / count.n,
      interval: count === undefined || count.n === 0 ? null : wilsonInterval(count.correct, count.n),
      flag: checkpoint.flags[id] ?? null,
      stale: checkpoint.status === "stale",
    };
  });
  const counts = cells.flatMap((cell) => (cell.n === null ? [] : [cell.n]));
  return { skill, split, cells, tooFew: counts.length === 0 ? null : tooFewItems(Math.min(...counts)) };
}

/** The mark next to an accuracy: `▲` drifting, `✗` confirmed, `↩` recovered, `?` not measurable. */
export function flagMark(state: FlagState | null): string {
  return state === null ? "" : { drifting: "▲", confirmed: "✗", recovered: "↩", "not-measurable": "?" }[state];
}
