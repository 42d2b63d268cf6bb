import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { DetectorId, DetectorSetup, LookScores, SeriesNoise, SeriesStart } from "../../../../src/domain/flags/detector.ts";
import type { Split } from "../../../../src/protocol/runSpec.ts";

/** The fixtures that both languages read; their README.md says what the fields mean. */
const folder = join(import.meta.dirname, "../../../fixtures/protocol/flags");

export interface ExpectedVerdicts {
  threshold: number;
  estimate: number[];
  low: number[];
  high: number[];
  alarm: boolean[];
  clear: boolean[];
  spent: number[];
  states: string[];
  checks: number[];
}

export interface SeriesFixture extends DetectorSetup {
  name: string;
  start: SeriesStart;
  at: LookScores[];
  expected: Record<DetectorId, ExpectedVerdicts>;
}

interface WrittenSeries extends DetectorSetup {
  name: string;
  id: string;
  skill: string;
  split: Split;
  seed: number;
  start: { margins: number[]; nll: number[]; correct: string; noise: SeriesNoise; groups?: number[] };
  at: { step: number; progress: number; nll: number[]; margins: number[] }[];
  expected: Record<DetectorId, ExpectedVerdicts>;
}

export function readFixture<T>(name: string): T {
  return JSON.parse(readFileSync(join(folder, `${name}.json`), "utf8")) as T;
}

/** All fixtures of series. */
export function readSeries(): SeriesFixture[] {
  const names = readdirSync(folder).filter((file) => file.startsWith("series-") && file.endsWith(".json"));
  return names.map((file) => {
    const { start, at, id, skill, split, seed, ...rest } = readFixture<WrittenSeries>(file.slice(0, -5));
    return {
      ...rest,
      start: {
        id, skill, split, seed, noise: start.noise, correct: [...start.correct].map((right) => right === "1"),
        margins: Float64Array.from(start.margins), nll: Float64Array.from(start.nll),
        ...(start.groups === undefined ? {} : { groups: Int32Array.from(start.groups) }),
      },
      at: at.map((look) => ({ ...look, nll: Float64Array.from(look.nll), margins: Float64Array.from(look.margins) })),
    };
  });
}
