import { clustersOf } from "./clusters.ts";
import { fewestPanelRows, strongPanelRows } from "./defaults.ts";

/** A probe row as the panel needs it. */
export interface PanelRow {
  row: number;
  line: number;
  /** The row's `group`, if it has one. */
  group: string | null;
  /** At the start, and at every look so far. */
  scored: boolean;
  /** The training or replay file of this run in which the row also is; null: none. */
  foundIn: string | null;
}

/** The rows of a series that count. */
export interface Panel {
  /** Row numbers, ascending; and the group of each as a number, negative where it has none. */
  rows: Uint32Array;
  groups: Int32Array;
  /** Independent rows: groups count once. */
  n: number;
  /** Rows that would measure memory instead of the skill. */
  dropped: { row: number; line: number; foundIn: string }[];
  /** Enough to raise a flag, too few to rely on a calm. */
  weak: boolean;
  /** Too few to judge. */
  small: boolean;
}

/** Rows scored at every look that occur in no training or replay file. Never only those the start got right: regression to the mean would fake forgetting. */
export function panelOf(rows: readonly PanelRow[]): Panel {
  const kept = rows.filter(({ scored, foundIn }) => scored && foundIn === null).sort((a, b) => a.row - b.row);
  const numbers = new Map<string, number>();
  const groups = Int32Array.from(kept, ({ group }) => {
    if (group === null) return -1;
    if (!numbers.has(group)) numbers.set(group, numbers.size);
    return numbers.get(group) as number;
  });
  const { n } = clustersOf(kept.length, groups);
  return {
    rows: Uint32Array.from(kept, ({ row }) => row),
    groups,
    n,
    dropped: rows.flatMap(({ row, line, foundIn }) => (foundIn === null ? [] : [{ row, line, foundIn }])),
    weak: n >= fewestPanelRows && n < strongPanelRows,
    small: n < fewestPanelRows,
  };
}
