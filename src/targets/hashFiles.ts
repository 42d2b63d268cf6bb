import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, readFile, readdir, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { AppError } from "../util/errors.ts";
import { t } from "../util/l10n.ts";
import { systemWords, writeJson } from "./local.ts";
import { mustBeHere } from "./remote/remoteFolder.ts";

export interface FileHash {
  path: string;
  sha256: string;
  bytes: number;
}

/**
 * SHA-256 of files, streamed. Remembers a file by (path, size, times, inode), so that weights of several GB are read once;
 * the memory is a cache: losing it costs time only.
 */
export class FileHasher {
  private readonly cacheFile: string | null;
  private known: Map<string, { key: string; sha256: string }> | null = null;
  private dirty = false;

  constructor(cacheFile: string | null) {
    this.cacheFile = cacheFile;
  }

  async file(path: string): Promise<FileHash> {
    const info = await stat(path).catch((error: NodeJS.ErrnoException) => {
      throw new AppError("not-found", error.code === "ENOENT" ? t("{0} does not exist: correct the path in seesaw.yaml or create the file.", path) : t("{0} could not be read ({1}): correct the path in seesaw.yaml or create the file.", path, systemWords(error)));
    });
    if (!info.isFile()) throw new AppError("bad-input", t("{0} is not a file: correct the path in seesaw.yaml.", path));
    const key = `${info.size}:${info.mtimeMs}:${info.ctimeMs}:${info.ino}`;
    const cache = await this.load();
    const old = cache.get(path);
    if (old?.key === key) return { path, sha256: old.sha256, bytes: info.size };
    const hash = createHash("sha256");
    for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20 })) hash.update(chunk as Buffer);
    const sha256 = hash.digest("hex");
    cache.set(path, { key, sha256 });
    this.dirty = true;
    return { path, sha256, bytes: info.size };
  }

  /**
   * One hash over what a model folder says: its safetensors, configuration and tokenizer files, by name.
   * AppError("bad-input") for a folder without safetensors, "not-found" where they lie on another machine; nothing is ever
   * unpickled.
   */
  async model(folder: string): Promise<{ sha256: string; files: FileHash[] }> {
    await mustBeHere(folder);
    const names = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
      throw new AppError("not-found", error.code === "ENOENT" ? t("The model folder {0} does not exist: correct `base` in seesaw.yaml, or train the stage before.", folder) : t("The model folder {0} could not be read ({1}): correct `base` in seesaw.yaml, or train the stage before.", folder, systemWords(error)));
    });
    const wanted = names.filter((name) => /\.(safetensors|json|jinja|model|txt)$/.test(name) && name !== "seesaw.json" && name !== "trainer_state.json").sort();
    if (!wanted.some((name) => name.endsWith(".safetensors"))) {
      const pickled = names.filter((name) => /\.(bin|pt|pth|pkl)$/.test(name));
      throw new AppError(
        "bad-input",
        pickled.length > 0
          ? t("{0} has only pickled weights ({1}), which can run code when loaded: convert them to safetensors first.", folder, pickled[0] ?? "")
          : t("{0} has no *.safetensors file: it is no complete Hugging Face model folder.", folder),
      );
    }
    const files: FileHash[] = [];
    for (const name of wanted) files.push(await this.file(join(folder, name)));
    const hash = createHash("sha256");
    files.forEach((file, i) => hash.update(`${wanted[i]}\0${file.sha256}\n`));
    return { sha256: hash.digest("hex"), files };
  }

  /** Writes the memory to disk, if something is new. A failure costs nothing but time. */
  async save(): Promise<void> {
    if (this.cacheFile === null || !this.dirty || this.known === null) return;
    this.dirty = false;
    try {
      await mkdir(dirname(this.cacheFile), { recursive: true });
      await writeJson(this.cacheFile, { v: 1, files: Object.fromEntries([...this.known].slice(-5_000)) });
    } catch {
      // a full or read-only disk: hash again next time
    }
  }

  private async load(): Promise<Map<string, { key: string; sha256: string }>> {
    if (this.known !== null) return this.known;
    try {
      const text = this.cacheFile === null ? "{}" : await readFile(this.cacheFile, "utf8");
      const files = (JSON.parse(text) as { files?: Record<string, { key: string; sha256: string }> }).files ?? {};
      this.known = new Map(Object.entries(files).filter(([, entry]) => typeof entry?.sha256 === "string"));
    } catch {
      this.known = new Map();
    }
    return this.known;
  }
}
