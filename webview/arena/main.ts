import { takeWords } from "../words.ts";
import { ArenaApp } from "./arena-app.ts";
import { arenaEndpoint } from "./endpoint.ts";

takeWords();
const endpoint = arenaEndpoint();
const report = (error: unknown): void => endpoint.post({ type: "error", message: error instanceof Error ? (error.stack ?? error.message) : String(error) });
window.addEventListener("error", (event) => report(event.error ?? event.message));
window.addEventListener("unhandledrejection", (event) => report(event.reason));
customElements.define("seesaw-arena-app", ArenaApp);
const app = document.querySelector<ArenaApp>("seesaw-arena-app");
app?.connect(endpoint);
endpoint.onMessage(({ state }) => {
  if (app !== null) app.data = state;
});
endpoint.post({ type: "ready" });
