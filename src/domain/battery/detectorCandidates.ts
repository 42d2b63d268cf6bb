import type { Detector, DetectorId, DetectorSetup, LookScores, MarginKind, OpenSeries, SeriesStart } from "../flags/detector.ts";
import { detectors } from "../flags/detectors.ts";
import { lookProgress } from "../flags/lookProgress.ts";
import { whyNotMeasurable } from "../flags/measurable.ts";
import { seriesNoise } from "../flags/noise.ts";
import type { LevelCandidate } from "./candidate.ts";
import type { RawPanel, RawRun } from "./rawRun.ts";

/** Parameters of a detector that bank A chooses; those that a family does not read are left out of its id. */
export interface WatchSetting {
  detector: DetectorId;
  margin: MarginKind;
  scale: number;
  tolerance: number;
  nats: number;
}

/** What is changed to see what it is worth: only rows that the start answered right (regression to the mean fakes a loss), or only every second look. */
export type Ablation = "right-at-start" | "every-second-look";

export interface Variant {
  /** A budget that is not tuned. */
  alpha?: number;
  ablation?: Ablation;
}

/** The detectors of src/domain/flags as they run in the product, on the first `rows` rows of each panel. */
export function detectorCandidate(setting: WatchSetting, rows: number, { alpha, ablation }: Variant = {}): LevelCandidate {
  const { detector: id, margin, scale, tolerance, nats } = setting;
  const own: Record<string, string | number> = id === "nll" ? { nats } : id === "soft" ? { margin, scale, tolerance } : { margin, tolerance };
  const name = [id, ...Object.entries(own).map(([key, value]) => (key === "margin" ? value : `${key[0] as string}${value}`)), `n${rows}`].join("-");
  const known = new WeakMap<RawRun, Map<string, Map<number, number | null>>>();
  const watched = new WeakMap<RawRun, ReadonlySet<string>>();
  const panel = (run: RawRun, skill: string): PanelRows => panelRows(run, skill, rows, ablation === "right-at-start");
  const every = ablation === "every-second-look" ? 2 : 1;
  const open = (run: RawRun, skill: string, budget: number, series: number): OpenSeries => openSeries(detectors[id], setting, run, skill, panel(run, skill), { alpha: budget, series, looks: Math.ceil((run.looks.length - 1) / every) });
  const watch = (run: RawRun, skill: string, budget: number): number | null => {
    const measurable = watched.get(run) ?? new Set(run.skills.filter((one) => isMeasurable(id, panel(run, one), open(run, one, budget, 1))));
    watched.set(run, measurable);
    if (!measurable.has(skill)) return null;
    const series = open(run, skill, budget, measurable.size);
    const { places } = panel(run, skill);
    for (let look = 1; look < run.looks.length; look += every) if (series.look(scoresAt(run, skill, margin, places, look)).alarm) return look;
    return null;
  };
  return {
    kind: "level",
    id: `${name}${alpha === undefined ? "" : `@${alpha}`}${ablation === undefined ? "" : `-${ablation}`}`,
    label: labelOf(setting, rows, { ...(alpha === undefined ? {} : { alpha }), ...(ablation === undefined ? {} : { ablation }) }),
    family: id,
    needs: "scores",
    rows,
    parameters: { ...own, ...(alpha === undefined ? {} : { alpha }), ...(ablation === undefined ? {} : { ablation }) },
    ...(alpha === undefined ? {} : { fixed: alpha }),
    first(run, skill, budget) {
      const tried = known.get(run) ?? new Map<string, Map<number, number | null>>();
      known.set(run, tried);
      const looks = tried.get(skill) ?? new Map<number, number | null>();
      tried.set(skill, looks);
      // The paths that a larger budget stops include those of a smaller one, so what is silent at the larger stays silent.
      const silent = [...looks].some(([larger, look]) => larger > budget && look === null);
      const look = silent ? null : looks.get(budget) === undefined ? watch(run, skill, budget) : (looks.get(budget) as number | null);
      looks.set(budget, look);
      return look;
    },
  };
}

const names: Record<DetectorId, string> = { limit: "Expected accuracy against a limit", soft: "Expected accuracy", shift: "Boundary shift", strict: "Boundary shift, e-values", nll: "Sequence NLL, tested" };

const ablations: Record<Ablation, string> = { "right-at-start": "only rows right at the start", "every-second-look": "every second look" };

function labelOf({ detector, margin, scale, tolerance, nats }: WatchSetting, rows: number, { alpha, ablation }: Variant): string {
  const what = detector === "nll" ? `tolerance ${nats} nats` : `${margin === "all" ? "all tokens" : "decision tokens"}${detector === "soft" ? `, scale ${scale}` : ""}, tolerance ${tolerance} ${tolerance === 1 ? "point" : "points"}`;
  return `${names[detector]}: ${what} (n = ${rows}${alpha === undefined ? "" : `, budget ${alpha} as asked for`}${ablation === undefined ? "" : `, ${ablations[ablation]}`})`;
}

/** Which rows of a panel are watched, and how many of them the start answered right. */
interface PanelRows {
  places: number[];
  right: boolean[];
}

function panelRows(run: RawRun, skill: string, rows: number, rightOnly: boolean): PanelRows {
  const right = [...((run.panel[skill] as RawPanel).right[0] as string)].map((bit) => bit === "1");
  const places = right.map((_, place) => place).filter((place) => !rightOnly || right[place] === true).slice(0, rows);
  return { places, right: places.map((place) => right[place] as boolean) };
}

function openSeries(detector: Detector, setting: WatchSetting, run: RawRun, skill: string, { places, right }: PanelRows, level: Pick<DetectorSetup, "alpha" | "series" | "looks">): OpenSeries {
  const panel = run.panel[skill] as RawPanel;
  const scores = (from: { nll: number[]; margin: number[]; decision: number[] }): { nll: Float64Array; margins: Float64Array } => ({ nll: pick(from.nll, places), margins: pick(setting.margin === "all" ? from.margin : from.decision, places) });
  const start = scores({ nll: panel.nll[0] as number[], margin: panel.margin[0] as number[], decision: panel.decision[0] as number[] });
  const again = scores(run.again[skill] as { nll: number[]; margin: number[]; decision: number[] });
  const series: SeriesStart = { id: `${skill}.id`, skill, split: "id", seed: run.seed >>> 0, ...start, correct: right, noise: seriesNoise(start, again) };
  return detector.open(series, { ...level, tolerance: setting.tolerance, tolerance_nats: setting.nats, scale: setting.scale });
}

/** By the product's own rules; a skill that cannot be watched never alarms, and takes no share of the budget. */
function isMeasurable(detector: DetectorId, { right }: PanelRows, { noise, tolerance, unit }: OpenSeries): boolean {
  const n = right.length;
  return whyNotMeasurable({ detector, rows: n, dropped: 0, n, right: right.filter(Boolean).length, checked: n, alternatives: 2, noise, tolerance, unit }) === null;
}

function scoresAt(run: RawRun, skill: string, margin: MarginKind, places: readonly number[], look: number): LookScores {
  const panel = run.panel[skill] as RawPanel;
  const step = run.looks[look] as number;
  return { step, progress: lookProgress(step, run.looks.at(-1) as number, look), nll: pick(panel.nll[look] as number[], places), margins: pick((margin === "all" ? panel.margin : panel.decision)[look] as number[], places) };
}

const pick = (values: readonly number[], places: readonly number[]): Float64Array => Float64Array.from(places, (place) => values[place] as number);
