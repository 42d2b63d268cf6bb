import type { FromDatasetPage, ToDatasetPage } from "../../src/protocol/datasets.ts";
import { vscodeEndpoint } from "../vscodeEndpoint.ts";
import type { DatasetEndpoint, Remembered } from "./pageStore.ts";

/** The untyped half of the drift page's endpoint: messages as they are, memory under a key of its own. */
interface Untyped {
  post(message: FromDatasetPage): void;
  onMessage(run: (message: ToDatasetPage) => void): void;
  remembered(): { dataset?: Remembered };
  remember(change: { dataset: Remembered }): void;
}

/** This page's endpoint inside VS Code. */
export function datasetEndpoint(): DatasetEndpoint {
  const endpoint = vscodeEndpoint() as unknown as Untyped;
  return {
    post: (message) => endpoint.post(message),
    onMessage: (run) => endpoint.onMessage(run),
    remembered: () => endpoint.remembered().dataset ?? null,
    remember: (dataset) => endpoint.remember({ dataset }),
  };
}
