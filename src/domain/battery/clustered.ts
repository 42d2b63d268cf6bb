import { bootstrap } from "../statistics/bootstrap.ts";
import { clopperPearson, type Interval } from "../statistics/shares.ts";

/** A share with its 95 % interval. NaN share and the interval 0 to 1 where nothing was counted. */
export interface Share extends Interval {
  hits: number;
  of: number;
  share: number;
}

/** Resamples and seed of every bootstrap of the report: the same files give the same figures. */
export const resampling = { resamples: 2000, seed: 20261130 } as const;

/** Of independent units, such as runs: exact. */
export function exactShare(hits: number, of: number): Share {
  return of === 0 ? { hits, of, share: NaN, low: 0, high: 1 } : { hits, of, share: hits / of, ...clopperPearson(hits, of) };
}

/**
 * Of skills within runs: whole runs are resampled, since the skills of a run rise and fall together. Where all units agree a
 * bootstrap has no width; then the exact interval of as many units as there are runs.
 */
export function clusteredShare(units: readonly { cluster: number; hit: boolean }[]): Share {
  const hits = units.filter(({ hit }) => hit).length;
  const groups = groupsOf(units);
  if (hits === 0 || hits === units.length) return { ...exactShare(hits === 0 ? 0 : groups.length, groups.length), hits, of: units.length };
  const { interval } = bootstrap([groups.length], (drawn) => {
    let [passed, all] = [0, 0];
    groups.forEach((group, index) => {
      const times = drawn[index] as number;
      for (const { hit } of group) passed += hit ? times : 0;
      all += times * group.length;
    });
    return passed / all;
  }, resampling);
  return { hits, of: units.length, share: hits / units.length, ...interval };
}

/** Interval of any statistic of units by resampling whole runs. */
export function clusteredInterval<T extends { cluster: number }>(units: readonly T[], statistic: (drawn: T[]) => number): Interval {
  const groups = groupsOf(units);
  if (groups.length < 2) return { low: NaN, high: NaN };
  const values: number[] = [];
  bootstrap([groups.length], (drawn) => {
    const value = statistic(groups.flatMap((group, index) => new Array<T[]>(drawn[index] as number).fill(group).flat()));
    values.push(value);
    return 0;
  }, resampling);
  // The first value is that of the units themselves. Quantiles by rank, since a median lead may be infinite.
  const sorted = values.slice(1).filter((value) => !Number.isNaN(value)).sort((a, b) => a - b);
  const at = (share: number): number => sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1))] as number;
  return { low: at(0.025), high: at(0.975) };
}

function groupsOf<T extends { cluster: number }>(units: readonly T[]): T[][] {
  const groups = new Map<number, T[]>();
  for (const unit of units) groups.set(unit.cluster, [...(groups.get(unit.cluster) ?? []), unit]);
  return [...groups.values()];
}
