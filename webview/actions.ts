import { emptySelection, type DriftAction, type DriftSelection } from "../src/protocol/webview.ts";
import type { Endpoint } from "./endpoint.ts";
import type { Store, TokenFocus } from "./state.ts";

/** All that goes out: elements call these and never post themselves. */
export class Actions {
  private readonly endpoint: Endpoint;
  private readonly store: Store;

  constructor(endpoint: Endpoint, store: Store) {
    this.endpoint = endpoint;
    this.store = store;
  }

  ready(): void {
    this.endpoint.post({ type: "ready", selection: this.endpoint.remembered() });
  }

  /** Changes part of the selection; a film is cut anew unless it says where. It is shown at once; the data follow from the host. */
  select(change: Partial<DriftSelection>): void {
    const { state } = this.store;
    const selection = { ...(state.data?.selection ?? emptySelection), token: null, ...change };
    const choice = { turn: (state.choice?.turn ?? 0) + 1, selection };
    this.store.set({ ...state, choice, data: state.data === null ? null : { ...state.data, selection } });
    this.endpoint.remember(selection);
    this.endpoint.post({ type: "select", ...choice });
  }

  focusToken(focus: TokenFocus): void {
    this.store.set({ ...this.store.state, focus });
  }

  openRow(row: number): void {
    this.endpoint.post({ type: "openRow", row });
  }

  run(action: DriftAction): void {
    this.endpoint.post({ type: "run", action });
  }

  report(error: unknown): void {
    this.endpoint.post({ type: "error", message: error instanceof Error ? (error.stack ?? error.message) : String(error) });
  }
}
