import type { FlagRecord } from "./runState.ts";
import type { ChainRun } from "./chain.ts";

/** Something about a flag that is worth telling outside the editor: a confirmed loss, or that one has recovered. */
export interface FlagNews {
  run: ChainRun;
  flag: FlagRecord;
  /** Tells it from all others; fit for a file's name. */
  key: string;
}

/** The news of a run, oldest first. A warning that was never confirmed is none, and neither is its recovery. */
export function flagNews(run: ChainRun): FlagNews[] {
  const confirmed = new Set<string>();
  const news: FlagNews[] = [];
  for (const flag of run.state.flagHistory) {
    const recovered = flag.state === "recovered" && confirmed.delete(flag.id);
    const isNew = flag.state === "confirmed" && !confirmed.has(flag.id);
    if (isNew) confirmed.add(flag.id);
    if (isNew || recovered) news.push({ run, flag, key: `${run.id}.${flag.id}.${flag.state}.${flag.step}` });
  }
  return news;
}
