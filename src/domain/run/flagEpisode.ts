import type { ReportCard } from "../../protocol/reportCard.ts";
import type { ChainRun } from "./chain.ts";
import type { FlagRecord } from "./runState.ts";

/** The step at which the flag that stands now was raised: the first of its states since it was last calm. Null for a flag that never was. */
export function raisedAt({ state }: Pick<ChainRun, "state">, id: string): number | null {
  let step: number | null = null;
  for (const flag of state.flagHistory) {
    if (flag.id !== id) continue;
    if (flag.state === "drifting" || flag.state === "confirmed") step ??= flag.step;
    else step = null;
  }
  return step;
}

/** The newest saved step up to the last look at which the flag's probes were calm; null when nothing was saved by then. */
export function lastGoodStep(run: Pick<ChainRun, "state">, id: string): number | null {
  const raised = raisedAt(run, id);
  if (raised === null) return null;
  const calm = run.state.probes.filter(({ step, skill, split }) => `${skill}.${split}` === id && step < raised).at(-1)?.step ?? 0;
  return run.state.checkpoints.filter(({ step }) => step > 0 && step <= calm).at(-1)?.step ?? null;
}

/** Whether the report card lets a detector's warnings stand by themselves: where most are wrong, or too many runs have one, only what the check confirmed is shown. */
export function hidesWatch(card: ReportCard | null, flag: Pick<FlagRecord, "detector">): boolean {
  return card !== null && (card.watch_hidden || card.ships === "descriptive") && card.detector.family === (flag.detector ?? "nll");
}

/** The run without the states that the report card does not bear out. The run folder keeps everything. */
export function withoutWatch<T extends Pick<ChainRun, "state">>(run: T, card: ReportCard | null): T {
  if (!run.state.flagHistory.some((flag) => hidesWatch(card, flag))) return run;
  const confirmed = new Set<string>();
  const flagHistory = run.state.flagHistory.filter((flag) => {
    if (flag.state === "confirmed") confirmed.add(flag.id);
    return !hidesWatch(card, flag) || flag.state === "confirmed" || flag.state === "not-measurable" || (flag.state === "recovered" && confirmed.delete(flag.id));
  });
  return { ...run, state: { ...run.state, flagHistory, flags: [...new Map(flagHistory.map((flag) => [flag.id, flag])).values()] } };
}
