import type { FlagState, PairedTest } from "../../protocol/journal.ts";
import { mcnemarExact } from "../statistics/pairs.ts";
import { confirmLevel } from "./defaults.ts";
import type { Verdict } from "./detector.ts";

/** `calm`: nothing was raised, so nothing is in the journal. */
export type WatchState = "calm" | Exclude<FlagState, "not-measurable">;

/** What is known of one series: its state, and the tests that its flags have asked for. */
export interface SeriesWatch {
  state: WatchState;
  /** Clear looks in a row since the last alarm. */
  clearLooks: number;
  /** Step of a test → which of this series' tests it is, from 1. A place is never given back. */
  places: ReadonlyMap<number, number>;
  /** Step of a test that still counts → p · 2^place. */
  tests: ReadonlyMap<number, number>;
  /** States taken, oldest first. */
  history: readonly { step: number; state: WatchState }[];
}

/** The measurable series of one run by id. Holm's correction is over all of them. */
export type RunWatch = ReadonlyMap<string, SeriesWatch>;

export function watchSeries(ids: readonly string[]): RunWatch {
  return new Map(ids.map((id) => [id, { state: "calm", clearLooks: 0, places: new Map(), tests: new Map(), history: [] }]));
}

/**
 * Takes in what a look found. `raised`: the state to journal, null where nothing changed. `asks`: the series' check is to be
 * run now and handed to `takeTest`.
 *
 * | state               | alarm                  | clear                              |
 * |---------------------|------------------------|------------------------------------|
 * | calm, recovered     | drifting, asks         | –                                  |
 * | drifting            | asks again             | twice in a row: recovered          |
 * | confirmed           | –                      | twice in a row: recovered          |
 */
export function takeLook(watch: RunWatch, id: string, step: number, { alarm, clear }: Pick<Verdict, "alarm" | "clear">): { watch: RunWatch; raised: WatchState | null; asks: boolean } {
  const series = seriesOf(watch, id);
  if (alarm) {
    const raised = series.state === "calm" || series.state === "recovered" ? "drifting" : null;
    return { watch: put(watch, id, step, { ...series, clearLooks: 0 }, raised), raised, asks: series.state !== "confirmed" };
  }
  if (series.state !== "drifting" && series.state !== "confirmed") return { watch, raised: null, asks: false };
  const clearLooks = clear ? series.clearLooks + 1 : 0;
  const raised = clearLooks >= 2 ? "recovered" : null;
  return { watch: put(watch, id, step, { ...series, clearLooks }, raised), raised, asks: false };
}

/**
 * The paired exact test that a look asked for: results of the check on the same rows, at the start and now. The j-th test of
 * a series counts as p · 2^j (Bonferroni, weights sum to 1), and Holm's procedure runs over all series, those not tested
 * counting as 1. It is this test's own p that confirms, so that the numbers beside the word bear it out.
 */
export function takeTest(watch: RunWatch, id: string, step: number, before: readonly boolean[], now: readonly boolean[]): { watch: RunWatch; raised: "drifting" | "confirmed"; test: PairedTest } {
  const series = seriesOf(watch, id);
  const lost = before.filter((right, row) => right && now[row] === false).length;
  const gained = before.filter((right, row) => !right && now[row] === true).length;
  const place = series.places.get(step) ?? series.places.size + 1;
  const weight = 2 ** place;
  const p = mcnemarExact(lost, gained, "lost");
  const tested: SeriesWatch = { ...series, places: new Map(series.places).set(step, place), tests: new Map(series.tests).set(step, p * weight) };
  const all = new Map(watch).set(id, tested);
  const level = holmLevel([...all.values()].map(({ tests }) => Math.min(1, ...tests.values())), [...all.keys()].indexOf(id));
  const raised = p * weight <= level ? "confirmed" : "drifting";
  const share = (results: readonly boolean[]): number => results.filter(Boolean).length / results.length;
  const test = { lost, gained, n: now.length, p, level: level / weight, accuracy_start: share(before), accuracy_now: share(now) };
  return { watch: put(all, id, step, { ...tested, clearLooks: 0 }, raised), raised, test };
}

/** An attempt resumed after `step`: later states and tests are void, their places stay taken, so that levels spent stay spent. */
export function resumeAfter(watch: RunWatch, step: number): RunWatch {
  return new Map([...watch].map(([id, { places, tests, history }]) => {
    const kept = history.filter((entry) => entry.step <= step);
    return [id, { state: kept.at(-1)?.state ?? "calm", clearLooks: 0, places, tests: new Map([...tests].filter(([at]) => at <= step)), history: kept }];
  }));
}

/** The level at which hypothesis `mine` is held in Holm's procedure, or 0 where a smaller p-value was not rejected. Holm 1979. */
export function holmLevel(pValues: readonly number[], mine: number, level = confirmLevel): number {
  const order = pValues.map((p, index) => ({ p, index })).sort((a, b) => a.p - b.p || Number(a.index !== mine) - Number(b.index !== mine));
  for (const [place, { p, index }] of order.entries()) {
    const bound = level / (order.length - place);
    if (index === mine) return bound;
    if (p > bound) return 0;
  }
  return 0;
}

function seriesOf(watch: RunWatch, id: string): SeriesWatch {
  const series = watch.get(id);
  if (series === undefined) throw new RangeError(`${id} is not watched in this run.`);
  return series;
}

function put(watch: RunWatch, id: string, step: number, series: SeriesWatch, raised: WatchState | null): RunWatch {
  return new Map(watch).set(id, raised === null ? series : { ...series, state: raised, clearLooks: 0, history: [...series.history, { step, state: raised }] });
}
