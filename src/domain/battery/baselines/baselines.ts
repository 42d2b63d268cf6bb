import type { Candidate } from "../candidate.ts";
import { benchmark, benchmarkTuned, rawDrop, testedDrop, tunedDrop } from "./accuracy.ts";
import { chance } from "./chance.ts";
import { explored } from "./explored.ts";
import { fixedKl, meanKl, meanNll, ofTraining } from "./distance.ts";

/** What the detectors are measured against, on a panel of `rows` rows. */
export function baselines(rows: number): Candidate[] {
  return [benchmark, benchmarkTuned, rawDrop(rows), tunedDrop(rows), testedDrop(rows), meanKl, fixedKl, meanNll(rows), ...ofTraining, chance, ...explored(rows)];
}
