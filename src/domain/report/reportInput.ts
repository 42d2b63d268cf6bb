import { compareWith, startReference } from "../drift/driftSelection.ts";
import { summaryDrift } from "../drift/summaryDrift.ts";
import { AppError } from "../../util/errors.ts";
import type { FlagFacts } from "../run/flagCard.ts";
import type { ReplaySummary, ReportFilm, ReportInput } from "./reportModel.ts";
import { driftOfSet, filmOf, mostDrifted, probeSets, withTraces, type ScoredChain } from "./scoredChain.ts";

/** What the caller has read of the replay buffers and ledgers. */
export interface ReplayReading {
  summaries: ReplaySummary[];
  problems: string[];
}

/** Collects what the report shows: one film per skill, the segments of its in-domain probes, replay, remarks. `made`: milliseconds since 1970. */
export function reportInput(data: ScoredChain, replay: ReplayReading, made: number, facts?: FlagFacts): ReportInput {
  const { pipeline, chain, unreadable } = data;
  const films: ReportFilm[] = [];
  const segments: { skill: string; lines: ReturnType<typeof summaryDrift> }[] = [];
  const notes = unreadable.map(({ message }) => message);
  for (const { id: skill } of pipeline.skills) {
    const sets = probeSets(pipeline, skill).map((set) => driftOfSet(data, set, "own"));
    notes.push(...sets.flatMap((set) => set.notes));
    const worst = mostDrifted(sets);
    if (worst) {
      const of = sets.find(({ split }) => split === worst.split)?.table.rows.length ?? 0;
      try {
        const { film, against } = filmOf(data, { skill, split: worst.split, hash: worst.row.hash, occurrence: 0 }, "own");
        films.push({ skill, split: worst.split, against, film, of });
      } catch (error) {
        if (!AppError.is(error)) throw error;
        notes.push(error.message);
      }
    }
    withTraces(data, { skill, split: "id" }, (opened) => segments.push({ skill, lines: summaryDrift(null, compareWith(pipeline, opened, startReference).compared) }));
  }
  notes.push(...replay.problems);
  return {
    pipeline,
    chain,
    films,
    segments,
    replay: replay.summaries,
    notes: [...new Set(notes)],
    made,
    ...(facts !== undefined && { facts }),
    history: data.runs,
    formatTime: (ms) => `${new Date(ms).toISOString().slice(0, 16).replace("T", " ")} UTC`,
  };
}
