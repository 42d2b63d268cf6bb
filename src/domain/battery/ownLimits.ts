import { mean } from "simple-statistics";
import { seededRandom } from "../statistics/random.ts";
import { truthOf } from "./bank.ts";
import { firstAbove, type ScoreCandidate } from "./candidate.ts";
import { leadOf, quantileOf } from "./leads.ts";
import type { RawRun } from "./rawRun.ts";
import { allowedRate, highestScore } from "./tune.ts";

/** What a limit does on runs that it was not set on, or the mean over many draws of the runs it was set on. */
export interface LimitFigures {
  /** Share of healthy runs with any alarm. */
  falseAlarms: number;
  /** Its first and ninth tenth over the draws; the same number where there was one limit. */
  falseAlarmsSpread: [number, number];
  /** Share of the losses with an alarm before they cross 5 points. */
  ahead: number;
  /** Median lead in steps, as in leads.ts. */
  median: number;
}

/**
 * The lowest of the healthy runs' own highest scores above which one more healthy run falls with chance `rate` at most, if it is
 * like them (split conformal: the ⌈(1 − rate)(n + 1)⌉-th smallest; Vovk, Gammerman & Shafer 2005). null: too few runs for any.
 */
export function conformalLimit(highest: readonly number[], rate: number): number | null {
  const rank = Math.ceil((1 - rate) * (highest.length + 1) - 1e-9);
  return rank > highest.length ? null : ([...highest].sort((a, b) => a - b)[rank - 1] as number);
}

/** A bank seen by one candidate, with what is slow computed once. */
export class ScoredBank {
  /** Highest score of each healthy run. */
  readonly healthy: readonly number[];
  private readonly events: { looks: readonly number[]; scores: readonly number[]; crossing: number }[] = [];

  constructor(candidate: ScoreCandidate, runs: readonly RawRun[]) {
    const healthy: number[] = [];
    for (const run of runs) {
      const truth = truthOf(run);
      if (truth.class === "healthy") healthy.push(highestScore(candidate, run));
      for (const skill of run.skills) {
        const crossing = truth.skills[skill]?.crossing ?? null;
        if (crossing !== null) this.events.push({ looks: run.looks, scores: candidate.score(run, skill), crossing });
      }
    }
    this.healthy = healthy;
  }

  /** With a limit from elsewhere. */
  at(limit: number): LimitFigures {
    const falseAlarms = shareAbove(this.healthy, limit);
    return { falseAlarms, falseAlarmsSpread: [falseAlarms, falseAlarms], ...this.leads(limit) };
  }

  /** With limits from `n` of its own healthy runs, drawn `draws` times; false alarms are counted on the healthy runs that were not drawn. */
  byOwn(n: number, draws: number, seed: number): LimitFigures | null {
    if (n >= this.healthy.length) return null;
    const random = seededRandom(seed);
    const drawn: (Omit<LimitFigures, "falseAlarmsSpread">)[] = [];
    for (let draw = 0; draw < draws; draw += 1) {
      const order = shuffled(this.healthy, random);
      const limit = conformalLimit(order.slice(0, n), allowedRate);
      if (limit === null) return null;
      drawn.push({ falseAlarms: shareAbove(order.slice(n), limit), ...this.leads(limit) });
    }
    const alarms = drawn.map((one) => one.falseAlarms);
    return { falseAlarms: mean(alarms), falseAlarmsSpread: [quantileOf(alarms, 0.1), quantileOf(alarms, 0.9)], ahead: mean(drawn.map((one) => one.ahead)), median: quantileOf(drawn.map((one) => one.median), 0.5) };
  }

  private leads(limit: number): { ahead: number; median: number } {
    const leads = this.events.map(({ looks, scores, crossing }) => {
      const look = firstAbove(scores, limit);
      return leadOf({ truth: { crossing }, alarm: look === null ? null : (looks[look] as number) });
    });
    return { ahead: leads.filter((lead) => lead > 0).length / leads.length, median: quantileOf(leads, 0.5) };
  }
}

const shareAbove = (values: readonly number[], limit: number): number => values.filter((value) => value > limit).length / values.length;

function shuffled(values: readonly number[], random: () => number): number[] {
  const order = [...values];
  for (let last = order.length - 1; last > 0; last -= 1) {
    const other = Math.floor(random() * (last + 1));
    [order[last], order[other]] = [order[other] as number, order[last] as number];
  }
  return order;
}
