import type { Split } from "../../protocol/runSpec.ts";
import { skillsTable } from "../drift/skillsTable.ts";
import type { Chain } from "../run/chain.ts";
import type { Interval } from "../statistics/shares.ts";

/** One coordinate of a capability vector: a skill in-domain or OOD. */
export interface Capability {
  skill: string;
  split: Split;
  n: number | null;
  correct: number | null;
  /** null: not checked at this checkpoint. */
  accuracy: number | null;
  /** Wilson, 95 %. */
  interval: Interval | null;
}

/** What one checkpoint can do, skill by skill. */
export interface CapabilityVector {
  label: string;
  stage: string | null;
  values: Capability[];
}

/** The capability vectors of M0 … MN, all over the same coordinates; checkpoints without any check are left out. */
export function capabilityVectors(skills: readonly { id: string; probes: { id: string; ood?: string } }[], chain: Chain): CapabilityVector[] {
  const { columns, rows } = skillsTable(skills, chain);
  return columns.flatMap(({ label, stage }, index) => {
    const values = rows.flatMap(({ skill, split, cells }): Capability[] => {
      const cell = cells[index];
      return cell === undefined ? [] : [{ skill, split, n: cell.n, correct: cell.correct, accuracy: cell.accuracy, interval: cell.interval }];
    });
    return values.some(({ accuracy }) => accuracy !== null) ? [{ label, stage, values }] : [];
  });
}
