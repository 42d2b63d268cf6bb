import { takeWords } from "../words.ts";
import { weightsEndpoint } from "./endpoint.ts";
import { WeightsApp } from "./weights-app.ts";

takeWords();
const endpoint = weightsEndpoint();
const report = (error: unknown): void => endpoint.post({ type: "error", message: error instanceof Error ? (error.stack ?? error.message) : String(error) });
window.addEventListener("error", (event) => report(event.error ?? event.message));
window.addEventListener("unhandledrejection", (event) => report(event.reason));
customElements.define("seesaw-weights-app", WeightsApp);
const app = document.querySelector<WeightsApp>("seesaw-weights-app");
app?.connect(endpoint);
endpoint.onMessage(({ state }) => {
  if (app !== null) app.data = state;
});
endpoint.post({ type: "ready" });
