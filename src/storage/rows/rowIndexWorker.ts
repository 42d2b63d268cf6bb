import { parentPort } from "node:worker_threads";
import { closeSync, openSync, readSync } from "node:fs";
import { RowScanner } from "../../domain/rows/rowScanner.ts";
import { messageOf } from "../../util/errors.ts";
import { chunkBytes, LineIndexer } from "./lineIndexer.ts";
import { buffersOf } from "./rowPages.ts";
import type { RowBatch } from "./rowPass.ts";

/** A part of a file that begins and ends at line starts. */
export interface WorkerTask {
  path: string;
  start: number;
  end: number;
  turns: boolean;
}

/** Lines count from 0 at the start of the part. */
export type WorkerReply = { batch: RowBatch } | { error: string };

let scanner: RowScanner | undefined;

/** Indexes one part of a file. */
export function indexPart({ path, start, end, turns }: WorkerTask): RowBatch {
  scanner ??= new RowScanner(chunkBytes);
  const indexer = new LineIndexer({ turns, line: 0, offset: start, scanner });
  const fd = openSync(path, "r");
  try {
    for (let at = start; at < end; ) {
      const target = indexer.target();
      const count = readSync(fd, target, 0, Math.min(target.length, end - at), at);
      if (count === 0) throw new Error("the file became shorter while it was read");
      indexer.advance(count);
      at += count;
    }
  } finally {
    closeSync(fd);
  }
  return { pages: indexer.pages.take(true), ...indexer.hasher.takeProblems(), totals: indexer.pages.takeTotals(indexer.line) };
}

parentPort?.on("message", (task: WorkerTask) => {
  try {
    const batch = indexPart(task);
    parentPort?.postMessage({ batch } satisfies WorkerReply, batch.pages.flatMap(buffersOf));
  } catch (error) {
    parentPort?.postMessage({ error: messageOf(error) } satisfies WorkerReply);
  }
});
