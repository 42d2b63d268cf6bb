import type { BankFile } from "./bank.ts";
import { figuresOf, type Figures } from "./figures.ts";
import { placeOf } from "./series.ts";
import { allowedRate } from "./tune.ts";

/** Rows of the panel on which the default is chosen: the fewest that a flag is called sound on, and what the sample has. */
export const choiceRows = 64;

/** The detectors of a bank with panels of `rows` rows, best first by the protocol's rule: most events flagged before the crossing, then the longer median lead, then the order of the grid (simpler first). A detector without a setting that keeps the false-alarm rate cannot win. */
export function ranking(bank: BankFile, rows = choiceRows): Figures[] {
  return bank.candidates
    .filter((one) => one.family !== "baseline" && one.rows === rows && one.knob !== null && !isVariant(one))
    .map((one) => figuresOf(bank, one.id))
    .filter(({ falseAlarms }) => falseAlarms.of > 0 && falseAlarms.share <= allowedRate + 1e-9)
    .sort((a, b) => b.truth.ahead.hits - a.truth.ahead.hits || compare(b.truth.median, a.truth.median));
}

/** The best detector of each family, the winner first. */
export function bestOfFamilies(bank: BankFile): string[] {
  const best = new Map<string, string>();
  for (const { id } of ranking(bank)) {
    const family = bank.candidates[placeOf(bank, id)]?.family as string;
    if (!best.has(family)) best.set(family, id);
  }
  return [...best.values()];
}

const compare = (a: number, b: number): number => (a === b || Number.isNaN(a) || Number.isNaN(b) ? 0 : a > b ? 1 : -1);

/** Asked for or changed on purpose: shown, never chosen. */
export function isVariant({ family, parameters }: Pick<BankFile["candidates"][number], "family" | "parameters">): boolean {
  return family !== "baseline" && ("alpha" in parameters || "ablation" in parameters);
}

export interface Decisions {
  /** Twice the nominal rate lies below the upper limit of the measured one: no alarms, descriptions only. */
  ships: "alarm" | "descriptive";
  /** Whether the word "early" may be used. */
  early: boolean;
  /** The watch state is not shown unless asked for. */
  watchHidden: boolean;
}

/** The rules of the protocol. Whatever was not measured is decided against the detector. */
export function decide(figures: Pick<Figures, "falseAlarms" | "precision" | "truth" | "copies">, nominal: number): Decisions {
  const quiet = figures.falseAlarms.of > 0 && figures.falseAlarms.high <= 2 * nominal && figures.copies.hits === 0;
  return {
    ships: quiet ? "alarm" : "descriptive",
    early: figures.truth.median > 0,
    watchHidden: !(figures.precision.share >= 0.5),
  };
}
