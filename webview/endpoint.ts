import type { DriftSelection, FromWebview, ToWebview } from "../src/protocol/webview.ts";

/** The page's only way out: messages to the host, and the little it remembers while it is hidden. */
export interface Endpoint {
  post(message: FromWebview): void;
  onMessage(run: (message: ToWebview) => void): void;
  remembered(): DriftSelection | null;
  remember(selection: DriftSelection): void;
}
