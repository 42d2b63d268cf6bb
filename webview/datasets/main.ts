import { takeWords } from "../words.ts";
import { DatasetApp } from "./dataset-app.ts";
import { datasetEndpoint } from "./endpoint.ts";
import { PageStore } from "./pageStore.ts";

takeWords();
const store = new PageStore(datasetEndpoint());
const report = (error: unknown): void => store.send({ type: "error", message: error instanceof Error ? (error.stack ?? error.message) : String(error) });
window.addEventListener("error", (event) => report(event.error ?? event.message));
window.addEventListener("unhandledrejection", (event) => report(event.reason));
customElements.define("seesaw-dataset-app", DatasetApp);
document.querySelector<DatasetApp>("seesaw-dataset-app")?.connect(store);
store.ready();
