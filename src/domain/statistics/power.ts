import { normalQuantile } from "./quantiles.ts";

export interface PowerOptions {
  /** Chance of a finding where there is nothing; default 0.05. */
  level?: number;
  /** Chance of finding a change of the size asked for; default 0.8. */
  power?: number;
  sides?: 1 | 2;
  /** Comparisons that share the level (Bonferroni). */
  tests?: number;
}

/**
 * The smallest change of an accuracy that a paired comparison of n items can show:
 * (z_{1−α/m} + z_{power})·σ_d / √n with σ_d² ≈ discordance = the share of items that change. earlywarning research §2 (table)
 * and §10 (MDE; the exact variance is discordance − Δ², so this is a little more than needed).
 */
export function minimumDetectableDifference(n: number, discordance: number, options: PowerOptions = {}): number {
  const { level = 0.05, power = 0.8, sides = 1, tests = 1 } = options;
  return ((normalQuantile(1 - level / sides / tests) + normalQuantile(power)) * Math.sqrt(discordance)) / Math.sqrt(n);
}

/**
 * The smallest drop that a benchmark of n items can be expected to show; null where no drop of any size can be shown.
 * `background`: share of items that change either way without a drop. The same condition Δ = z·σ_d/√n, but with the exact
 * σ_d² = discordance − Δ² (earlywarning research §10) and with the items that fall counted among those that change, so
 * discordance = background + Δ: Δ²·(1 + z²/n) − Δ·z²/n − background·z²/n = 0. And k losses without a gain have p = ½^k in an
 * exact paired test, so at least ⌈log₂(sides·m/α)⌉ items must fall whatever the power.
 */
export function smallestVisibleDrop(n: number, background: number, options: PowerOptions = {}): number | null {
  if (n <= 0) return null;
  const { level = 0.05, sides = 1, tests = 1 } = options;
  const fewest = Math.ceil(Math.log2((sides * tests) / level) - 1e-9) / n;
  const r = minimumDetectableDifference(n, 1, options) ** 2;
  const drop = Math.max((r + Math.sqrt(r * r + 4 * (1 + r) * background * r)) / (2 * (1 + r)), fewest);
  return drop > 1 ? null : drop;
}

/** Items needed in each of two separate groups to tell their shares apart (two-sided, normal approximation; Fleiss 1981 §3.2). */
export function itemsNeeded(shareA: number, shareB: number, options: { level?: number; power?: number } = {}): number {
  const { level = 0.05, power = 0.8 } = options;
  const z = normalQuantile(1 - level / 2) + normalQuantile(power);
  return Math.ceil((z * z * (shareA * (1 - shareA) + shareB * (1 - shareB))) / (shareA - shareB) ** 2);
}
