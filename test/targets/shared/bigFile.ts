import { closeSync, openSync, writeSync } from "node:fs";

/** Writes a file of so many bytes, every block unlike the others, without holding it in memory. */
export function writeBlocks(path: string, bytes: number): void {
  const file = openSync(path, "w");
  try {
    const block = Buffer.alloc(1 << 20);
    for (let at = 0; at < bytes; at += block.length) {
      block.fill(`${at} `);
      writeSync(file, block, 0, Math.min(block.length, bytes - at));
    }
  } finally {
    closeSync(file);
  }
}
