import type { FromWeightsPage, ToWeightsPage } from "../../src/protocol/weightsPage.ts";
import type { WeightMeasure } from "../../src/domain/weights/weightGrid.ts";
import { vscodeEndpoint } from "../vscodeEndpoint.ts";

/** The page's only way out: messages to the host, and the one thing it remembers. */
export interface WeightsEndpoint {
  post(message: FromWeightsPage): void;
  onMessage(run: (message: ToWeightsPage) => void): void;
  remembered(): WeightMeasure | null;
  remember(measure: WeightMeasure): void;
}

/** The untyped half of the drift page's endpoint: messages as they are, memory under a key of its own. */
interface Untyped {
  post(message: FromWeightsPage): void;
  onMessage(run: (message: ToWeightsPage) => void): void;
  remembered(): { weights?: WeightMeasure };
  remember(change: { weights: WeightMeasure }): void;
}

/** This page's endpoint inside VS Code. */
export function weightsEndpoint(): WeightsEndpoint {
  const endpoint = vscodeEndpoint() as unknown as Untyped;
  return {
    post: (message) => endpoint.post(message),
    onMessage: (run) => endpoint.onMessage(run),
    remembered: () => endpoint.remembered().weights ?? null,
    remember: (weights) => endpoint.remember({ weights }),
  };
}
