import type { DriftSelection, DriftSnapshot, ToWebview } from "../src/protocol/webview.ts";
import { emptyMemory, type PageMemory } from "./endpoint.ts";

/** What the page shows. Everything comes from the host, except which token has the focus and how the list is looked through. */
export interface PageState {
  /** Number of the last message applied; -1 before the first snapshot. */
  seq: number;
  data: DriftSnapshot | null;
  focus: TokenFocus;
  /** The page's last choice and its number: an answer to an earlier one must not take it back. */
  choice: { turn: number; selection: DriftSelection } | null;
  /** Words the listed prompts must hold. */
  filter: string;
  /** What is remembered of how the page is looked at. */
  view: Omit<PageMemory, "selection">;
}

/** Which token is looked at: an index into `film.tokens`, and one into `film.rows`. */
export interface TokenFocus {
  row: number;
  token: number;
}

export const initialState: PageState = { seq: -1, data: null, focus: { row: 0, token: 0 }, choice: null, filter: "", view: { chartOpen: emptyMemory.chartOpen, order: emptyMemory.order } };

/** Applies a message of the host. `null`: a message is missing in between, so a new snapshot must be asked for. */
export function applyMessage(state: PageState, message: ToWebview): PageState | null {
  if (message.type === "snapshot") return withData(state, message.seq, message.state);
  if (state.data === null || message.seq !== state.seq + 1) return null;
  return withData(state, message.seq, { ...state.data, ...message.patch });
}

/** Another prompt, or another part of it: the focus goes to the token that changed most. */
function withData(state: PageState, seq: number, told: DriftSnapshot): PageState {
  const data = state.choice !== null && told.turn < state.choice.turn ? { ...told, selection: state.choice.selection } : told;
  const before = state.data?.film;
  const film = data.film;
  const together = (state.data?.live == null) === (data.live === null);
  const same = film !== null && together && before?.row === film.row && before.line === film.line && before.from === film.from && before.tokens.length === film.tokens.length && before.rows.length === film.rows.length;
  return { ...state, seq, data, focus: same || film === null ? state.focus : worstToken(data) };
}

/** The token that fell most, of all or of one row, so that the page opens on what matters. */
export function worstToken(data: DriftSnapshot, only?: number): TokenFocus {
  let best: TokenFocus = { row: only ?? Math.max(0, (data.film?.rows.length ?? 1) - 1), token: 0 };
  let fall = 0;
  data.film?.rows.forEach((row, index) =>
    row.cells?.forEach((cell, token) => {
      if (only !== undefined && index !== only) return;
      if (typeof cell.change === "number" && cell.change < fall) {
        fall = cell.change;
        best = { row: index, token };
      }
    }),
  );
  return best;
}

/** Holds the state and tells the page when it changed. */
export class Store {
  private value: PageState = initialState;
  private readonly listeners = new Set<() => void>();

  get state(): PageState {
    return this.value;
  }

  set(value: PageState): void {
    this.value = value;
    for (const listener of this.listeners) listener();
  }

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}
