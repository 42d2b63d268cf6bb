import type { ProbeSpec } from "../../protocol/runSpec.ts";

/** A stage that says nothing is looked at so often, but not more often than every so many steps. */
const looksByDefault = 20;
const leastSpacing = 20;
/** The first early point; the next ones are twice as far each. Losses of alignment come in the first steps of a stage. */
const firstEarly = 10;

/**
 * The steps after 0 at which the probes of a stage are scored, ascending; the last step always. The rule of `probe_steps` in
 * `runner/seesaw_runner/probing/callback.py`; both are tested against test/fixtures/protocol/looks.json.
 */
export function lookSteps(every: ProbeSpec["every"], total: number): number[] {
  const steps = Array.isArray(every) ? every : every === "log" ? doubling([1, 2], 3, total) : regular(every ?? Math.max(leastSpacing, Math.ceil(total / looksByDefault)), total);
  return [...new Set([...steps.filter((step) => step > 0 && step < total), total])].sort((a, b) => a - b);
}

/** Every n-th step, and the early points below n: from there on the regular ones are at least as dense. */
function regular(every: number, total: number): number[] {
  const steps = doubling([], firstEarly, Math.min(every, total));
  for (let step = every; step < total; step += every) steps.push(step);
  return steps;
}

function doubling(steps: number[], from: number, below: number): number[] {
  for (let step = from; step < below; step *= 2) steps.push(step);
  return steps;
}
