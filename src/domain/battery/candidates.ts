import type { MarginKind } from "../flags/detector.ts";
import { tunedDrop } from "./baselines/accuracy.ts";
import { baselines } from "./baselines/baselines.ts";
import { explored } from "./baselines/explored.ts";
import type { Candidate } from "./candidate.ts";
import { choiceRows } from "./choose.ts";
import { detectorCandidate, type WatchSetting } from "./detectorCandidates.ts";
import { limitCandidate } from "./limitCandidate.ts";
import { allowedRate } from "./tune.ts";

/** The grid that bank A chooses from; the first of each list is the simplest, so that ties keep it. */
const grid = {
  margin: ["all", "decision"] as readonly MarginKind[],
  scale: [1, 0.5, 0.25, 2],
  tolerance: [2, 1, 0],
  nats: [0.2, 0.1, 0.3, 0.5],
} as const;

/** Sizes of the panel beside the one that the default is chosen on. */
const otherRows = [32, 128, 256] as const;

const usual: Omit<WatchSetting, "detector"> = { margin: "all", scale: 1, tolerance: 2, nats: 0.2 };

export const settings: readonly WatchSetting[] = [
  ...grid.margin.flatMap((margin) => grid.scale.flatMap((scale) => grid.tolerance.map((tolerance) => ({ ...usual, detector: "soft" as const, margin, scale, tolerance })))),
  ...(["shift", "strict"] as const).flatMap((detector) => grid.margin.flatMap((margin) => grid.tolerance.map((tolerance) => ({ ...usual, detector, margin, tolerance })))),
  ...grid.nats.map((nats) => ({ ...usual, detector: "nll" as const, nats })),
];

/** Everything that is tuned in the first round. */
export function allCandidates(): Candidate[] {
  return [limitCandidate(choiceRows, true), ...settings.map((setting) => detectorCandidate(setting, choiceRows)), ...baselines(choiceRows), tunedDrop(128), tunedDrop(256), ...explored(256)];
}

/** The second round, for the best setting of each family: the budget that a user asks for, untuned; other sizes of the panel; and ablations, which cannot win. */
export function variantsOf(id: string): Candidate[] {
  if (id === limitCandidate(choiceRows, true).id) return otherRows.map((rows) => limitCandidate(rows, false));
  const setting = settings.find((one) => detectorCandidate(one, choiceRows).id === id);
  if (setting === undefined) throw new Error(`There is no detector candidate "${id}" on ${choiceRows} rows.`);
  return [
    detectorCandidate(setting, choiceRows, { alpha: allowedRate }),
    ...otherRows.map((rows) => detectorCandidate(setting, rows)),
    detectorCandidate(setting, choiceRows, { ablation: "right-at-start" }),
    detectorCandidate(setting, choiceRows, { ablation: "every-second-look" }),
  ];
}

const known = new Map<string, Candidate>();

/** Any candidate of either round, by its id. */
export function candidateById(id: string): Candidate {
  if (known.size === 0) {
    for (const candidate of allCandidates()) {
      known.set(candidate.id, candidate);
      if (candidate.family !== "baseline") for (const variant of variantsOf(candidate.id)) known.set(variant.id, variant);
    }
  }
  const found = known.get(id);
  if (found === undefined) throw new Error(`There is no candidate "${id}".`);
  return found;
}
