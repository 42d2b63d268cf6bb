import type { ScoreCandidate } from "../candidate.ts";
import type { RawRun } from "../rawRun.ts";

/** Baselines that see how far the model has moved, without asking in which direction. */

export const meanKl: ScoreCandidate = {
  kind: "score", id: "kl", label: "Mean KL to the start on the panel, tuned", family: "baseline", needs: "scores", rows: null, parameters: {},
  score: (run, skill) => [...(run.panel[skill]?.kl as number[])],
};

/** The threshold of the nearest rival tool. */
export const fixedKl: ScoreCandidate = { ...meanKl, id: "kl-0.2", label: "Mean KL to the start on the panel above 0.2", parameters: { nats: 0.2 }, fixed: 0.2 };

/** Mean change of the NLL of the verified answers: signed, but without a test or a tolerance. */
export function meanNll(rows: number): ScoreCandidate {
  return {
    kind: "score", id: `nll-mean-n${rows}`, label: `Mean NLL of the verified answers, tuned (n = ${rows})`, family: "baseline", needs: "scores", rows, parameters: {},
    score(run, skill) {
      const [start, ...later] = (run.panel[skill]?.nll as number[][]).map((list) => meanOf(list.slice(0, rows)));
      return [-Infinity, ...later.map((now) => now - (start as number))];
    },
  };
}

const ofRun = (name: keyof RawRun["run"], change: (values: (number | null)[], look: number) => number | null) => (run: RawRun): number[] =>
  run.looks.map((_, look) => (look === 0 ? -Infinity : change(run.run[name], look) ?? -Infinity));

const rise = (values: (number | null)[], look: number): number | null => {
  const before = values.slice(0, look).filter((value) => value !== null);
  const now = values[look] ?? null;
  return now === null || before.length === 0 ? null : now - Math.min(...before);
};

const fall = (values: (number | null)[], look: number): number | null => {
  const [start, now] = [values.find((value) => value !== null) ?? null, values[look] ?? null];
  return start === null || now === null ? null : start - now;
};

const plain = (values: (number | null)[], look: number): number | null => values[look] ?? null;

/** What the training itself shows. One number for the whole run: an alarm counts for every skill that is watched. */
export const ofTraining: ScoreCandidate[] = [
  { kind: "score", id: "kl-new", label: "KL to the start on the new task's data, tuned", family: "baseline", needs: "training", rows: null, parameters: {}, score: ofRun("kl_new", plain) },
  { kind: "score", id: "val-loss", label: "Validation loss rose above its lowest, tuned", family: "baseline", needs: "training", rows: null, parameters: {}, score: ofRun("val_loss", rise) },
  { kind: "score", id: "loss", label: "Training loss fell, tuned", family: "baseline", needs: "training", rows: null, parameters: {}, score: ofRun("loss", fall) },
  { kind: "score", id: "drift", label: "Largest weight drift of a module, tuned", family: "baseline", needs: "training", rows: null, parameters: {}, score: ofRun("drift", plain) },
];

function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
