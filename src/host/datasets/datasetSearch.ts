import type { FromDatasetPage, ToDatasetPage } from "../../protocol/datasets.ts";
import type { DatasetReader } from "../../storage/datasets/datasetReader.ts";
import { messageOf } from "../../util/errors.ts";

type Find = Extract<FromDatasetPage, { type: "find" }>;

/** The search of one page: one at a time, from a row to the end of the file and on from the other end. */
export class DatasetSearch {
  private readonly post: (message: ToDatasetPage) => void;
  private running: AbortController | null = null;
  private told = 0;

  constructor(post: (message: ToDatasetPage) => void) {
    this.post = post;
  }

  find(reader: DatasetReader | null, request: Find): void {
    this.cancel();
    if (reader === null || request.text === "") return this.post({ type: "found", turn: request.turn, row: null, wrapped: false, problem: null });
    const running = new AbortController();
    this.running = running;
    this.run(reader, request, running.signal).then(
      (found) => {
        if (!running.signal.aborted) this.post({ type: "found", turn: request.turn, ...found, problem: null });
      },
      (error: unknown) => {
        if (!running.signal.aborted) this.post({ type: "found", turn: request.turn, row: null, wrapped: false, problem: messageOf(error) });
      },
    );
  }

  cancel(): void {
    this.running?.abort();
    this.running = null;
  }

  private async run(reader: DatasetReader, { turn, text, matchCase, from, direction }: Find, signal: AbortSignal): Promise<{ row: number | null; wrapped: boolean }> {
    const onProgress = (share: number): void => {
      if (signal.aborted || Date.now() - this.told < 100) return;
      this.told = Date.now();
      this.post({ type: "finding", turn, share });
    };
    const inside = from >= 0 && from < reader.status().rows;
    if (inside) {
      const row = await reader.find({ text, matchCase, from, direction }, { signal, onProgress });
      if (row !== null) return { row, wrapped: false };
    }
    const other = direction === 1 ? 0 : reader.status().rows - 1;
    const row = other < 0 ? null : await reader.find({ text, matchCase, from: other, direction }, { signal, onProgress });
    return { row, wrapped: row !== null };
  }
}
