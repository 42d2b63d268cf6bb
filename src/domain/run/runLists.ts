import type { FlagRecord, MetricPoint, RunState } from "./runState.ts";

/** How the lists of a run state grow. These functions change the given state: `reduceEvents` owns a copy of it. */

/** A resumed attempt makes what came after its starting step void; one from scratch makes everything void. */
export function rewind(state: RunState, attempt: number, resumedFrom: number | null): void {
  if (resumedFrom !== null) state.resumes.push({ attempt, step: resumedFrom });
  const last = resumedFrom ?? -1;
  const stays = (point: { step: number }): boolean => point.step <= last;
  const older = (point: MetricPoint): boolean => point.attempt < attempt && !stays(point);
  state.replacedMetrics.push(...state.metrics.filter(older));
  state.metrics = state.metrics.filter((point) => !older(point));
  state.checkpoints = state.checkpoints.filter(stays);
  state.probes = state.probes.filter(stays);
  state.evals = state.evals.filter(stays);
  state.benchmarks = state.benchmarks.filter(stays);
  state.ledger = state.ledger.filter(stays);
  state.flagHistory = state.flagHistory.filter((flag) => flag.attempt >= attempt || stays(flag));
  state.flags = newestFlags(state.flagHistory);
}

/** Keeps `metrics` in step order without repeats: values logged at the same step merge, a later attempt replaces. */
export function addMetric(state: RunState, point: MetricPoint): void {
  const { metrics } = state;
  while (metrics.length > 0 && (metrics.at(-1) as MetricPoint).attempt < point.attempt && (metrics.at(-1) as MetricPoint).step >= point.step) {
    state.replacedMetrics.push(metrics.pop() as MetricPoint);
  }
  let at = metrics.length;
  while (at > 0 && (metrics[at - 1] as MetricPoint).step > point.step) at -= 1;
  const same = metrics[at - 1];
  if (same?.step === point.step) metrics[at - 1] = { ...point, values: { ...same.values, ...point.values } };
  else metrics.splice(at, 0, point);
}

/** One warning per metric: the first NaN is the finding, the ones after it are its echo. */
export function warnNonFinite(state: RunState, step: number, values: Record<string, number>): void {
  for (const [name, value] of Object.entries(values)) {
    if (Number.isFinite(value) || state.warnings.some((warning) => warning.code === "non-finite" && warning.where === name)) continue;
    const fine = name !== "loss" && Number.isFinite(values["loss"]) ? ", although the loss looks fine" : "";
    const message = `${name} is ${Number.isNaN(value) ? "NaN" : "infinite"} at step ${step}${fine}.`;
    state.warnings.push({ code: "non-finite", severity: "error", message, where: name, fix: "Lower the learning rate or clip the gradients, then resume from a checkpoint before this step." });
  }
}

/** Adds a flag event in the order of the journal. */
export function addFlag(state: RunState, flag: FlagRecord): void {
  const before = state.flagHistory.findLastIndex((other) => other.seq < flag.seq || other.attempt < flag.attempt);
  state.flagHistory.splice(before + 1, 0, flag);
  state.flags = newestFlags(state.flagHistory);
}

function newestFlags(history: FlagRecord[]): FlagRecord[] {
  return [...new Map(history.map((flag) => [flag.id, flag])).values()];
}

/** True for the same probe set at the same step. */
export function samePoint(a: { step: number; skill: string; split: string }, b: { step: number; skill: string; split: string }): boolean {
  return a.step === b.step && a.skill === b.skill && a.split === b.split;
}

/** Replaces the item that is the same, or inserts it in step order. Lists are sorted, so the search is short at the end. */
export function put<T extends { step: number }>(list: T[], item: T, same: (other: T) => boolean): void {
  let at = list.length;
  while (at > 0 && (list[at - 1] as T).step > item.step) at -= 1;
  for (let before = at - 1; before >= 0 && (list[before] as T).step === item.step; before -= 1) {
    if (!same(list[before] as T)) continue;
    list[before] = item;
    return;
  }
  list.splice(at, 0, item);
}
