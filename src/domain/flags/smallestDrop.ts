import { smallestVisibleDrop } from "../statistics/power.ts";
import { confirmLevel, usualChurn } from "./defaults.ts";

/**
 * The smallest drop, in points, that the check on n rows shows in 4 of 5 cases when the `place`-th test of a series confirms
 * at the level it has if no other of the run's series is lost (confirmLevel / series / 2^place). `churn`: share of rows whose result changes either way
 * without a loss. null: no drop of any size can be shown.
 */
export function smallestDrop(n: number, series: number, place = 1, churn = usualChurn): number | null {
  const drop = smallestVisibleDrop(n, churn, { level: confirmLevel / 2 ** place, tests: series });
  return drop === null ? null : 100 * drop;
}
