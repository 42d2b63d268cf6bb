import assert from "node:assert/strict";
import { appendFileSync, closeSync, existsSync, mkdirSync, openSync, readFileSync, readSync, readdirSync, statSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { test } from "node:test";
import type { FinishReason } from "../../../src/protocol/journal.ts";
import type { RunStatus } from "../../../src/domain/run/runState.ts";
import type { RunRecord } from "../../../src/storage/runs/runStore.ts";
import type { Lab } from "./lab.ts";

/** A line of the fault table. */
export interface FaultRow {
  target: string;
  fault: string;
  seconds: number;
  runs: number;
  runsLost: number;
  events: number;
  eventsLost: number;
  doubled: number;
  /** What the run was in the end. */
  ended: string[];
  /** What could only be done in another way here; said in the table. */
  notes: string[];
  /** The test's own failure. */
  failed: string | null;
}

export interface Expected {
  status: RunStatus;
  /** The tagged reason's kind, where it is not the status. */
  reason?: FinishReason["kind"];
  /** Attempts that were claimed (1). */
  attempts?: number;
  /** Last step that was reported; absent: not compared. */
  step?: number;
  /** Seconds until the end is known here (300). */
  seconds?: number;
  /** false: the end is known, but the target cannot be asked any more (its disk is gone), so no file is compared. */
  compare?: boolean;
}

export interface FaultCase {
  /** Waits for the run's end as the surfaces see it and compares both sides byte for byte. Each run that the fault touched is judged. */
  judge(lab: Lab, id: string, expected: Expected): Promise<RunRecord>;
  /** A sentence for the table. */
  note(text: string): void;
  /** Counts a run that by design was not started (a refused target): it must have left nothing behind. */
  nothingStarted(lab: Lab): Promise<void>;
}

/**
 * Registers one fault as a test of `node:test`, and a line of the table, also when it fails. `skip`: why it cannot be done here; it is
 * said loudly, and counted by `npm run test:targets`.
 */
export function fault(target: string, name: string, body: (the: FaultCase) => Promise<void>, options: { timeout?: number; skip?: string | null } = {}): void {
  const { timeout = 900_000, skip = null } = options;
  void test(`${target}: ${name}`, { timeout, ...(skip !== null && { skip }) }, () =>
    counted(target, name, async (row) => {
      await body({
        judge: (lab, id, expected) => judge(row, lab, id, expected),
        note: (text) => void row.notes.push(text),
        nothingStarted: (lab) => nothingStarted(row, lab),
      });
      assert.ok(row.ended.length > 0, "this fault judged nothing");
    }));
}

/** Runs the body of a fault that judges in its own way; what it writes into the row is a line of the table, also when it fails. */
export async function counted(target: string, name: string, body: (row: FaultRow) => Promise<void>): Promise<void> {
  const row: FaultRow = { target, fault: name, seconds: 0, runs: 0, runsLost: 0, events: 0, eventsLost: 0, doubled: 0, ended: [], notes: [], failed: null };
  const since = Date.now();
  try {
    await body(row);
  } catch (error) {
    row.failed = error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error);
    throw error;
  } finally {
    row.seconds = (Date.now() - since) / 1000;
    const table = process.env["SEESAW_FAULT_TABLE"];
    if (table !== undefined) {
      mkdirSync(dirname(table), { recursive: true });
      appendFileSync(table, `${JSON.stringify(row)}\n`);
    }
  }
}

async function judge(row: FaultRow, lab: Lab, id: string, expected: Expected): Promise<RunRecord> {
  row.runs++;
  row.runsLost++; // until its right end is known here
  const { status, reason = status, attempts = 1, step, seconds = 300, compare = true } = expected;
  const run = await lab.until(id, `${status} (${reason}) with everything copied`, ({ state }) => state.status === status && state.reason?.kind === reason && (!compare || lab.mirrorFile(id).complete), seconds);
  row.runsLost--;
  row.ended.push(status);
  const there = lab.there(id);
  row.doubled += doubledStarts(lab, id);
  assert.equal(row.doubled, 0, `trainings were started twice: ${JSON.stringify(there.starts())}`);
  assert.equal(there.claims(), attempts, "claimed attempts");
  if (step !== undefined) assert.equal(run.state.step, step);
  if (!compare) return run;
  const remote = readFileSync(join(there.dir, "journal.jsonl"));
  const local = readFileSync(join(lab.local(id), "journal.jsonl"));
  const events = remote.toString("utf8").split("\n").filter(Boolean);
  const have = new Set(local.toString("utf8").split("\n"));
  const lost = events.filter((line) => !have.has(line)).length;
  row.events += events.length;
  row.eventsLost += lost;
  assert.equal(lost, 0, "events lost");
  assert.ok(remote.equals(local), `the local journal (${local.length} bytes) is not the target's (${remote.length} bytes), byte for byte`);
  assert.deepEqual(run.state.missingSeqs, [], "the journal's numbers have gaps");
  compareFolders(there.dir, lab.local(id));
  return run;
}

/** How often a training was started although it was running or its attempt had been started before. */
export function doubledStarts(lab: Lab, id: string): number {
  const starts = lab.there(id).starts();
  const perAttempt = new Map<number, number>();
  for (const { attempt } of starts) perAttempt.set(attempt, (perAttempt.get(attempt) ?? 0) + 1);
  return [...perAttempt.values()].reduce((sum, n) => sum + n - 1, 0) + starts.filter(({ others }) => others.length > 0).length;
}

async function nothingStarted(row: FaultRow, lab: Lab): Promise<void> {
  row.ended.push("not started");
  const runs = join(lab.target, "runs");
  const started = existsSync(runs) ? readdirSync(runs).filter((name) => lab.there(name).claims() > 0) : [];
  row.doubled += started.length;
  assert.deepEqual(started, [], "something was started");
  const here = (await lab.runs()).filter((id) => !existsSync(join(lab.local(id), "remote.json")));
  assert.deepEqual(here, [], "a run folder without a place was left");
}

/** Of both sides' files, those that are never copied, or that are only here. */
const remoteOnly = /^checkpoints\/(?!.*seesaw\.json$)|^output\/|\.tmp$|\.part$|(^|\/)\.|heartbeat$|teacher_outputs\.safetensors$|^run\.json$/;
const localOnly = /^(run|remote|remote-plan|mirror)\.json$|(^|\/)\./;

/** Every file of the target's run folder that is copied is here with the same bytes, and nothing else is. */
export function compareFolders(there: string, here: string): void {
  const remote = filesOf(there).filter((file) => !remoteOnly.test(file));
  const local = filesOf(here).filter((file) => !localOnly.test(file));
  assert.deepEqual(local, remote, "the files of the copy");
  for (const file of remote) assert.ok(sameBytes(join(there, file), join(here, file)), `${file} is not the same on both sides`);
}

function filesOf(dir: string): string[] {
  return readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(dir, join(entry.parentPath, entry.name)))
    .sort();
}

/** In blocks: a log may have a gigabyte. */
function sameBytes(a: string, b: string): boolean {
  if (statSync(a).size !== statSync(b).size) return false;
  const [one, other] = [openSync(a, "r"), openSync(b, "r")];
  const [x, y] = [Buffer.alloc(1 << 20), Buffer.alloc(1 << 20)];
  try {
    for (;;) {
      const n = readSync(one, x, 0, x.length, null);
      if (n !== readSync(other, y, 0, y.length, null) || !x.subarray(0, n).equals(y.subarray(0, n))) return false;
      if (n === 0) return true;
    }
  } finally {
    closeSync(one);
    closeSync(other);
  }
}
