/**
 * How much of a series' level may be spent by a look: the share of the planned steps (spending linear in time, Lan & DeMets
 * 1983). Where the end is not known (`lastStep` null: a command's checkpoints) the j-th look, from 1, has 1 − 1/(j+1): the
 * steps between sum to 1 however many looks follow.
 */
export function lookProgress(step: number, lastStep: number | null, j: number): number {
  return lastStep === null ? 1 - 1 / (j + 1) : Math.min(1, step / lastStep);
}
