import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import type { MirrorFile, StationFrame } from "../../../../src/protocol/remote.ts";
import { Mirror } from "../../../../src/targets/remote/mirror.ts";
import { localStation } from "../../../../src/targets/remote/station.ts";
import { StationRuns } from "../../../../src/targets/remote/stationRuns.ts";
import { AppError } from "../../../../src/util/errors.ts";
import { LoopRun, python, runner, until } from "./loop.ts";

const made: string[] = [];
after(() => made.forEach((dir) => rmSync(dir, { recursive: true, force: true })));

function folder(): string {
  const dir = mkdtempSync(join(tmpdir(), "seesaw-mirror-"));
  made.push(dir);
  return dir;
}

const piece = (file: string, offset: number, data: string | Uint8Array, mark = "g:1", done = true): StationFrame => ({ kind: "piece", file, offset, data: Buffer.from(data).toString("base64"), mark, done });
const running = { state: "running" as const, now: 1, boot: "b", beat_age: 1, started: null, exit: null };
const text = (dir: string, file: string): string => readFileSync(join(dir, file), "utf8");
const kept = (dir: string): MirrorFile => JSON.parse(text(dir, "mirror.json")) as MirrorFile;
const misfit = (error: unknown): boolean => AppError.is(error, "bad-input");

test("pieces have their place: repeated and overlapping ones are taken once, a gap is refused and nothing of it written", async () => {
  const dir = folder();
  const mirror = await Mirror.open(dir);
  await mirror.apply(piece("journal.jsonl", 0, "one\n"));
  await mirror.apply(piece("journal.jsonl", 0, "one\n"));
  await mirror.apply(piece("journal.jsonl", 2, "e\ntwo\nthr"));
  assert.equal(text(dir, "journal.jsonl"), "one\ntwo\nthr");
  await assert.rejects(mirror.apply(piece("journal.jsonl", 99, "x")), misfit);
  assert.equal(text(dir, "journal.jsonl"), "one\ntwo\nthr");
  await mirror.apply(piece("attempt-0001/agent.log", 0, ""));
  assert.equal(text(dir, "attempt-0001/agent.log"), "");
  await mirror.close();
  assert.deepEqual(kept(dir).files, { "journal.jsonl": { size: 11, mark: "g:1" }, "attempt-0001/agent.log": { size: 0, mark: "g:1" } });
});

test("bytes that come again and are others are no copy: what is here is kept aside and asked for anew", async () => {
  const dir = folder();
  const mirror = await Mirror.open(dir);
  await mirror.apply(piece("out.log", 0, "abcdef"));
  await assert.rejects(mirror.apply(piece("out.log", 2, "XXXX")), misfit);
  assert.equal(text(dir, ".replaced-out.log"), "abcdef");
  assert.deepEqual(mirror.known(), {});
  await mirror.close();
});

test("a file that was replaced there starts anew, and what was copied of it stays beside it", async () => {
  const dir = folder();
  const mirror = await Mirror.open(dir);
  await mirror.apply(piece("out.log", 0, "the old one"));
  await mirror.apply({ kind: "restart", file: "out.log", mark: "g:2" });
  assert.equal(text(dir, ".replaced-out.log"), "the old one");
  await mirror.apply(piece("out.log", 0, "new", "g:2"));
  assert.equal(text(dir, "out.log"), "new");
  await mirror.close();
});

test("whole files are in place only with their last piece; a new version in between begins anew", async () => {
  const dir = folder();
  const mirror = await Mirror.open(dir);
  await mirror.apply(piece("traces/step-1/a.id.trace", 0, "half", "w:1", false));
  assert.ok(!existsSync(join(dir, "traces/step-1/a.id.trace")));
  assert.deepEqual(mirror.known(), {}, "a half of it is nothing");
  await assert.rejects(mirror.apply(piece("traces/step-1/a.id.trace", 4, "other", "w:2", true)), misfit);
  await mirror.apply(piece("traces/step-1/a.id.trace", 0, "ver", "w:2", false));
  await mirror.apply(piece("traces/step-1/a.id.trace", 3, "sion", "w:2", true));
  assert.equal(text(dir, "traces/step-1/a.id.trace"), "version");
  await mirror.apply(piece("traces/step-1/a.id.trace", 0, "next", "w:3", true));
  assert.equal(text(dir, "traces/step-1/a.id.trace"), "next");
  await mirror.close();
});

