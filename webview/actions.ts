import { emptySelection, type DriftAction, type DriftSelection } from "../src/protocol/webview.ts";
import type { Endpoint, PageMemory } from "./endpoint.ts";
import { worstToken, type Store, type TokenFocus } from "./state.ts";

/** All that goes out: elements call these and never post themselves. */
export class Actions {
  private readonly endpoint: Endpoint;
  private readonly store: Store;

  constructor(endpoint: Endpoint, store: Store) {
    this.endpoint = endpoint;
    this.store = store;
  }

  ready(): void {
    const { selection, ...view } = this.endpoint.remembered();
    this.store.set({ ...this.store.state, view });
    this.endpoint.post({ type: "ready", selection });
  }

  /** Changes part of the selection; a film is cut anew unless it says where. It is shown at once; the data follow from the host. */
  select(change: Partial<DriftSelection>): void {
    const { state } = this.store;
    const live = state.data?.live ?? null;
    // Rows scored live are none of the recorded selection, which stays as it is.
    if (live !== null) return this.endpoint.post({ type: "lookLive", row: change.row ?? live.row, token: change.token ?? null });
    const selection = { ...(state.data?.selection ?? emptySelection), token: null, ...change };
    const choice = { turn: (state.choice?.turn ?? 0) + 1, selection };
    this.store.set({ ...state, choice, data: state.data === null ? null : { ...state.data, selection } });
    this.endpoint.remember({ selection });
    this.endpoint.post({ type: "select", ...choice });
  }

  focusToken(focus: TokenFocus): void {
    this.store.set({ ...this.store.state, focus });
  }

  /** Looks at a checkpoint: at the token that fell most under it. */
  lookAt(checkpoint: number): void {
    const { data } = this.store.state;
    const row = data?.film?.rows.findIndex((one) => one.checkpoint === checkpoint) ?? -1;
    if (data !== null && row >= 0) this.focusToken(worstToken(data, row));
  }

  /** Looks through the list: nothing of it is asked of the host. */
  filter(filter: string): void {
    this.store.set({ ...this.store.state, filter });
  }

  /** Changes how the page is looked at, and remembers it. */
  view(change: Partial<Omit<PageMemory, "selection">>): void {
    this.store.set({ ...this.store.state, view: { ...this.store.state.view, ...change } });
    this.endpoint.remember(change);
  }

  openRow(row: number): void {
    this.endpoint.post({ type: "openRow", row });
  }

  /** Back from rows scored live to the recorded prompts. */
  leaveLive(): void {
    if (this.store.state.data?.live != null) this.endpoint.post({ type: "leaveLive" });
  }

  run(action: DriftAction): void {
    this.endpoint.post({ type: "run", action });
  }

  report(error: unknown): void {
    this.endpoint.post({ type: "error", message: error instanceof Error ? (error.stack ?? error.message) : String(error) });
  }
}
