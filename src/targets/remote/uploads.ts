import { randomBytes } from "node:crypto";
import { createReadStream } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { AppError } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";
import { FileHasher } from "../hashFiles.ts";
import { sleep } from "../sleep.ts";
import type { Progress, RemoteInput } from "./port.ts";
import { reachOf } from "./reachError.ts";
import type { Station } from "./station.ts";
import { isTrouble } from "./stationErrors.ts";

/** One file that has to be on the target. */
interface Upload {
  local: string;
  remote: string;
  sha256: string;
  bytes: number;
}

/** Files of at most this size go together, up to `together` bytes in one call. */
const small = 256 << 10;
const together = 2 << 20;
/** Items in one question. */
const most = 400;
/** Waits between tries of a copy that was cut, in ms; progress starts them anew. */
const waits = [1_000, 2_000, 4_000, 8_000, 15_000, 30_000];
/** How long a copy that another window makes may stand still. */
const busyMs = 60_000;

/** Names this process, so that the target can tell the rest of our own cut copy from one that another window makes. */
const client = randomBytes(8).toString("hex");

/** Which of the inputs are on the target already. */
export async function inputsThere(station: Station, inputs: readonly RemoteInput[], signal?: AbortSignal): Promise<boolean[]> {
  const there: boolean[] = [];
  for (let at = 0; at < inputs.length; at += most) {
    const items = inputs.slice(at, at + most).map(({ kind, remote, sha256, bytes }) => (kind === "model" ? { path: remote } : { path: remote, sha256, bytes }));
    const answer = await station.call({ verb: "have", items }, { silence: 120_000, ...(signal && { signal }) });
    there.push(...(answer["items"] as { there: boolean }[]).map((item) => item.there));
  }
  return there;
}

/**
 * Copies what is not there yet, each file once under its hash. A cut copy goes on where it stopped, by itself for a while and
 * in any later call. A model's folder gets its name when all of it is there.
 */
export async function uploadInputs(station: Station, inputs: readonly RemoteInput[], progress: Progress, signal?: AbortSignal): Promise<void> {
  const there = await inputsThere(station, inputs, signal);
  const missing = inputs.filter((_, i) => !there[i]);
  const total = missing.reduce((sum, { bytes }) => sum + bytes, 0);
  let before = 0;
  const tell = (name: string, bytes: number) => (copied: number) => progress(t("Copying {0} to {1}", name, station.name), before + Math.min(bytes, copied), total);
  const uploader = new Uploader(station, signal);
  let batch: Upload[] = [];
  const flush = async (): Promise<void> => {
    if (batch.length === 0) return;
    tell(basename(batch[0]?.local ?? ""), 0)(0);
    await uploader.together(batch);
    before += batch.reduce((sum, { bytes }) => sum + bytes, 0);
    batch = [];
  };
  for (const input of missing) {
    if (input.kind === "file" && input.bytes <= small) {
      if (batch.length >= most || batch.reduce((sum, { bytes }) => sum + bytes, input.bytes) > together) await flush();
      batch.push(input);
      continue;
    }
    const told = tell(basename(input.local), input.bytes);
    await (input.kind === "file" ? uploader.file(input, told) : uploader.model(input, told));
    before += input.bytes;
  }
  await flush();
  progress(t("Copied to {0}", station.name), total, total);
}

class Uploader {
  private readonly station: Station;
  private readonly signal: AbortSignal | undefined;

  constructor(station: Station, signal: AbortSignal | undefined) {
    this.station = station;
    this.signal = signal;
  }

  async together(files: readonly Upload[]): Promise<void> {
    const items: { path: string; sha256: string; base64: string }[] = [];
    for (const { local, remote, sha256 } of files) items.push({ path: remote, sha256, base64: (await readHere(local)).toString("base64") });
    await this.patiently(async () => {
      await this.station.call({ verb: "write", items }, this.options());
    }, () => 0, files[0]?.local ?? "");
  }

  async file({ local, remote, sha256, bytes }: Upload, tell: (copied: number) => void): Promise<void> {
    let copied = 0;
    const onCopied = (count: number): void => {
      copied = Math.max(copied, count);
      tell(copied);
    };
    await this.patiently(async () => {
      await this.station.call(
        { verb: "put", path: remote, size: bytes, sha256, client },
        {
          ...this.options(),
          data: (offset) => readFrom(local, offset, bytes),
          onSign: (sign) => onCopied(sign.kind === "go" ? sign.offset : sign.bytes),
        },
      );
      onCopied(bytes);
    }, () => copied, local);
  }

  async model({ local, remote, sha256 }: RemoteInput, tell: (copied: number) => void): Promise<void> {
    const model = await new FileHasher(null).model(local);
    if (model.sha256 !== sha256) throw changedHere(local);
    const files = model.files;
    // Not part of a model's identity, but it says of what kind a checkpoint is.
    const about = join(local, "seesaw.json");
    if (await stat(about).then(() => true, () => false)) files.push(await new FileHasher(null).file(about));
    let before = 0;
    for (const file of files) {
      await this.file({ local: file.path, remote: `${remote}.part/${basename(file.path)}`, sha256: file.sha256, bytes: file.bytes }, (copied) => tell(before + copied));
      before += file.bytes;
    }
    await this.station.call({ verb: "move", from: `${remote}.part`, to: remote }, this.options());
  }

  private options(): { silence: number; signal?: AbortSignal } {
    return { silence: 40_000, ...(this.signal && { signal: this.signal }) };
  }

  /** Tries again after a cut, and while another window copies the same. `copied`: what shows that it gets on. */
  private async patiently(run: () => Promise<void>, copied: () => number, local: string): Promise<void> {
    let failures = 0;
    let best = copied();
    let stood = Date.now();
    let again = true; // a copy that was begun from other bytes is made anew, once
    for (;;) {
      try {
        await run();
        return;
      } catch (error) {
        const now = isTrouble(error, "busy") ? Number(error.fields["bytes"]) : copied();
        if (now > best) [best, failures, stood] = [now, 0, Date.now()];
        if (isTrouble(error, "changed")) {
          if (!again) throw changedHere(local);
          again = false;
        } else if (isTrouble(error, "busy")) {
          if (Date.now() - stood > busyMs) throw error;
          await sleep(1_000, this.signal);
        } else {
          const wait = waits[failures++];
          if (reachOf(error) !== "no-route" || wait === undefined) throw error;
          await sleep(wait * (0.75 + Math.random() / 2), this.signal);
        }
      }
    }
  }
}

async function readHere(path: string): Promise<Buffer> {
  return readFile(path).catch((error: unknown) => {
    throw new AppError("not-found", t("{0} could not be read while it was copied: start the stage again.", path), { cause: error });
  });
}

/** The bytes from `offset` up to the announced size: what is appended meanwhile is not sent. */
async function* readFrom(path: string, offset: number, size: number): AsyncGenerator<Uint8Array> {
  if (offset >= size) return;
  let at = offset;
  try {
    for await (const chunk of createReadStream(path, { start: offset, end: size - 1, highWaterMark: 1 << 18 }) as AsyncIterable<Buffer>) {
      at += chunk.length;
      yield chunk;
    }
  } catch (error) {
    throw new AppError("not-found", t("{0} could not be read while it was copied: start the stage again.", path), { cause: error });
  }
  if (at < size) throw changedHere(path);
}

function changedHere(path: string): AppError {
  return new AppError("bad-input", t("{0} was changed while the run was prepared: start the stage again.", path));
}
