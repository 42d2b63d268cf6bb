import type { RowPage } from "./rowPages.ts";

/** The columns of a page other than its hashes as one blob: lines, lengths, offsets, formats, last lines; little-endian. */
export function packPage(page: RowPage): Uint8Array {
  const n = page.rows;
  const blob = new Uint8Array(n * (4 + 4 + 8 + 1 + (page.lastLines === null ? 0 : 4)));
  const view = new DataView(blob.buffer);
  for (let i = 0; i < n; i++) {
    view.setUint32(4 * i, page.lines[i] as number, true);
    view.setUint32(4 * (n + i), page.lengths[i] as number, true);
    view.setFloat64(8 * (n + i), page.offsets[i] as number, true);
    if (page.lastLines !== null) view.setUint32(17 * n + 4 * i, page.lastLines[i] as number, true);
  }
  blob.set(page.formats.subarray(0, n), 16 * n);
  return blob;
}

/** The page again; the hashes are used as they are. */
export function unpackPage(rows: number, blob: Uint8Array, hashes: Uint8Array, turns: Uint8Array | null): RowPage {
  const view = new DataView(blob.buffer, blob.byteOffset, blob.length);
  const page: RowPage = {
    rows,
    lines: new Uint32Array(rows),
    lastLines: blob.length > 17 * rows ? new Uint32Array(rows) : null,
    offsets: new Float64Array(rows),
    lengths: new Uint32Array(rows),
    formats: blob.slice(16 * rows, 17 * rows),
    hashes: hashes as Uint8Array<ArrayBuffer>,
    turns: turns as Uint8Array<ArrayBuffer> | null,
  };
  for (let i = 0; i < rows; i++) {
    page.lines[i] = view.getUint32(4 * i, true);
    page.lengths[i] = view.getUint32(4 * (rows + i), true);
    page.offsets[i] = view.getFloat64(8 * (rows + i), true);
    if (page.lastLines !== null) page.lastLines[i] = view.getUint32(17 * rows + 4 * i, true);
  }
  return page;
}
