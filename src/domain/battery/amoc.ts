import { alarmsOf, alphaGrid, type Candidate } from "./candidate.ts";
import { leadOf, quantileOf } from "./leads.ts";
import type { RawRun } from "./rawRun.ts";
import type { Series } from "./series.ts";
import { highestScore, tune } from "./tune.ts";

/**
 * Activity monitoring operating characteristic (Fawcett & Provost 1999): what a candidate's delay would be at other false-alarm
 * rates. Each point is tuned on the very bank it is measured on: it compares candidates at equal rates, and says nothing about how a setting carries over.
 */
export interface AmocCurve {
  id: string;
  points: AmocPoint[];
}

export interface AmocPoint {
  /** Healthy runs with an alarm. */
  rate: number;
  /** Share of events flagged before the crossing. */
  ahead: number;
  /** Share of events flagged at all. */
  found: number;
  /** Median steps from the crossing to the alarm (negative: before); null where more than half were missed. */
  delay: number | null;
}

const rates = [0, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5] as const;

export function amocOf(candidate: Candidate, runs: readonly RawRun[], truthOf: (run: RawRun) => { class: string; skills: Record<string, Series["truth"]> }): AmocCurve {
  const healthy = runs.filter((run) => truthOf(run).class === "healthy");
  const forgetting = runs.filter((run) => truthOf(run).class === "forgetting");
  const knobs = candidate.kind === "level" ? [...alphaGrid] : [...new Set(rates.map((rate) => tune(withoutFixed(candidate), healthy, rate)))].filter((knob) => knob !== null);
  const points = knobs.map((knob): AmocPoint => {
    const alarmed = healthy.filter((run) => (candidate.kind === "score" ? highestScore(candidate, run) > knob : alarmsOf(candidate, run, knob).some((look) => look !== null))).length;
    const leads = forgetting.flatMap((run) => {
      const alarms = alarmsOf(candidate, run, knob);
      return run.skills.flatMap((skill, index) => {
        const truth = truthOf(run).skills[skill] as Series["truth"];
        const look = alarms[index] ?? null;
        return truth.class === "event" ? [leadOf({ truth, alarm: look === null ? null : (run.looks[look] as number) })] : [];
      });
    });
    const median = quantileOf(leads, 0.5);
    const share = (test: (lead: number) => boolean): number => (leads.length === 0 ? 0 : round(leads.filter(test).length / leads.length));
    return { rate: healthy.length === 0 ? 0 : round(alarmed / healthy.length), ahead: share((lead) => lead > 0), found: share((lead) => lead > -Infinity), delay: Number.isFinite(median) ? round(-median) : null };
  });
  const texts = points.map((point) => JSON.stringify(point));
  return { id: candidate.id, points: points.filter((_, index) => texts.indexOf(texts[index] as string) === index).sort((x, y) => x.rate - y.rate || x.ahead - y.ahead) };
}

/** The best point of a curve at a false-alarm rate of at most `rate`; null where it has none so quiet. */
export function bestPoint(curve: AmocCurve, rate: number): AmocPoint | null {
  return curve.points.filter((point) => point.rate <= rate + 1e-9).at(-1) ?? null;
}

function withoutFixed(candidate: Candidate): Candidate {
  const free = { ...candidate };
  delete free.fixed;
  return free;
}

const round = (value: number): number => Math.round(value * 1000) / 1000;
