import { parseJson } from "../../domain/rows/jsonText.ts";
import { splitTurns } from "../../domain/rows/turns.ts";
import type { Filmstrip } from "../../domain/drift/filmstrip.ts";
import type { Scorer } from "../../inference/scorer.ts";
import { requestFor, type LivePlan } from "./livePlan.ts";
import { liveFilmstrip } from "./liveTraces.ts";
import type { NoiseFloor } from "./noiseFloor.ts";

/** A row of a dataset file as it stands in the editor. */
export interface EditedRow {
  /** From 1. */
  line: number;
  text: string;
}

/** A row that was scored, or is about to be. */
export interface LiveRow {
  line: number;
  /** The first words of its prompt. */
  prompt: string;
  /** Null: not scored yet, or no checkpoint could score it. */
  strip: Filmstrip | null;
  /** Why there is no strip, else what is worth knowing of how the row became tokens. */
  notes: string[];
}

const mostWords = 80;

/** A row before it is scored. */
export function unscored({ line, text }: EditedRow): LiveRow {
  return { line, prompt: firstWords(text), strip: null, notes: [] };
}

/** Scores rows one after the other. Throws what the scorer throws; what one checkpoint lacks is in its frame. */
export async function scoreRows(rows: readonly EditedRow[], plan: LivePlan, noise: Promise<NoiseFloor | null>, scorer: Scorer, signal: AbortSignal, onScored: (done: number) => void): Promise<LiveRow[]> {
  const done: LiveRow[] = [];
  for (const row of rows) {
    const before = done.length * plan.checkpoints.length;
    const scores = await scorer.score(requestFor(plan, row.text), signal, (count) => onScored(before + count));
    const results = scores.map((one, index) => ({ ...one, against: plan.checkpoints[index]?.against ?? null }));
    const strip = liveFilmstrip(results, { line: row.line, noise: await noise });
    const notes = new Set(results.flatMap(({ scored, why }) => (strip === null ? why : scored?.note) ?? []));
    done.push({ ...unscored(row), strip, notes: [...notes] });
  }
  return done;
}

/** Of the last turn before the answer; of a plain text its own. */
function firstWords(text: string): string {
  const parsed = parseJson(text);
  if (!parsed.ok) return "";
  const { prompt, answer } = splitTurns(parsed.value);
  const turn = prompt.at(-1) ?? answer;
  const words = Array.from(typeof turn?.text === "string" ? turn.text.slice(0, 4 * mostWords).replace(/\s+/g, " ").trim() : "");
  return words.length > mostWords ? `${words.slice(0, mostWords).join("").trimEnd()}…` : words.join("");
}
