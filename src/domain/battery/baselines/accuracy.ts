import { mcnemarExact } from "../../statistics/pairs.ts";
import type { ScoreCandidate } from "../candidate.ts";
import { changeOfBits } from "../pairedBits.ts";
import type { RawRun } from "../rawRun.ts";

/** Baselines that see only right and wrong answers: the user's benchmark at its own cadence, and the panel's answers generated at every look. */

/** −ln of the exact one-sided McNemar p, corrected for the looks and the skills: above −ln(α) is an alarm at a budget of α per run. */
function evidence(before: string, now: string, tests: number, rows?: number): number {
  const { lost, gained } = changeOfBits(before, now, rows);
  return -Math.log(Math.min(1, mcnemarExact(lost, gained, "lost") * tests));
}

function benchmarkScores(run: RawRun, skill: string): number[] {
  const bits = run.bench[skill] as (string | null)[];
  const looks = bits.filter((one, look) => look > 0 && one !== null).length;
  return bits.map((now, look) => (look === 0 || now === null ? -Infinity : evidence(bits[0] as string, now, looks * run.skills.length)));
}

/** The benchmark that a team has: it confirms what it can prove at a budget of 10 % of false alarms per run. The other lead is measured against it. */
export const benchmark: ScoreCandidate = {
  kind: "score", id: "benchmark", label: "Benchmark alone: 200 rows every 20 steps, exact test", family: "baseline", needs: "benchmark", rows: null,
  parameters: { alpha: 0.1 },
  score: benchmarkScores,
  fixed: -Math.log(0.1),
};

export const benchmarkTuned: ScoreCandidate = { ...benchmark, id: "benchmark-tuned", label: "Benchmark alone, budget tuned", parameters: {}, score: benchmarkScores };
delete benchmarkTuned.fixed;

/** Share of the panel's generated answers lost since the start. */
function drop(run: RawRun, skill: string, rows: number): number[] {
  const bits = run.panel[skill]?.right as string[];
  return bits.map((now, look) => {
    const { lost, gained, n } = changeOfBits(bits[0] as string, now, Math.min(rows, now.length));
    return look === 0 ? -Infinity : (lost - gained) / n;
  });
}

export function rawDrop(rows: number): ScoreCandidate {
  // A hair below 3 points, so that a drop of exactly 3 points alarms.
  return { kind: "score", id: `drop-3-n${rows}`, label: `Accuracy of the panel fell by 3 points (n = ${rows})`, family: "baseline", needs: "answers", rows, parameters: { points: 3 }, score: (run, skill) => drop(run, skill, rows), fixed: 0.03 - 1e-9 };
}

export function tunedDrop(rows: number): ScoreCandidate {
  return { kind: "score", id: `drop-n${rows}`, label: `Accuracy of the panel at every look, drop tuned (n = ${rows})`, family: "baseline", needs: "answers", rows, parameters: {}, score: (run, skill) => drop(run, skill, rows) };
}

export function testedDrop(rows: number): ScoreCandidate {
  return {
    kind: "score", id: `mcnemar-n${rows}`, label: `Accuracy of the panel at every look, exact test (n = ${rows})`, family: "baseline", needs: "answers", rows, parameters: {},
    score(run, skill) {
      const bits = run.panel[skill]?.right as string[];
      return bits.map((now, look) => (look === 0 ? -Infinity : evidence(bits[0] as string, now, (bits.length - 1) * run.skills.length, Math.min(rows, now.length))));
    },
  };
}
