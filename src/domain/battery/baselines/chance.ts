import { seededRandom } from "../../statistics/random.ts";
import type { LevelCandidate } from "../candidate.ts";

/**
 * An alarm by chance: in α of the runs, at a random look, for a random skill. Its lead is positive as well wherever the loss comes late:
 * the floor that every claim must beat.
 */
export const chance: LevelCandidate = {
  kind: "level", id: "random", label: "Random time", family: "baseline", needs: "training", rows: null, parameters: {},
  first(run, skill, alpha) {
    const random = seededRandom(textSeed(run.id));
    const [draw, which, when] = [random(), random(), random()];
    if (draw >= alpha || run.skills[Math.floor(which * run.skills.length)] !== skill) return null;
    return 1 + Math.floor(when * (run.looks.length - 1));
  },
};

/** Alarms of another candidate, each moved to a random look: the same skills at the same rate, without its sense of time. */
export function atRandomLooks(alarms: readonly (number | null)[], runId: string, looks: number): (number | null)[] {
  const random = seededRandom(textSeed(`${runId} moved`));
  return alarms.map((look) => {
    const drawn = 1 + Math.floor(random() * (looks - 1));
    return look === null ? null : drawn;
  });
}

/** FNV-1a, 32 bits. */
function textSeed(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193) >>> 0;
  return hash;
}
