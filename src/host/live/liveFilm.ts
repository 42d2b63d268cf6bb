import type { Filmstrip } from "../../domain/drift/filmstrip.ts";
import { promptText } from "../../domain/drift/promptText.ts";
import { encodeNumber } from "../../protocol/numbers.ts";
import type { DriftFilm } from "../../protocol/webview.ts";

const alternatives = 6;
/** Tokens that are sent at once, as of a recorded film. */
const filmLimit = 400;

/** A strip of live scores as the film of the Token Drift page. `token`: what a long one is cut around; null: the one that fell most. */
export function liveFilm({ probe, tokens, frames }: Filmstrip, row: number, token: number | null): DriftFilm {
  const from = Math.max(0, Math.min((token ?? worstToken(frames)) - filmLimit / 2, tokens.length - filmLimit));
  const shown = tokens.slice(from, from + filmLimit);
  return {
    row,
    line: probe.line,
    prompt: promptText(probe.prompt),
    reference: probe.reference,
    from,
    total: tokens.length,
    tokens: shown.map(({ display, segment, group }, index) => ({ display, segment, continues: group === tokens[from + index - 1]?.group })),
    rows: frames.map(({ cells, why, note, delta }, checkpoint) => ({
      checkpoint,
      cells: cells?.slice(from, from + filmLimit).map((cell) => ({
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

function worstToken(frames: Filmstrip["frames"]): number {
  let [worst, fall] = [0, 0];
  for (const { cells } of frames) {
    for (const [index, { delta }] of cells?.entries() ?? []) if (delta !== null && delta < fall) [worst, fall] = [index, delta];
  }
  return worst;
}
