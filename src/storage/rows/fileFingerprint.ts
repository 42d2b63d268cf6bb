import { createHash } from "node:crypto";
import { closeSync, openSync, readSync } from "node:fs";

const edgeBytes = 64 * 1024;
const sampleBytes = 4 * 1024;
const samples = 14;

/**
 * SHA-256 over the length, the first and the last 64 KiB and 14 samples between them of the first `length` bytes of a file.
 * Equal fingerprints mean that the file only grew; a change inside a large file that keeps all of these is missed
 * when the file grows at the same time (a change without growth is seen by its time).
 */
export function prefixFingerprint(path: string, length: number): string {
  const hash = createHash("sha256").update(String(length));
  const buffer = Buffer.alloc(edgeBytes);
  const fd = openSync(path, "r");
  try {
    const take = (at: number, count: number): void => void hash.update(buffer.subarray(0, readSync(fd, buffer, 0, count, at)));
    take(0, Math.min(edgeBytes, length));
    if (length > 2 * edgeBytes + samples * sampleBytes) {
      for (let i = 1; i <= samples; i++) take(Math.floor((length / (samples + 1)) * i), sampleBytes);
    }
    if (length > edgeBytes) take(Math.max(edgeBytes, length - edgeBytes), Math.min(edgeBytes, length - edgeBytes));
  } finally {
    closeSync(fd);
  }
  return hash.digest("hex");
}
