import { probeSetName, type FlagEntry } from "../run/flagText.ts";

/** Flags proper, and a sentence for each reason why probe sets could not be watched. */
export function splitFlags(all: readonly FlagEntry[]): { flags: FlagEntry[]; unwatched: string[] } {
  const reasons = new Map<string, Map<string, string[]>>();
  for (const { state, stage, skill, split, flag } of all) {
    if (state !== "not-measurable") continue;
    // Without the numbers of each set, and without its full stop: thirty nearly equal sentences say less than one.
    const reason = (flag.reason ?? "the reason was not recorded").replace(/ \([^)]*\)/g, "").replace(/\.$/, "");
    const stages = reasons.get(reason) ?? new Map<string, string[]>();
    stages.set(stage, [...(stages.get(stage) ?? []), probeSetName(skill, split)]);
    reasons.set(reason, stages);
  }
  const unwatched = [...reasons].map(([reason, stages]) => `Not watched (${reason.charAt(0).toLowerCase()}${reason.slice(1)}): ${[...stages].map(([stage, names]) => `in ${stage}: ${bySkill(names)}`).join("; ")}.`);
  return { flags: all.filter(({ state }) => state !== "not-measurable"), unwatched };
}

/** `math, search (OOD)`: a skill of which both splits are named stands without them. */
function bySkill(names: readonly string[]): string {
  const skills = new Map<string, string[]>();
  for (const name of names) {
    const skill = name.slice(0, name.lastIndexOf(" ("));
    skills.set(skill, [...(skills.get(skill) ?? []), name]);
  }
  return [...skills].map(([skill, of]) => (of.length > 1 ? skill : of[0] ?? "")).join(", ");
}
