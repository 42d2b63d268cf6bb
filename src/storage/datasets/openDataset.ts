import { open } from "node:fs/promises";
import { AppError, messageOf } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";
import { foreignForm, type FileNote } from "../rows/rowSource.ts";
import { PlainFeed, SpillFeed } from "./byteFeed.ts";
import type { DatasetReader, OpenDatasetOptions } from "./datasetReader.ts";
import { LineReader } from "./lineReader.ts";

/** Opens a dataset file by what is in it, whatever its name. AppError("not-found" | "bad-input" | "not-writable"). */
export async function openDataset(path: string, options: OpenDatasetOptions): Promise<DatasetReader> {
  const file = await open(path, "r").catch((error: unknown) => {
    throw new AppError("not-found", t("The dataset file {0} cannot be read: {1}.", path, messageOf(error)), { cause: error });
  });
  let kept = false;
  try {
    if ((await file.stat()).isDirectory()) throw new AppError("not-found", t("{0} is a folder, not a dataset file.", path));
    const head = Buffer.alloc(8);
    const { bytesRead } = await file.read(head, 0, 8, 0);
    const magic = head.toString("latin1", 0, bytesRead);
    if (magic.startsWith("PAR1")) {
      const { ParquetReader } = await import("./parquetReader.ts");
      const reader = await ParquetReader.open(path, file);
      kept = true;
      return reader;
    }
    const packed = magic.startsWith("\x1f\x8b") ? "gzip" : magic.startsWith("\x28\xb5\x2f\xfd") ? "zstd" : null;
    if (packed !== null) return new LineReader(path, packed, await SpillFeed.open(path, packed, options), 0, []);
    const foreign = foreignForm(head.subarray(0, bytesRead));
    if (foreign !== null) throw new AppError("bad-input", t("{0} is {1}.", path, foreign));
    if (path.endsWith(".parquet")) throw new AppError("bad-input", t("{0} is no Parquet file: it does not begin with PAR1.", path));
    const marked = magic.startsWith("\xef\xbb\xbf");
    const notes: FileNote[] = marked ? [{ severity: "info", code: "bom", message: t("the file begins with a byte order mark; it is skipped") }] : [];
    const start = marked ? 3 : 0;
    kept = true;
    return new LineReader(path, "lines", new PlainFeed(file, start), start, notes);
  } finally {
    if (!kept) await file.close();
  }
}
