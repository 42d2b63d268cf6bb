import type { Endpoint } from "./endpoint.ts";
import { applyMessage, type Store } from "./state.ts";

/** All that comes in: messages of the host become state. A gap in their numbers asks for a new snapshot. */
export function listen(endpoint: Endpoint, store: Store): void {
  endpoint.onMessage((message) => {
    const next = applyMessage(store.state, message);
    if (next === null) return endpoint.post({ type: "resync" });
    store.set(next);
    if (next.data !== null) endpoint.remember({ selection: next.data.selection });
  });
}
