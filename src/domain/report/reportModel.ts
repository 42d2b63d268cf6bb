import type { Split } from "../../protocol/runSpec.ts";
import type { BufferCoverage, BufferNearness } from "../rows/membership.ts";
import type { Chain, ChainRun } from "../run/chain.ts";
import type { Filmstrip } from "../drift/filmstrip.ts";
import { flagCard, type FlagFact, type FlagFacts } from "../run/flagCard.ts";
import { flagsInTimeOrder, type FlagEntry } from "../run/flagText.ts";
import type { Pipeline, Skill } from "../pipeline/pipelineModel.ts";
import { skillsTable, type SkillsTable } from "../drift/skillsTable.ts";
import type { SummaryLine } from "../drift/summaryDrift.ts";
import { decodeNumber } from "../../protocol/numbers.ts";
import { wilsonInterval, type Interval } from "../statistics/shares.ts";

/** One prompt shown token by token. */
export interface ReportFilm {
  skill: string;
  split: Split;
  /** `start`, or the label of the reference checkpoint. */
  against: string;
  film: Filmstrip;
  /** How many prompts of the set could be compared; this one drifted most. */
  of: number;
}

export interface ReplaySummary {
  stage: string;
  run: string;
  buffer: string;
  ratio: number;
  rows: number;
  /** Rows by the stage they come from. */
  sources: { stage: string; rows: number }[];
  dropped: { quality: number; duplicate: number; probe: number };
  /** Where rows were chosen by what they cover; absent or empty: by chance. */
  coverage?: readonly BufferCoverage[];
  /** Where rows like named ones were taken first; absent or empty: nowhere. */
  nearness?: readonly BufferNearness[];
  draws: number;
  distinct: number;
}

/** What a report is made of. */
export interface ReportInput {
  pipeline: Pipeline;
  chain: Chain;
  films: readonly ReportFilm[];
  /** Per skill: perplexity and change per kind of token, in-domain. */
  segments: readonly { skill: string; lines: readonly SummaryLine[] }[];
  replay: readonly ReplaySummary[];
  /** What is known of flags besides their journals, and the runs of the project to tell what is usual. Absent: nothing. */
  facts?: FlagFacts;
  history?: readonly ChainRun[];
  /** Remarks about what could not be read. */
  notes: readonly string[];
  /** Milliseconds since 1970. */
  made: number;
  /** How times are written, e.g. `2026-11-30 02:15 UTC`. */
  formatTime: (ms: number) => string;
}

export interface CurvePoint {
  /** Steps since M0 along the chain. */
  x: number;
  y: number;
  interval: Interval | null;
  label: string;
}

/** The story of one skill over the whole chain. */
export interface SkillCurves {
  skill: string;
  ownStage: string | null;
  splits: { split: Split; accuracy: CurvePoint[]; logprob: CurvePoint[] }[];
  marks: { x: number; entry: FlagEntry }[];
}

/** Where each stage lies on the x axis. */
export interface StageSpan {
  stage: string;
  label: string;
  from: number;
  to: number;
}

export interface ReportModel extends ReportInput {
  skills: SkillsTable;
  flags: FlagEntry[];
  /** The facts of each flag, under the newest word on it. */
  cards: ReadonlyMap<FlagEntry, readonly FlagFact[]>;
  /** Whether the report card lets the warnings be called early. */
  early: boolean;
  spans: StageSpan[];
  curves: SkillCurves[];
  runs: ChainRun[];
}

export function reportModel(input: ReportInput): ReportModel {
  const { pipeline, chain } = input;
  const spans = stageSpans(chain);
  const flags = flagsInTimeOrder(chain);
  return {
    ...input,
    skills: skillsTable(pipeline.skills, chain),
    flags,
    cards: cardsOf(flags, input),
    early: input.facts?.card?.early === true && input.facts.card.ships === "alarm",
    spans,
    curves: pipeline.skills.map((skill) => skillCurves(pipeline, chain, skill, spans, flags)),
    runs: chain.checkpoints.flatMap(({ run, stage }) => (run === null || stage === null ? [] : [run])),
  };
}

function cardsOf(flags: readonly FlagEntry[], { facts, history = [] }: ReportInput): Map<FlagEntry, readonly FlagFact[]> {
  const newest = new Map(flags.map((flag) => [`${flag.run} ${flag.id}`, flag]));
  return new Map([...newest.values()].flatMap((entry): [FlagEntry, FlagFact[]][] => {
    const run = history.find(({ id }) => id === entry.run);
    if (facts === undefined || run === undefined || (entry.state !== "drifting" && entry.state !== "confirmed")) return [];
    return [[entry, flagCard({ flag: entry.flag, run, runs: history, card: facts.card, replay: facts.replay(run, entry.flag) })]];
  }));
}

/** One skill over the chain: what the report and the page draw. */
export function skillCurves(pipeline: Pipeline, chain: Chain, skill: Skill, spans: readonly StageSpan[], flags: readonly FlagEntry[]): SkillCurves {
  return {
    skill: skill.id,
    ownStage: pipeline.stages.find(({ id }) => id === skill.id)?.id ?? null,
    splits: (skill.probes.ood === undefined ? ["id" as const] : ["id" as const, "ood" as const]).map((split) => ({
      split,
      accuracy: accuracyCurve(chain, `${skill.id}.${split}`),
      logprob: logprobCurve(chain, skill.id, split),
    })),
    marks: flags.filter((entry) => entry.skill === skill.id).flatMap((entry) => {
      const span = spans.find(({ stage }) => stage === entry.stage);
      return span ? [{ x: span.from + entry.step, entry }] : [];
    }),
  };
}

export function stageSpans(chain: Chain): StageSpan[] {
  return chain.checkpoints.flatMap(({ stage, label, stops, step, run }) => {
    if (stage === null || run === null || step === null) return [];
    const start = stops[0];
    const from = start ? start.position - start.step : 0;
    return [{ stage, label, from, to: from + step }];
  });
}

/** Stops of the whole chain; the start of a stage repeats the end of its parent and is left out. */
function stopsOf(chain: Chain) {
  const base = chain.checkpoints[0];
  const first = base ? [{ stage: "", run: base.run?.id ?? "", step: 0, position: 0, label: base.label, traces: base.traces, evals: base.evals }] : [];
  return [...first, ...chain.checkpoints.flatMap(({ stops }) => stops.filter(({ step }) => step > 0))];
}

function accuracyCurve(chain: Chain, set: string): CurvePoint[] {
  return stopsOf(chain).flatMap(({ evals, position: x, label }) => {
    const count = evals[set];
    if (!count || count.n === 0) return [];
    return [{ x, y: count.correct / count.n, interval: wilsonInterval(count.correct, count.n), label }];
  });
}

/** Change of the mean log-probability of the reference answers since M0, in nats per answer. */
function logprobCurve(chain: Chain, skill: string, split: Split): CurvePoint[] {
  const points = stopsOf(chain).flatMap(({ run, step, position: x, label }) => {
    const record = chain.checkpoints.find((checkpoint) => checkpoint.run?.id === run)?.run;
    const probe = record?.state.probes.find((point) => point.step === step && point.skill === skill && point.split === split);
    const nll = probe === undefined ? undefined : decodeNumber(probe.summary.nll);
    return nll === undefined || !Number.isFinite(nll) ? [] : [{ x, nll, label }];
  });
  const start = points[0];
  return start === undefined ? [] : points.map(({ x, nll, label }) => ({ x, y: start.nll - nll, interval: null, label }));
}
