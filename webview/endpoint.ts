import type { DriftSelection, FromWebview, PictureRequest, ToWebview } from "../src/protocol/webview.ts";
import type { PromptOrder } from "./promptOrder.ts";

/** What the page keeps while it is hidden, and over a reload of the window. */
export interface PageMemory {
  selection: DriftSelection | null;
  /** Null: the person has not decided; the layout says. */
  chartOpen: boolean | null;
  order: PromptOrder;
}

export const emptyMemory: PageMemory = { selection: null, chartOpen: null, order: "drift" };

/** The page's only way out: messages to the host, and the little it remembers. */
export interface Endpoint {
  post(message: FromWebview): void;
  onMessage(run: (message: ToWebview | PictureRequest) => void): void;
  remembered(): PageMemory;
  remember(change: Partial<PageMemory>): void;
}
