import { probeSetName, type FlagEntry } from "../flagText.ts";

/** Probe sets that a stage could not watch, for one reason. */
export interface Unwatched {
  stage: string;
  names: string[];
  /** The reason without the numbers of each set. */
  reason: string;
}

/** Flags proper, and what could not be watched, gathered by stage and reason: eight equal sentences say less than one. */
export function splitFlags(all: readonly FlagEntry[]): { flags: FlagEntry[]; unwatched: Unwatched[] } {
  const unwatched: Unwatched[] = [];
  for (const { state, stage, skill, split, flag } of all) {
    if (state !== "not-measurable") continue;
    const reason = (flag.reason ?? "The reason was not recorded.").replace(/ \([^)]*\)/g, "");
    const known = unwatched.find((one) => one.stage === stage && one.reason === reason);
    if (known) known.names.push(probeSetName(skill, split));
    else unwatched.push({ stage, names: [probeSetName(skill, split)], reason });
  }
  return { flags: all.filter(({ state }) => state !== "not-measurable"), unwatched };
}