test("this machine's own files and names that lead out of the folder are never written", async () => {
  const dir = folder();
  writeFileSync(join(dir, "run.json"), "ours");
  const mirror = await Mirror.open(dir);
  for (const file of ["run.json", "remote.json", "remote-plan.json", "mirror.json"]) await mirror.apply(piece(file, 0, "theirs", "w:1"));
  for (const file of ["../escaped", "/etc/escaped", "a//b", ".lease", "traces/../../escaped", "a/.hidden", "nul\0"]) await mirror.apply(piece(file, 0, "theirs", "w:1"));
  await mirror.close();
  assert.equal(text(dir, "run.json"), "ours");
  assert.ok(!existsSync(join(dir, "../escaped")) && !existsSync(join(dir, "remote.json")) && !existsSync(join(dir, "remote-plan.json")));
  assert.deepEqual(readdirSync(dir).sort(), ["mirror.json", "run.json"]);
  assert.deepEqual([mirror.refused.size, mirror.known()["run.json"]], [7, { size: 6, mark: "w:1" }]);
});

test("mirror.json is behind the data: whatever a crash left, the copy goes on from what both vouch for", async () => {
  const dir = folder();
  const crash = async (change: () => void): Promise<MirrorFile["files"]> => {
    rmSync(dir, { recursive: true, force: true });
    mkdirSync(dir);
    const mirror = await Mirror.open(dir);
    await mirror.apply(piece("journal.jsonl", 0, "one\ntwo\n"));
    await mirror.apply(piece("a.json", 0, "{}", "w:1"));
    await mirror.flush();
    change();
    const again = await Mirror.open(dir);
    await again.close();
    return again.known();
  };
  const [journal, whole] = [{ size: 8, mark: "g:1" }, { size: 2, mark: "w:1" }];
  assert.deepEqual(await crash(() => appendFileSync(join(dir, "journal.jsonl"), "thr")), { "journal.jsonl": journal, "a.json": whole });
  assert.equal(text(dir, "journal.jsonl"), "one\ntwo\n", "a piece that nobody vouches for is sent again");
  assert.deepEqual(await crash(() => truncateSync(join(dir, "journal.jsonl"), 5)), { "journal.jsonl": { size: 5, mark: "g:1" }, "a.json": whole });
  assert.deepEqual(await crash(() => truncateSync(join(dir, "a.json"), 0)), { "journal.jsonl": journal });
  assert.deepEqual(await crash(() => rmSync(join(dir, "journal.jsonl"))), { "a.json": whole });
  assert.deepEqual(await crash(() => writeFileSync(join(dir, "mirror.json"), "torn")), {});
  const again = await Mirror.open(dir);
  await again.apply(piece("journal.jsonl", 0, "one\n"));
  assert.equal(text(dir, ".replaced-journal.jsonl"), "one\ntwo\n", "nobody vouches for it, and it may be all there is");
  await again.close();
});

test("a file that somebody cuts or removes here while it is copied gets no hole: it is asked for anew", async () => {
  const dir = folder();
  const mirror = await Mirror.open(dir);
  await mirror.apply(piece("out.log", 0, "abcdef"));
  truncateSync(join(dir, "out.log"), 2);
  await assert.rejects(mirror.apply(piece("out.log", 6, "g")), misfit);
  await mirror.apply(piece("out.log", 0, "abcdefg"));
  assert.equal(text(dir, "out.log"), "abcdefg");
  rmSync(dir, { recursive: true });
  await assert.rejects(mirror.apply(piece("traces/x", 0, "g", "w:1")), (error) => AppError.is(error, "not-found"));
  await assert.rejects(mirror.apply(piece("out.log", 7, "h")));
  assert.ok(!existsSync(dir), "who removed the folder does not want it back");
  await mirror.close();
});

test("a word of the scheduler is void once the run's own machine says something new; an end of the same attempt is not", async () => {
  const mirror = await Mirror.open(folder());
  const probe = (attempt: number, state: "running" | "claimed" | "lost:no-exit-file"): StationFrame => ({ kind: "probe", attempt, probe: { ...running, state } });
  await mirror.apply(probe(1, "claimed"));
  mirror.note({ word: { state: "queued", reason: "Priority" } });
  await mirror.apply(probe(1, "claimed"));
  assert.equal(mirror.file.word?.state, "queued");
  await mirror.apply(probe(1, "running"));
  assert.equal(mirror.file.word, null);
  mirror.note({ word: { state: "ended", end: "time-limit", reason: "TIMEOUT" }, complete: true });
  await mirror.apply(probe(1, "lost:no-exit-file"));
  assert.equal((mirror.file as MirrorFile).word?.state, "ended");
  await mirror.apply(probe(2, "running"));
  assert.deepEqual([mirror.file.word, mirror.file.complete, mirror.file.attempt], [null, false, 2]);
  await mirror.close();
});

test("a holder that lost the lease writes no mirror.json any more", async () => {
  const dir = folder();
  let holds = true;
  const mirror = await Mirror.open(dir, { holds: () => Promise.resolve(holds), everyMs: 0 });
  await mirror.apply(piece("out.log", 0, "a"));
  holds = false;
  await assert.rejects(mirror.flush(), (error) => AppError.is(error, "cancelled"));
  await assert.rejects(mirror.apply(piece("out.log", 1, "b")), (error) => AppError.is(error, "cancelled"));
  assert.ok(!("out.log" in kept(dir).files) || kept(dir).files["out.log"]?.size === 1);
  const next = await Mirror.open(dir);
  assert.equal(next.file.epoch, 2);
  await next.close();
});

