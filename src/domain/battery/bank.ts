import { alarmText } from "./alarmText.ts";
import type { AmocCurve } from "./amoc.ts";
import { alarmsOf, type Candidate } from "./candidate.ts";
import type { BankName, RawRun, RunKind } from "./rawRun.ts";
import { truthOfRun, type RunClass, type SkillTruth } from "./truth.ts";
import { tune } from "./tune.ts";

/** `media/battery/bank-<A|B>.json`: what is left of a bank's raw runs, small enough to be committed. Every figure of the report card is computed from it. */
export interface BankFile {
  v: 1;
  bank: BankName;
  candidates: BankCandidate[];
  runs: BankRun[];
  /** Files that were no whole runs. */
  left_out: { file: string; why: string }[];
  amoc: AmocCurve[];
  /** SHA-256 of the protocol's file when the bank was judged. */
  protocol?: string | null;
}

export type BankCandidate = Pick<Candidate, "id" | "label" | "family" | "needs" | "rows" | "parameters" | "kind"> & {
  /** Tuned on bank A; null: no setting keeps the false-alarm rate there, so it never alarms. */
  knob: number | null;
};

export interface BankRun {
  id: string;
  kind: RunKind;
  intent: RawRun["intent"];
  base: string;
  start: string;
  seed: number;
  rate: number;
  class: RunClass;
  looks: number[];
  skills: string[];
  truth: SkillTruth[];
  /** By candidate, in the order of `candidates`: one character a skill, see alarmText.ts. */
  alarms: string[];
  seconds: RawRun["seconds"];
  tokens: RawRun["tokens"];
  /** Rows of the panel that the seconds paid for. */
  panel_rows: number;
}

/** One candidate on all runs of a bank: its knob and its alarms, by run. */
export interface Evaluated {
  id: string;
  knob: number | null;
  alarms: string[];
}

/** `knob: undefined` tunes on the healthy ones of these runs: only ever on bank A. */
export function evaluate(candidate: Candidate, runs: readonly RawRun[], knob: number | null | undefined): Evaluated {
  const chosen = knob === undefined ? tune(candidate, healthyOf(runs)) : knob;
  const alarms = runs.map((run) => alarmText(chosen === null ? run.skills.map(() => null) : alarmsOf(candidate, run, chosen)));
  return { id: candidate.id, knob: chosen, alarms };
}

const classes = new WeakMap<RawRun, ReturnType<typeof truthOfRun>>();

/** The truth of a run, computed once. */
export function truthOf(run: RawRun): ReturnType<typeof truthOfRun> {
  const known = classes.get(run) ?? truthOfRun(run);
  classes.set(run, known);
  return known;
}

export function healthyOf(runs: readonly RawRun[]): RawRun[] {
  return runs.filter((run) => truthOf(run).class === "healthy");
}

export function bankFile(bank: BankName, runs: readonly RawRun[], candidates: readonly Candidate[], evaluated: readonly Evaluated[], leftOut: BankFile["left_out"], amoc: AmocCurve[]): BankFile {
  const known = new Map(evaluated.map((one) => [one.id, one]));
  const of = (candidate: Candidate): Evaluated => {
    const found = known.get(candidate.id);
    if (found === undefined) throw new Error(`The candidate ${candidate.id} was not evaluated on bank ${bank}.`);
    return found;
  };
  return {
    v: 1,
    bank,
    candidates: candidates.map((candidate) => {
      const { id, label, family, needs, rows, parameters, kind } = candidate;
      return { id, label, family, needs, rows, parameters, kind, knob: of(candidate).knob };
    }),
    runs: runs.map((run, index) => {
      const truth = truthOf(run);
      return {
        id: run.id, kind: run.kind, intent: run.intent, base: run.base, start: run.start, seed: run.seed, rate: run.rate, class: truth.class, looks: run.looks, skills: run.skills,
        truth: run.skills.map((skill) => truth.skills[skill] as SkillTruth),
        alarms: candidates.map((candidate) => of(candidate).alarms[index] as string),
        seconds: run.seconds, tokens: run.tokens, panel_rows: (run.again[run.skills[0] as string]?.nll.length ?? 0),
      };
    }),
    left_out: leftOut,
    amoc,
  };
}
