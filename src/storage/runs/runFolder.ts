import { readdir, readFile, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import type { MirrorFile, RemoteFile } from "../../protocol/remote.ts";
import type { RunSpec } from "../../protocol/runSpec.ts";
import { attemptName, type RunRecord, type UnreadableRun } from "./runStore.ts";
import { statusFromAttempt } from "../../domain/run/attemptStatus.ts";
import { isComplete, parseMirrorFile, parseRemoteFile } from "../../domain/run/remoteFiles.ts";
import { statusFromRemote } from "../../domain/run/remoteStatus.ts";
import { parseRunSpec } from "../../domain/run/runSpecFile.ts";
import { AppError, messageOf } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";
import { JournalTail } from "./journalTail.ts";
import { lookAtAttempt } from "./attemptFolder.ts";
import { CheckedFlags } from "./checkedFlags.ts";

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
  /** Where the run is, if it is on another machine: what its folder here says of processes is of that machine then. */
  remote: RemoteFile | null;
  mirror: MirrorFile | null;
  /** There is a folder of checks on further prompts. */
  checked: boolean;
}

/** A file of the folder, parsed again only when it was replaced. */
class Cached<T> {
  private readonly path: string;
  private readonly parse: (text: string) => T;
  private mark = "";
  private value: T | null = null;

  constructor(path: string, parse: (text: string) => T) {
    this.path = path;
    this.parse = parse;
  }

  /** null when it is not there. */
  async read(): Promise<T | null> {
    try {
      const { ino, size, mtimeMs } = await stat(this.path);
      const mark = `${ino} ${size} ${mtimeMs}`;
      if (mark !== this.mark) [this.value, this.mark] = [this.parse(await readFile(this.path, "utf8")), mark];
      return this.value;
    } catch (error) {
      [this.value, this.mark] = [null, ""];
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
      return null;
    }
  }
}

/** One run folder, read again and again: what has not changed is not read twice. */
export class RunFolder {
  readonly dir: string;
  private readonly journal: JournalTail;
  private readonly spec: Cached<RunSpec>;
  private readonly remote: Cached<RemoteFile>;
  private readonly mirror: Cached<MirrorFile | null>;
  private readonly checked: CheckedFlags;
  private entries: Entries | null = null;
  /** A run that has ended, and when that was seen. */
  private over: { at: number; run: RunRecord } | null = null;
  /** Of a run on another machine whose copy is complete: nothing is written here any more but with a new mirror.json. */
  private complete: { entries: Entries; run: RunRecord } | null = null;

  constructor(dir: string) {
    this.dir = dir;
    this.journal = new JournalTail(join(dir, "journal.jsonl"));
    this.spec = new Cached(join(dir, "run.json"), parseRunSpec);
    this.remote = new Cached(join(dir, "remote.json"), parseRemoteFile);
    this.mirror = new Cached(join(dir, "mirror.json"), parseMirrorFile);
    this.checked = new CheckedFlags(dir);
  }

  /**
   * The run as it is now, why it cannot be shown, or null when it is only just being written. Never throws. `patience`: a
   * run that is over may be shown as it was so many ms ago, because it only changes when somebody resumes it.
   */
  async read(now: number = Date.now() / 1000, patience = 0): Promise<RunRecord | UnreadableRun | null> {
    if (this.over !== null && performance.now() - this.over.at < patience) return this.over.run;
    const run = await this.readNow(now);
    const over = run !== null && "state" in run && run.state.reason !== null && run.state.remote?.complete !== false;
    this.over = over ? { at: performance.now(), run } : null;
    return run;
  }

  private async readNow(now: number): Promise<RunRecord | UnreadableRun | null> {
    try {
      const entries = await this.readEntries(now);
      if (entries === null) return null;
      const run = await this.runOf(entries, now);
      // A check is a person's, and comes after the run's end as well.
      const checked = entries.checked ? await this.checked.read() : null;
      return checked === null ? run : { ...run, checked };
    } catch (error) {
      const message = AppError.is(error) ? error.message : `The folder cannot be read: ${messageOf(error)}.`;
      const id = basename(this.dir);
      return { dir: this.dir, id, message: `${id}: ${message}` };
    }
  }

  private async runOf(entries: Entries, now: number): Promise<RunRecord> {
    if (this.complete?.entries === entries) return this.complete.run;
    const { spec, attempt, remote, mirror } = entries;
    const id = basename(this.dir);
    const journal = await this.journal.read();
    if (remote !== null) {
      const run = { dir: this.dir, id, stage: spec.stage, spec, state: statusFromRemote(journal, remote, mirror, now) };
      this.complete = isComplete(remote, mirror) ? { entries, run } : null;
      return run;
    }
    const settled = journal.reason !== null && attempt <= journal.attempt;
    const state = settled ? journal : await this.withAttempt(journal, attempt, spec, now);
    return { dir: this.dir, id, stage: spec.stage, spec, state };
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
    // The folder of a run on another machine changes with every word from there; run.json does not.
    const spec = await this.spec.read();
    const age = now - stamp / 1000;
    if (spec === null) {
      if (age < writingPatience) return null;
      throw new AppError("run-unreadable", t("It has no run.json: it was not written to the end. Delete the folder."));
    }
    const names = await readdir(this.dir);
    const numbers = names.map((name) => Number(/^attempt-(\d+)$/.exec(name)?.[1] ?? 0));
    const [remote, mirror] = spec.target.kind === "local" ? [null, null] : [await this.remote.read(), await this.mirror.read()];
    const entries = { stamp, spec, attempt: Math.max(0, ...numbers), remote, mirror, checked: names.includes("checked") };
    if (age > stampPatience) this.entries = entries;
    return entries;
  }
}
