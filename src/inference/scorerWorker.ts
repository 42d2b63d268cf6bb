import { parentPort } from "node:worker_threads";
import { AppError, messageOf, type ErrorReason } from "../util/errors.ts";
import { OnnxScorer } from "./onnxScorer.ts";
import type { CheckpointScores, ScoreRequest } from "./scorer.ts";

export type ToScorer = { type: "score"; id: number; request: ScoreRequest } | { type: "cancel"; id: number } | { type: "end" };
/** `scored`: how many checkpoints are done; the others end a request. */
export type FromScorer = { id: number; scored: number } | { id: number; results: CheckpointScores[] } | { id: number; error: { reason: ErrorReason; message: string } };

/** One request after the other: the native library runs on this thread. */
function serve(port: NonNullable<typeof parentPort>): void {
  const scorer = new OnnxScorer();
  const cancelled = new Set<number>();
  let queue: Promise<void> = Promise.resolve();
  const answer = async (id: number, request: ScoreRequest): Promise<void> => {
    try {
      const results = await scorer.score(request, () => cancelled.has(id), (scored) => port.postMessage({ id, scored } satisfies FromScorer));
      port.postMessage({ id, results } satisfies FromScorer);
    } catch (error) {
      port.postMessage({ id, error: { reason: AppError.is(error) ? error.reason : "internal", message: messageOf(error) } } satisfies FromScorer);
    } finally {
      cancelled.delete(id);
    }
  };
  const end = async (): Promise<void> => {
    await scorer.dispose();
    // Without a listener the thread ends by itself: it is never stopped in the middle of a native call.
    port.close();
  };
  port.on("message", (message: ToScorer) => {
    if (message.type === "cancel") cancelled.add(message.id);
    else queue = queue.then(() => (message.type === "end" ? end() : answer(message.id, message.request)));
  });
}

if (parentPort !== null) serve(parentPort);
