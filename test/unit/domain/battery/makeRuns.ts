import type { RawRun, RunKind } from "../../../../src/domain/battery/rawRun.ts";
import { normalQuantile } from "../../../../src/domain/statistics/quantiles.ts";
import { seededRandom } from "../../../../src/domain/statistics/random.ts";

/** Made-up runs for tests: margins of a population of rows, of which the panel, the benchmark and the oracle are samples. Says nothing about models. */

export const looks = [0, 3, 6, 10, 15, 20, 30, 40, 60, 80, 100, 120];

export interface World {
  /** Nats of margin lost at a step, on average. */
  loss(step: number): number;
  /** Factor of all margins: a temperature. */
  temper?(step: number): number;
  /** Spread of what each row does by itself, per square root of a look. */
  churn?: number;
  /** Mean start margin; 2 leaves some rows near the boundary. */
  middle?: number;
}

export const steady: World = { loss: () => 0, churn: 0.03 };
export const gradual: World = { loss: (step) => 0.02 * Math.max(0, step - 10), churn: 0.03 };
export const abrupt: World = { loss: (step) => (step >= 60 ? 2 : 0), churn: 0.03 };

export interface Recipe {
  id: string;
  bank?: "A" | "B";
  kind?: RunKind;
  seed: number;
  skills: Record<string, World>;
  rows?: number;
  oracle?: number;
}

export function makeRun({ id, bank = "A", kind = "sft", seed, skills, rows = 128, oracle = 600 }: Recipe): RawRun {
  const random = seededRandom(seed);
  const normal = (): number => normalQuantile(Math.min(1 - 1e-12, Math.max(1e-12, random())));
  const round = (value: number): number => Math.round(value * 10_000) / 10_000;
  const run: RawRun = {
    v: 1, id, bank, base: bank === "A" ? "m0" : "n0", kind, task: "made up", intent: Object.values(skills).some(({ loss }) => loss(120) > 0) ? "forgetting" : "healthy",
    seed, rate: 1e-4, start: "m0-all-1", steps: 120, looks, skills: Object.keys(skills), panel: {}, again: {}, oracle: {}, bench: {},
    run: { loss: looks.map((step) => (step === 0 ? null : round(2 - step / 100 + 0.1 * normal()))), val_loss: looks.map(() => round(1 + 0.1 * normal())), kl_new: looks.map((step) => round(step * 1e-3 * random())), drift: looks.map((step) => round(step * 1e-4 * (1 + random()))) },
    seconds: { train: 10, panel: 2, panel_answers: 1, oracle: 9, bench: 1.5 },
    tokens: { panel: 100_000, panel_scored: rows * 10 },
  };
  for (const [skill, { loss, temper = () => 1, churn = 0, middle = 2 }] of Object.entries(skills)) {
    const margins = (count: number): number[][] => {
      const start = Array.from({ length: count }, () => middle + 1.5 * normal());
      const walk = start.map(() => 0);
      const weights = start.map(() => -Math.log(1 - random()));
      return looks.map((step, look) => start.map((a, row) => {
        if (look > 0) walk[row] = (walk[row] as number) + churn * normal();
        return round(temper(step) * a - loss(step) * (weights[row] as number) + (walk[row] as number));
      }));
    };
    const [panel, truth, bench] = [margins(rows), margins(oracle), margins(200)];
    const bits = (list: readonly number[]): string => list.map((margin) => (margin > 0 ? "1" : "0")).join("");
    const nll = (list: readonly number[]): number[] => list.map((margin) => round(Math.log1p(Math.exp(-margin))));
    const noisy = (list: readonly number[]): number[] => list.map((value) => value + 1e-6 * normal());
    run.panel[skill] = { nll: panel.map(nll), margin: panel, decision: panel, right: panel.map(bits), kl: panel.map((list) => round(list.reduce((sum, margin, row) => sum + Math.abs(margin - ((panel[0] as number[])[row] as number)), 0) / rows / 20)) };
    run.again[skill] = { nll: noisy(nll(panel[0] as number[])), margin: noisy(panel[0] as number[]), decision: noisy(panel[0] as number[]) };
    run.oracle[skill] = truth.map(bits);
    run.bench[skill] = bench.map((list, look) => ((looks[look] as number) % 20 === 0 ? bits(list) : null));
  }
  return run;
}

/** A bank of runs that differ by seed: `healthy` steady or softened, `forgetting` gradual or abrupt, one A/A copy. */
export function makeBank(bank: "A" | "B", healthy: number, forgetting: number, options: Pick<Recipe, "rows" | "oracle"> = {}): RawRun[] {
  const first = bank === "A" ? 1000 : 5000;
  const soft: World = { ...steady, temper: (step) => 1 - 0.3 * (step / 120) };
  return [
    ...Array.from({ length: healthy }, (_, i) => makeRun({ ...options, id: `${bank}-h${i}`, bank, kind: i % 2 === 0 ? "continue" : "temperature", seed: first + i, skills: { math: i % 2 === 0 ? steady : soft, tool: steady } })),
    ...Array.from({ length: forgetting }, (_, i) => makeRun({ ...options, id: `${bank}-f${i}`, bank, kind: "sft", seed: first + 500 + i, skills: { math: i % 3 === 2 ? abrupt : gradual, tool: steady } })),
    makeRun({ ...options, id: `${bank}-c`, bank, kind: "copy", seed: first + 900, skills: { math: { loss: () => 0 }, tool: { loss: () => 0 } } }),
  ];
}
