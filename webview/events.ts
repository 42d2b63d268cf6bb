import type { DriftSnapshot, PictureAbout, PictureRequest } from "../src/protocol/webview.ts";
import type { Endpoint } from "./endpoint.ts";
import { applyMessage, type Store } from "./state.ts";

/** Draws what the page shows. */
export type Painter = (data: DriftSnapshot, about: PictureAbout) => Promise<Uint8Array>;

/** All that comes in: messages of the host become state. A gap in their numbers asks for a new snapshot. */
export function listen(endpoint: Endpoint, store: Store, paint: Painter): void {
  endpoint.onMessage((message) => {
    if (message.type === "picture") return void answerPicture(endpoint, store, paint, message);
    const next = applyMessage(store.state, message);
    if (next === null) return endpoint.post({ type: "resync" });
    store.set(next);
    if (next.data !== null) endpoint.remember({ selection: next.data.selection });
  });
}

/** A picture that fails is told to who asked for it. */
async function answerPicture(endpoint: Endpoint, { state }: Store, paint: Painter, { turn, about }: PictureRequest): Promise<void> {
  try {
    const { data } = state;
    const png = data === null || (data.film === null && data.chart === null) ? null : await paint(data, about);
    endpoint.post({ type: "picture", turn, png, problem: null });
  } catch (error) {
    endpoint.post({ type: "picture", turn, png: null, problem: error instanceof Error ? error.message : String(error) });
  }
}
