import { promptText } from "../../domain/drift/promptText.ts";
import { encodeNumber } from "../../protocol/numbers.ts";
import type { DriftFilm } from "../../protocol/webview.ts";
import { liveFilmstrip, type LivePlace, type LiveScores } from "./liveTraces.ts";

const alternatives = 6;

/** Live scores as the film of the Token Drift page; null when no checkpoint could score the row. */
export function liveFilm(results: readonly LiveScores[], place: LivePlace): DriftFilm | null {
  const strip = liveFilmstrip(results, place);
  if (strip === null) return null;
  const { probe, tokens, frames } = strip;
  return {
    row: probe.row,
    line: place.line,
    prompt: promptText(probe.prompt),
    reference: probe.reference,
    from: 0,
    total: tokens.length,
    tokens: tokens.map(({ display, segment, group }, index) => ({ display, segment, continues: group === tokens[index - 1]?.group })),
    rows: frames.map(({ cells, why, note, delta }, checkpoint) => ({
      checkpoint,
      cells: cells?.map((cell) => ({
        logprob: encodeNumber(cell.logprob),
        change: cell.delta === null ? null : encodeNumber(cell.delta),
        rank: cell.rank + 1,
        entropy: encodeNumber(cell.entropy),
        tokenClass: cell.class,
        coloured: cell.coloured && delta !== null,
        top: cell.alternatives.slice(0, alternatives).map(({ display, probability, isReference }) => ({ text: display, probability, isReference })),
      })) ?? null,
      note: why ?? note,
      check: "not-run",
      generated: null,
      diverges: null,
    })),
  };
}
