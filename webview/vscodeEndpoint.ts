import type { DriftSelection, ToWebview } from "../src/protocol/webview.ts";
import type { Endpoint } from "./endpoint.ts";

interface VsCodeApi {
  postMessage(message: unknown): void;
  getState(): unknown;
  setState(state: unknown): void;
}
declare function acquireVsCodeApi(): VsCodeApi;

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
