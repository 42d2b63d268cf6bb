import type { Chain, ChainRun } from "./chain.ts";

/** The runs whose replay is shown: those that stand for the chain's stages now, then the newest ones that still run. */
export function replayRuns({ checkpoints, newest }: Chain): ChainRun[] {
  const standing = checkpoints.flatMap(({ run, stage }) => (run === null || stage === null ? [] : [run]));
  return [...standing, ...Object.values(newest).filter((run) => !standing.some(({ id }) => id === run.id))];
}