test("at the end the copy is held against the target's sums, byte for byte", async () => {
  const dir = folder();
  const mirror = await Mirror.open(dir);
  const sum = (data: string): { size: number; sha256: string } => ({ size: data.length, sha256: createHash("sha256").update(data).digest("hex") });
  await mirror.apply(piece("journal.jsonl", 0, "right"));
  await mirror.apply(piece("out.log", 0, "wrong"));
  assert.deepEqual(await mirror.differing({ "journal.jsonl": sum("right"), "out.log": sum("other"), "ledger.jsonl": sum("missing") }), ["out.log", "ledger.jsonl"]);
  assert.deepEqual(Object.keys(mirror.known()), ["journal.jsonl"]);
  await mirror.close();
});

test("a full disk here loses nothing: it is a sentence, and the copy goes on when there is room", async (context) => {
  const dir = folder();
  const mounted = process.platform === "linux" && process.getuid?.() === 0 && tryMount(dir);
  if (!mounted) return context.skip("no small disk can be mounted here");
  try {
    const all = randomBytes(200_000);
    const frames: StationFrame[] = [];
    for (let offset = 0; offset < all.length; offset += 10_000) frames.push(piece("out.log", offset, all.subarray(offset, offset + 10_000)));
    writeFileSync(join(dir, "ballast"), Buffer.alloc(100_000));
    const mirror = await Mirror.open(dir);
    let taken = 0;
    const feed = async (): Promise<void> => {
      for (const frame of frames.filter((one) => one.kind === "piece" && one.offset >= (mirror.known()["out.log"]?.size ?? 0))) {
        await mirror.apply(frame);
        taken += 1;
      }
    };
    await assert.rejects(feed(), (error) => AppError.is(error, "disk-full") && /the disk is full/.test(error.message));
    assert.ok(taken > 0 && taken < frames.length, `${taken}`);
    const before = mirror.known()["out.log"]?.size ?? 0;
    assert.deepEqual(readFileSync(join(dir, "out.log")).subarray(0, before), all.subarray(0, before));
    rmSync(join(dir, "ballast"));
    await feed();
    await mirror.close();
    assert.deepEqual(readFileSync(join(dir, "out.log")), all);
    assert.equal(kept(dir).files["out.log"]?.size, all.length);
  } finally {
    execFileSync("umount", [dir]);
  }
});

function tryMount(dir: string): boolean {
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=256k", "tmpfs", dir], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

test("a process that is killed at any moment leaves a copy that the next one completes, byte for byte", { timeout: 300_000 }, async (context) => {
  const run = new LoopRun();
  context.after(() => run.dispose());
  mkdirSync(join(run.there, "traces/step-000001"), { recursive: true });
  let written = 0;
  const grow = (): void => {
    written += 1;
    appendFileSync(join(run.there, "journal.jsonl"), `{"seq":${written},"text":"${randomBytes(300).toString("hex")}"}\n`);
    appendFileSync(join(run.there, "out.log"), randomBytes(20_000));
    writeFileSync(join(run.there, "traces/step-000001", `s${written % 7}.id.trace`), randomBytes(50_000));
  };
  for (let round = 0; round < 4; round += 1) {
    const child = spawn(process.execPath, [join(import.meta.dirname, "mirrorChild.ts"), runner, python, run.there, run.local], { stdio: ["ignore", "pipe", "inherit"] });
    const gone = new Promise((resolve) => child.once("close", resolve));
    await new Promise((resolve) => child.stdout.once("data", resolve));
    const size = run.journalHere().length;
    const growing = setInterval(grow, 5);
    await until("something new was copied", () => run.journalHere().length > size, 120);
    await new Promise((resolve) => setTimeout(resolve, 100 * round));
    child.kill("SIGKILL");
    clearInterval(growing);
    await gone;
  }
  const runs = new StationRuns(localStation(runner, python), runner);
  const mirror = await Mirror.open(run.local);
  const before = mirror.known();
  let [sent, restarts] = [0, 0];
  const stop = new AbortController();
  await runs.follow({ dir: run.there, runner }, before, async (frame) => {
    await mirror.apply(frame);
    if (frame.kind === "piece" && frame.file === "out.log") sent += Buffer.byteLength(frame.data, "base64");
    if (frame.kind === "restart") restarts += 1;
    if (frame.kind === "caught-up") stop.abort();
  }, stop.signal);
  await mirror.close();
  assert.deepEqual(run.different(), []);
  assert.equal(restarts, 0);
  assert.equal(sent, readFileSync(join(run.there, "out.log")).length - (before["out.log"]?.size ?? 0), "only the missing bytes came");
  assert.equal(run.journalHere().split("\n").length - 1, written);
});
