import type { PictureRequest, ToWebview } from "../src/protocol/webview.ts";
import { emptyMemory, type Endpoint, type PageMemory } from "./endpoint.ts";

interface VsCodeApi {
  postMessage(message: unknown): void;
  getState(): unknown;
  setState(state: unknown): void;
}
declare function acquireVsCodeApi(): VsCodeApi;

/** The endpoint inside VS Code; the only call of `acquireVsCodeApi`. */
export function vscodeEndpoint(): Endpoint {
  const api = acquireVsCodeApi();
  const remembered = (): PageMemory => ({ ...emptyMemory, ...(api.getState() as Partial<PageMemory> | undefined) });
  return {
    post: (message) => api.postMessage(message),
    onMessage: (run) => window.addEventListener("message", (event: MessageEvent<ToWebview | PictureRequest>) => run(event.data)),
    remembered,
    remember: (change) => api.setState({ ...remembered(), ...change }),
  };
}
