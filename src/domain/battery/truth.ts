import { tangoInterval } from "../statistics/pairs.ts";
import { changeOfBits } from "./pairedBits.ts";
import type { RawRun } from "./rawRun.ts";

/**
 * What really happened to a skill, from the oracle's rows (generated and checked at every look, paired with the start). The
 * numbers here are the protocol's (.github/battery-protocol.md); they may not change once bank B was opened.
 */
export const truthRules = {
  /** A loss of this much is forgetting. */
  event: 0.05,
  /** Below this a skill counts as kept; between the two it is grey. */
  kept: 0.02,
  /** Onset of the slide, for the speed. */
  onset: 0.01,
  /** Two-sided level whose ends are the one-sided 95 % bounds. */
  level: 0.9,
  /** From 1 to 5 points within this share of the run's steps: abrupt. */
  abrupt: 1 / 12,
} as const;

export type SkillClass = "event" | "clean" | "grey";

export interface SkillTruth {
  class: SkillClass;
  /** Steps: where the smoothed loss crosses 5 points, between two looks. null: no event. */
  crossing: number | null;
  /** Step of the first look of the event: where 1,000 rows prove it. */
  shown: number | null;
  /** The loss was undone by the end. */
  transient: boolean;
  speed: "abrupt" | "gradual" | null;
  /** Points lost at each look against the start (negative: gained), to a tenth. */
  loss: number[];
}

/** One-sided 95 % bounds of the share of right answers lost since the start. */
export function lossOf(before: string, now: string): { loss: number; low: number; high: number } {
  const change = changeOfBits(before, now);
  const { low, high } = tangoInterval(change, truthRules.level);
  return { loss: (change.lost - change.gained) / change.n, low: -high, high: -low };
}

/**
 * Event: the lower bound of the loss is 5 points or more at two looks in a row. Clean: the estimated loss is never 2 points or
 * more at two looks in a row nor at the last look, and its upper bound never reaches 5. Everything else is grey: reported,
 * and kept out of precision, recall and the false-alarm rate.
 */
export function truthOfSkill(looks: readonly number[], bits: readonly string[]): SkillTruth {
  const losses = bits.map((now, look) => (look === 0 ? { loss: 0, low: 0, high: 0 } : lossOf(bits[0] as string, now)));
  const loss = losses.map((one) => Math.round(one.loss * 1000) / 10);
  const first = losses.findIndex(({ low }, look) => low >= truthRules.event && (losses[look + 1]?.low ?? -1) >= truthRules.event);
  if (first >= 0) {
    const rising = isotonic(losses.slice(0, first + 2).map((one) => one.loss));
    const crossing = crossingOf(looks, rising, truthRules.event) as number;
    const onset = crossingOf(looks, rising, truthRules.onset) as number;
    const last = losses.at(-1) as { high: number };
    const abrupt = crossing - onset <= truthRules.abrupt * (looks.at(-1) as number);
    return { class: "event", crossing: round(crossing), shown: looks[first] as number, transient: last.high < truthRules.event, speed: abrupt ? "abrupt" : "gradual", loss };
  }
  const down = losses.map((one) => one.loss >= truthRules.kept);
  const clean = !down.at(-1) && !down.some((now, look) => now && down[look + 1] === true) && losses.every(({ high }) => high < truthRules.event);
  return { class: clean ? "clean" : "grey", crossing: null, shown: null, transient: false, speed: null, loss };
}

export type RunClass = "healthy" | "forgetting" | "mixed";

/** Healthy: every watched skill is clean. Forgetting: at least one event. Mixed (grey skills only beside clean ones): reported, not judged. */
export function classOfRun(skills: readonly SkillClass[]): RunClass {
  if (skills.includes("event")) return "forgetting";
  return skills.every((skill) => skill === "clean") ? "healthy" : "mixed";
}

export function truthOfRun(raw: RawRun): { class: RunClass; skills: Record<string, SkillTruth> } {
  const skills = Object.fromEntries(raw.skills.map((skill) => [skill, truthOfSkill(raw.looks, raw.oracle[skill] as string[])]));
  return { class: classOfRun(Object.values(skills).map((one) => one.class)), skills };
}

/** The nearest sequence that never falls (pool adjacent violators, equal weights). */
export function isotonic(values: readonly number[]): number[] {
  const pools: { sum: number; n: number }[] = [];
  for (const value of values) {
    let pool = { sum: value, n: 1 };
    for (let before = pools.at(-1); before !== undefined && before.sum / before.n > pool.sum / pool.n; before = pools.at(-1)) {
      pool = { sum: pool.sum + before.sum, n: pool.n + before.n };
      pools.pop();
    }
    pools.push(pool);
  }
  return pools.flatMap(({ sum, n }) => new Array<number>(n).fill(sum / n));
}

/** The step at which a rising curve reaches `height`, on the straight line between two looks; null where it never does. */
export function crossingOf(looks: readonly number[], rising: readonly number[], height: number): number | null {
  const at = rising.findIndex((value) => value >= height);
  if (at < 0) return null;
  if (at === 0) return looks[0] as number;
  const [before, after] = [rising[at - 1] as number, rising[at] as number];
  const [from, to] = [looks[at - 1] as number, looks[at] as number];
  return from + ((height - before) / (after - before)) * (to - from);
}

const round = (step: number): number => Math.round(step * 10) / 10;
