import type { TraceData } from "../../domain/drift/traceData.ts";

export type { TraceSummaryRow } from "../../protocol/trace.ts";

/** One opened trace file. Reading is lazy: tokens are decoded one row at a time. */
export interface TraceReader extends TraceData {
  readonly path: string;
  /** Bytes of memory that it holds of the file by now, about; 0 where nobody counts. */
  readonly heldBytes?: number;
  /** Reads what `columns` gives in parts, with a pause after each: of a hundred thousand probes it takes a moment. */
  readAhead?(pause: () => Promise<void>): Promise<void>;
  close(): void;
}

export interface TraceStore {
  /** Throws AppError("trace-unreadable" | "newer-schema" | "sqlite-missing"). */
  open(path: string): TraceReader;
}
