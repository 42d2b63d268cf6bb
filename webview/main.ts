import { Actions } from "./actions.ts";
import { DriftApp } from "./app/drift-app.ts";
import { listen } from "./events.ts";
import { drawPicture } from "./picture/drawPicture.ts";
import { Store } from "./state.ts";
import { vscodeEndpoint } from "./vscodeEndpoint.ts";
import { takeWords } from "./words.ts";

takeWords();
const endpoint = vscodeEndpoint();
const store = new Store();
const actions = new Actions(endpoint, store);
window.addEventListener("error", (event) => actions.report(event.error ?? event.message));
window.addEventListener("unhandledrejection", (event) => actions.report(event.reason));
customElements.define("seesaw-drift-app", DriftApp);
const app = document.querySelector<DriftApp>("seesaw-drift-app");
listen(endpoint, store, (data, about) => drawPicture(app ?? document.body, data, about));
if (app !== null) app.connect(store, actions);
actions.ready();
