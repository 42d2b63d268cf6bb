import { readdir, readFile, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import type { RunSpec } from "../../protocol/runSpec.ts";
import { attemptName, type RunRecord, type UnreadableRun } from "./runStore.ts";
import { statusFromAttempt } from "../../domain/run/attemptStatus.ts";
import { parseRunSpec } from "../../domain/run/runSpecFile.ts";
import { AppError, messageOf } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";
import { JournalTail } from "./journalTail.ts";
import { lookAtAttempt } from "./attemptFolder.ts";

/** A folder this young without a run.json is being written, in seconds. */
const writingPatience = 5;

/** A change of a folder's time stamp may be coarser than this, in seconds: younger ones are looked into again. */
const stampPatience = 2;

/** What the entries of the folder say; it holds as long as the folder's own time stamp does. */
interface Entries {
  stamp: number;
  spec: RunSpec;
  /** The highest number of an attempt folder; 0 without one. */
  attempt: number;
}

/** One run folder, read again and again: what has not changed is not read twice. */
export class RunFolder {
  readonly dir: string;
  private readonly journal: JournalTail;
  private entries: Entries | null = null;

  constructor(dir: string) {
    this.dir = dir;
    this.journal = new JournalTail(join(dir, "journal.jsonl"));
  }

  /** The run as it is now, why it cannot be shown, or null when it is only just being written. Never throws. */
  async read(now: number = Date.now() / 1000): Promise<RunRecord | UnreadableRun | null> {
    const id = basename(this.dir);
    try {
      const entries = await this.readEntries(now);
      if (entries === null) return null;
      const { spec, attempt } = entries;
      const journal = await this.journal.read();
      const settled = journal.reason !== null && attempt <= journal.attempt;
      const state = settled ? journal : await this.withAttempt(journal, attempt, spec, now);
      return { dir: this.dir, id, stage: spec.stage, spec, state };
    } catch (error) {
      const message = AppError.is(error) ? error.message : `The folder cannot be read: ${messageOf(error)}.`;
      return { dir: this.dir, id, message: `${id}: ${message}` };
    }
  }

  private async withAttempt(journal: RunRecord["state"], attempt: number, spec: RunSpec, now: number): Promise<RunRecord["state"]> {
    if (attempt === 0) return statusFromAttempt(journal, { state: "absent", now, boot: "", beat_age: null, started: null, exit: null }, { age: now - spec.created });
    const { probe, ...facts } = await lookAtAttempt(join(this.dir, attemptName(attempt)), now);
    // An exit.json that came between the two readings means that the journal has its last event now.
    const fresh = probe?.state === "exited" ? await this.journal.read() : journal;
    return statusFromAttempt(fresh, probe, { ...facts, attempt });
  }

  /** run.json and the attempts; both come and go by renames, which the folder's time stamp shows. */
  private async readEntries(now: number): Promise<Entries | null> {
    const folder = await stat(this.dir).catch(() => null);
    if (folder === null) return null;
    const stamp = folder.mtimeMs;
    if (this.entries?.stamp === stamp) return this.entries;
    this.entries = null;
    const text = await readFile(join(this.dir, "run.json"), "utf8").catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return null;
      throw error;
    });
    const age = now - stamp / 1000;
    if (text === null) {
      if (age < writingPatience) return null;
      throw new AppError("run-unreadable", t("It has no run.json: it was not written to the end. Delete the folder."));
    }
    const numbers = (await readdir(this.dir)).map((name) => Number(/^attempt-(\d+)$/.exec(name)?.[1] ?? 0));
    const entries = { stamp, spec: parseRunSpec(text), attempt: Math.max(0, ...numbers) };
    if (age > stampPatience) this.entries = entries;
    return entries;
  }
}
