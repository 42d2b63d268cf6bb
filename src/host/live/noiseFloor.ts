import type { TraceMeta } from "../../protocol/trace.ts";
import type { TraceStore } from "../../storage/traces/traceStore.ts";

/** What scoring the same twice changes, in nats: as the project's own runs measured it. */
export type NoiseFloor = NonNullable<TraceMeta["noise"]>;

/** The largest noise that the traces recorded; null when none did, or none can be read. */
export async function noiseFloor(paths: readonly string[], traces: () => Promise<TraceStore>): Promise<NoiseFloor | null> {
  try {
    const store = await traces();
    const found = paths.flatMap((path) => noiseOf(store, path) ?? []);
    return found.length === 0 ? null : { nll_q99: Math.max(...found.map((one) => one.nll_q99)), token_q99: Math.max(...found.map((one) => one.token_q99)) };
  } catch {
    // Without SQLite rows are scored all the same, and the page says that no floor is known.
    return null;
  }
}

function noiseOf(store: TraceStore, path: string): NoiseFloor | undefined {
  try {
    const trace = store.open(path);
    try {
      return trace.meta.noise;
    } finally {
      trace.close();
    }
  } catch {
    // Token Drift says of a recorded run which of its traces is damaged.
    return undefined;
  }
}
