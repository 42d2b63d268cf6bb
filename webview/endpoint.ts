import type { DriftSelection, FromWebview, ToWebview } from "../src/protocol/webview.ts";

interface VsCodeApi {
  postMessage(message: unknown): void;
  getState(): unknown;
  setState(state: unknown): void;
}
declare function acquireVsCodeApi(): VsCodeApi;

/** The page's only way out: messages to the host, and the little it remembers while it is hidden. */
export interface Endpoint {
  post(message: FromWebview): void;
  onMessage(run: (message: ToWebview) => void): void;
  remembered(): DriftSelection | null;
  remember(selection: DriftSelection): void;
}

/** The endpoint inside VS Code; the only call of `acquireVsCodeApi`. */
export function vscodeEndpoint(): Endpoint {
  const api = acquireVsCodeApi();
  return {
    post: (message) => api.postMessage(message),
    onMessage: (run) => window.addEventListener("message", (event: MessageEvent<ToWebview>) => run(event.data)),
    remembered: () => (api.getState() as { selection?: DriftSelection } | undefined)?.selection ?? null,
    remember: (selection) => api.setState({ selection }),
  };
}
