import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, test } from "node:test";
import type { MirrorFile, StationFrame } from "../../../../src/protocol/remote.ts";
import { ReachError } from "../../../../src/targets/remote/reachError.ts";
import { runnerArchive, sendRunner } from "../../../../src/targets/remote/runnerArchive.ts";
import { bootstrap, localStation, PipeStation } from "../../../../src/targets/remote/station.ts";
import { isTrouble } from "../../../../src/targets/remote/stationErrors.ts";
import { runnerPackages, StationRuns } from "../../../../src/targets/remote/stationRuns.ts";
import { inputsThere, uploadInputs } from "../../../../src/targets/remote/uploads.ts";
import { AppError } from "../../../../src/util/errors.ts";

const runnerDir = resolve("runner");
const python = resolve(".venv/bin/python");
const top = mkdtempSync(join(tmpdir(), "seesaw-station-"));
const station = localStation(runnerDir, python);
after(() => rmSync(top, { recursive: true, force: true }));

const sha = (bytes: Uint8Array | string): string => createHash("sha256").update(bytes).digest("hex");
const wait = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));
const gone = (pid: number): boolean => {
  try {
    return /^\d+ \(.*\) [ZX]/s.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return true;
  }
};

async function until(what: string, condition: () => boolean, ms = 30_000): Promise<void> {
  for (const end = Date.now() + ms; !condition(); await wait(20)) if (Date.now() > end) assert.fail(`not within ${ms} ms: ${what}`);
}

/** The processes of this machine whose parent is this one and that are stations. */
function stations(): number[] {
  const found: number[] = [];
  for (const task of readFileSync(`/proc/self/task/${process.pid}/children`, "utf8").split(" ").filter(Boolean)) {
    try {
      if (readFileSync(`/proc/${task}/cmdline`, "utf8").includes(bootstrap)) found.push(Number(task));
    } catch {
      // gone
    }
  }
  return found;
}

/** What a reader that keeps everything has of a run folder. */
class Copy {
  readonly files = new Map<string, Buffer>();
  readonly known: MirrorFile["files"] = {};
  readonly frames: StationFrame[] = [];
  bytes = 0;

  take(frame: StationFrame): void {
    this.frames.push(frame);
    if (frame.kind === "restart") {
      this.files.set(frame.file, Buffer.alloc(0));
      this.known[frame.file] = { size: 0, mark: frame.mark };
    } else if (frame.kind === "piece") {
      const data = Buffer.from(frame.data, "base64");
      const old = this.files.get(frame.file) ?? Buffer.alloc(0);
      assert.ok(frame.offset <= old.length, `a gap in ${frame.file}`);
      this.bytes += data.length;
      this.files.set(frame.file, Buffer.concat([old.subarray(0, frame.offset), data]));
      this.known[frame.file] = { size: frame.offset + data.length, mark: frame.mark };
    }
  }

  text(file: string): string {
    return this.files.get(file)?.toString("utf8") ?? "";
  }
}

/** Follows until `enough`, then lets go. */
async function followUntil(run: string, copy: Copy, enough: () => boolean): Promise<void> {
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(), 60_000);
  const followed = station.call({ verb: "follow", run, runner: runnerDir, known: copy.known, limit_s: 60 }, { signal: stop.signal, onFrame: (frame) => copy.take(frame) });
  const ended = followed.catch((error: unknown) => {
    if (!AppError.is(error, "cancelled")) throw error;
  });
  let over = false;
  void ended.finally(() => (over = true)).catch(() => {});
  while (!enough() && !over) await wait(20);
  clearTimeout(timer);
  stop.abort();
  await ended;
  assert.ok(enough(), "what was waited for came");
}

function runFolder(name: string): string {
  const run = join(top, name);
  mkdirSync(join(run, "traces/step-000001"), { recursive: true });
  writeFileSync(join(run, "run.json"), "{}\n");
  writeFileSync(join(run, "journal.jsonl"), '{"seq":1}\n');
  return run;
}

test("an answer is found among what start-up files print, and arguments reach it as data", async () => {
  const noisy = new PipeStation({ name: "noisy", runnerDir, argv: ["sh", "-c", 'echo Welcome; printf "no newline "; exec "$0" -u -c "$1"', python, bootstrap] });
  const nasty = join(top, "$(touch pwned) `id`; \"'\\ &|");
  const { dir } = await noisy.call({ verb: "locate", dir: nasty });
  assert.equal(dir, nasty);
  assert.ok(existsSync(nasty) && !existsSync("pwned"));
});

test("a Python that is too old, none at all, and a silent one are told", async () => {
  const old = new PipeStation({ name: "old", runnerDir, argv: [python, "-u", "-c", `import sys;sys.version_info=(3,7,16);${bootstrap}`] });
  await assert.rejects(old.call({ verb: "locate", dir: top }), (error) => isTrouble(error, "old-python") && error.reach === "no-python");
  const none = new PipeStation({ name: "none", runnerDir, argv: ["sh", "-c", "echo no such thing >&2; exit 7"] });
  await assert.rejects(none.call({ verb: "locate", dir: top }), (error) => error instanceof ReachError && /exit code 7.*no such thing/.test(error.message));
  const mute = new PipeStation({ name: "mute", runnerDir, argv: ["sleep", "60"] });
  await assert.rejects(mute.call({ verb: "locate", dir: top }, { silence: 300 }), (error) => error instanceof ReachError && /no answer in time/.test(error.message));
  await assert.rejects(station.call({ verb: "nonsense" as never }), /nonsense/);
});

test("folders that cannot be written are trouble with a name", async () => {
  writeFileSync(join(top, "file"), "x");
  await assert.rejects(station.call({ verb: "locate", dir: join(top, "file/below") }), (error) => isTrouble(error, "not-a-folder") && error.reach === "not-writable");
  await assert.rejects(station.call({ verb: "locate", dir: "/proc/seesaw" }), (error) => isTrouble(error, "no-folder"));
  const bytes = 2 ** 52;
  await assert.rejects(station.call({ verb: "put", path: join(top, "huge"), size: bytes, sha256: sha(""), client: "a" }), (error) => isTrouble(error, "disk-full"));
});

test("a copy that is cut goes on where it stopped, and leaves no process behind", async () => {
  const bytes = randomBytes(6 << 20);
  const path = join(top, "objects/one", "data.bin");
  const request = { verb: "put", path, size: bytes.length, sha256: sha(bytes), client: "me" } as const;
  const cut = new AbortController();
  let sent = 0;
  const first = station.call(request, {
    signal: cut.signal,
    async *data(offset) {
      assert.equal(offset, 0);
      for (let at = 0; at < bytes.length; at += 65_536) {
        if (at > 3 << 20) {
          await until("three megabytes are there", () => statSync(`${path}.part`).size >= 2 << 20);
          cut.abort();
          return;
        }
        sent += 65_536;
        yield bytes.subarray(at, at + 65_536);
      }
    },
  });
  // Waited for from the start: it may be over before the lock was seen.
  const refused = assert.rejects(first, (error) => AppError.is(error, "cancelled"));
  await until("the copy has begun", () => /\}\s*$/.test(existsSync(`${path}.part.lock`) ? readFileSync(`${path}.part.lock`, "utf8") : ""));
  const { pid } = JSON.parse(readFileSync(`${path}.part.lock`, "utf8")) as { pid: number };
  await refused;
  await until("the far process is gone", () => gone(pid), 2_000);
  assert.ok(!existsSync(path) && sent < bytes.length);
  const part = statSync(`${path}.part`).size;

  let from = -1;
  let again = 0;
  await station.call(request, {
    async *data(offset) {
      from = offset;
      again = bytes.length - offset;
      yield bytes.subarray(offset);
    },
  });
  assert.equal(from, part);
  assert.ok(again <= bytes.length - (2 << 20), "only what was missing was sent");
  assert.ok(readFileSync(path).equals(bytes));
  assert.ok(!existsSync(`${path}.part`) && !existsSync(`${path}.part.lock`));
  const third = await station.call(request, { data: () => assert.fail("it is there") });
  assert.equal(third["there"], true);
});

test("a copy that still waits for a cut client's bytes is ended by the same client, and respected from another", async () => {
  const bytes = randomBytes(1 << 20);
  const path = join(top, "objects/two", "data.bin");
  const put = (client: string) => ({ verb: "put", path, size: bytes.length, sha256: sha(bytes), client }) as const;
  let release = (): void => {};
  const stuck = station.call(put("me"), {
    async *data() {
      yield bytes.subarray(0, 300_000);
      await new Promise<void>((done) => (release = done));
    },
  });
  const fate = stuck.then(() => "done", (error: unknown) => (error instanceof ReachError ? "ended" : String(error)));
  await until("its first bytes are there", () => existsSync(`${path}.part.lock`) && statSync(`${path}.part`).size === 300_000);
  await assert.rejects(station.call(put("other")), (error) => isTrouble(error, "busy") && error.fields["bytes"] === 300_000);
  await station.call(put("me"), { data: async function* (offset) { yield bytes.subarray(offset); } });
  assert.ok(readFileSync(path).equals(bytes));
  assert.equal(await fate, "ended");
  release();
});

test("what is not what was announced is never given its name", async () => {
  const path = join(top, "objects/three", "data.bin");
  const put = { verb: "put", path, size: 5, sha256: sha("hello"), client: "me" } as const;
  await assert.rejects(station.call(put, { data: async function* () { yield Buffer.from("jello"); } }), (error) => isTrouble(error, "changed"));
  assert.ok(!existsSync(path) && !existsSync(`${path}.part`));
});

test("inputs are copied once, small ones together, a model under its own name only when whole", async () => {
  const here = join(top, "here");
  mkdirSync(join(here, "model"), { recursive: true });
  const far = join(top, "far");
  const files = ["a", "b"].map((name) => ({ local: join(here, name), kind: "file" as const, sha256: sha(name), bytes: 1, remote: join(far, "objects", sha(name), name) }));
  for (const { local } of files) writeFileSync(local, local.at(-1) ?? "");
  const large = randomBytes(400_000);
  writeFileSync(join(here, "large"), large);
  writeFileSync(join(here, "model/model.safetensors"), large);
  writeFileSync(join(here, "model/config.json"), "{}");
  writeFileSync(join(here, "model/seesaw.json"), '{"kind":"full"}');
  writeFileSync(join(here, "model/optimizer.pt"), "not wanted");
  const { FileHasher } = await import("../../../../src/targets/hashFiles.ts");
  const model = await new FileHasher(null).model(join(here, "model"));
  const inputs = [
    ...files,
    { local: join(here, "large"), kind: "file" as const, sha256: sha(large), bytes: large.length, remote: join(far, "objects", sha(large), "large") },
    { local: join(here, "model"), kind: "model" as const, sha256: model.sha256, bytes: large.length + 2, remote: join(far, "models", model.sha256) },
  ];
  const told: [number, number][] = [];
  await uploadInputs(station, inputs, (_what, copied, total) => told.push([copied, total]));
  for (const { local, remote, kind } of inputs) if (kind === "file") assert.ok(readFileSync(remote).equals(readFileSync(local)));
  assert.deepEqual(["model.safetensors", "config.json", "seesaw.json", "optimizer.pt"].map((name) => existsSync(join(inputs[3]?.remote ?? "", name))), [true, true, true, false]);
  assert.ok(told.every(([copied], i) => copied >= (told[i - 1]?.[0] ?? 0)));
  assert.deepEqual(told.at(-1), [told.at(-1)?.[1], 2 * large.length + 4]);
  assert.deepEqual(await inputsThere(station, inputs), [true, true, true, true]);

  // The same size, another content, at a place that its hash does not name.
  const place = { local: join(here, "a"), kind: "file" as const, sha256: sha("a"), bytes: 1, remote: join(far, "work/a") };
  mkdirSync(join(far, "work"));
  writeFileSync(place.remote, "x");
  assert.deepEqual(await inputsThere(station, [place]), [false]);
  await uploadInputs(station, [place], () => {});
  assert.equal(readFileSync(place.remote, "utf8"), "a");
});

test("an input that changed here is a sentence, not a copy", async () => {
  const local = join(top, "changing");
  writeFileSync(local, randomBytes(400_000));
  const input = { local, kind: "file" as const, sha256: sha("something else"), bytes: 400_000, remote: join(top, "far/objects/zzz/changing") };
  await assert.rejects(uploadInputs(station, [input], () => {}), (error) => AppError.is(error, "bad-input") && error.message.includes(local));
  assert.ok(!existsSync(input.remote));
});

test("the runner is sent once and is whole", async () => {
  const { version, files } = await runnerArchive(runnerDir);
  assert.match(version, /^[0-9a-f]{12}$/);
  const folder = join(top, "runner", version);
  await Promise.all([sendRunner(station, runnerDir, folder), sendRunner(station, runnerDir, folder)]);
  assert.ok(files > 50);
  for (const name of ["seesaw_runner/agent.py", "seesaw_runner/station.py", "seesaw_runner/recipes/sft.py", "probe.py"]) assert.equal(readFileSync(join(folder, name), "utf8"), readFileSync(join(runnerDir, name), "utf8"));
  const again = await station.call({ verb: "unpack", dir: folder, size: 1, sha256: "" }, { data: () => assert.fail("it is there") });
  assert.equal(again["there"], true);
});

test("a program is data, ends with its signal, its time or our interest, and takes its children along", async () => {
  const said = await station.call({ verb: "exec", argv: ["printf", "%s|", "$HOME", "a b", "'; exit 9", "*"], env: { HOME: "/x" } });
  assert.equal(Buffer.from(String(said["stdout"]), "base64").toString(), "$HOME|a b|'; exit 9|*|");
  const killed = await station.call({ verb: "exec", argv: ["sh", "-c", "kill -9 $$"] });
  assert.deepEqual([killed["code"], killed["signal"]], [null, "SIGKILL"]);
  const late = await station.call({ verb: "exec", argv: ["sleep", "60"], timeout: 0.5 });
  assert.equal(late["timed_out"], true);
  await assert.rejects(station.call({ verb: "exec", argv: ["no-such-program-here"] }), (error) => isTrouble(error, "no-program"));
  const much = await station.call({ verb: "exec", argv: [python, "-c", "print('x' * 3000000)"], limit: 1000 });
  assert.equal(Buffer.from(String(much["stdout"]), "base64").length, 1000);

  const file = join(top, "pids");
  const cut = new AbortController();
  const running = station.call({ verb: "exec", argv: ["sh", "-c", `sleep 300 & echo $! $$ > "$1.tmp"; mv "$1.tmp" "$1"; wait`, "sh", file], timeout: 300 }, { signal: cut.signal });
  const fate = assert.rejects(running, (error) => AppError.is(error, "cancelled"));
  await until("it runs", () => existsSync(file));
  const pids = readFileSync(file, "utf8").trim().split(" ").map(Number);
  cut.abort();
  await fate;
  await until("nothing is left", () => pids.every(gone), 3_000);
});

test("a run folder is followed: order, what is left out, what is new, what was there before", async () => {
  const run = runFolder("followed");
  writeFileSync(join(run, "traces/step-000001/math.id.trace"), randomBytes(600_000));
  writeFileSync(join(run, "out.log"), Buffer.from([0xff, 0xfe, 0x0a]));
  for (const [name, text] of [["checkpoints/step-000001/model.safetensors", "no"], ["checkpoints/step-000001/seesaw.json", "{}"], ["output/x", "no"], [".hidden", "no"], ["half.tmp", "no"], ["up.part", "no"], ["teacher_outputs.safetensors", "no"]] as const) {
    mkdirSync(join(run, name, ".."), { recursive: true });
    writeFileSync(join(run, name), text);
  }
  const copy = new Copy();
  await followUntil(run, copy, () => copy.frames.some(({ kind }) => kind === "caught-up"));
  assert.deepEqual([...copy.files.keys()].sort(), ["checkpoints/step-000001/seesaw.json", "journal.jsonl", "out.log", "run.json", "traces/step-000001/math.id.trace"]);
  for (const [file, bytes] of copy.files) assert.ok(readFileSync(join(run, file)).equals(bytes), file);
  assert.ok(stations().every(gone) || stations().length === 0);

  // Later, from where the reader is: only the new line and the new file, the file before the line that speaks of it.
  copy.frames.length = copy.bytes = 0;
  const added = '{"seq":2,"type":"probe.scored"}\n';
  const before = Date.now();
  let heard = 0;
  const seen = (): boolean => {
    if (copy.frames.length > 0 && !copy.text("journal.jsonl").includes('"seq":2') && heard++ === 0) {
      writeFileSync(join(run, "traces/step-000001/new.tmp"), "trace");
      renameSync(join(run, "traces/step-000001/new.tmp"), join(run, "traces/step-000001/new.trace"));
      appendFileSync(join(run, "journal.jsonl"), added);
    }
    return copy.text("journal.jsonl").includes('"seq":2');
  };
  await followUntil(run, copy, seen);
  assert.ok(Date.now() - before < 20_000);
  assert.equal(copy.bytes, added.length + "trace".length);
  const order = copy.frames.flatMap((frame) => (frame.kind === "piece" ? [frame.file] : []));
  assert.deepEqual(order, ["traces/step-000001/new.trace", "journal.jsonl"]);
});

test("a journal that was replaced, shortened, or cut and written anew is sent again; a grown one is not", async () => {
  const run = runFolder("replaced");
  const journal = join(run, "journal.jsonl");
  writeFileSync(journal, "a".repeat(300) + "\n" + "b".repeat(400));
  const copy = new Copy();
  const caughtUp = (): boolean => copy.frames.some(({ kind }) => kind === "caught-up");
  await followUntil(run, copy, caughtUp);
  for (const change of [
    () => truncateSync(journal, 350),
    () => writeFileSync(journal, "c".repeat(2_000)),
    // As long as before and with the same beginning: only its end tells.
    () => writeFileSync(journal, "c".repeat(1_990) + "d".repeat(10)),
  ]) {
    change();
    copy.frames.length = 0;
    await followUntil(run, copy, caughtUp);
    assert.equal(copy.frames.filter(({ kind }) => kind === "restart").length, 1, String(change));
    assert.equal(copy.text("journal.jsonl"), readFileSync(journal, "utf8"));
  }
  appendFileSync(journal, "e");
  copy.frames.length = copy.bytes = 0;
  await followUntil(run, copy, caughtUp);
  assert.equal(copy.bytes, 1);
  // What the reader lost of its end (a crash between data and its books) is sent again, and nothing else.
  copy.known["journal.jsonl"] = { size: 1_500, mark: copy.known["journal.jsonl"]?.mark ?? "" };
  copy.frames.length = copy.bytes = 0;
  await followUntil(run, copy, caughtUp);
  assert.equal(copy.bytes, 501);
});

test("a slow reader makes the target wait; a cut ends it at once, also in the middle of a piece", async () => {
  const run = runFolder("slow");
  const chunk = randomBytes(1 << 20);
  for (let i = 0; i < 64; i++) appendFileSync(join(run, "out.log"), chunk);
  const cut = new AbortController();
  let pieces = 0;
  let pid = 0;
  let peak = 0;
  const followed = station.call({ verb: "follow", run, runner: runnerDir, known: {}, limit_s: 60 }, {
    signal: cut.signal,
    async onFrame(frame) {
      if (frame.kind !== "piece" || frame.file !== "out.log") return;
      pid ||= stations()[0] ?? 0;
      peak = Math.max(peak, Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]));
      await wait(30);
      if (++pieces === 20) cut.abort();
    },
  });
  await assert.rejects(followed, (error) => AppError.is(error, "cancelled"));
  assert.ok(pid > 0);
  await until("the far process is gone", () => gone(pid), 2_000);
  assert.equal(pieces, 20);
  assert.ok(peak < 60_000, `memory there: ${peak} kB`);
});

test("a run to its end: started detached, followed, its sums told; another start is answered with the first", async () => {
  const run = join(top, "runs/end");
  const attempt = join(run, "attempt-0001");
  const spec = { v: 1, nonce: "n".repeat(32), argv: ["/bin/sh", "-c", "echo hello; sleep 1; echo bye"], cwd: run, env: {}, epoch: 1, grace_s: 5, beat_s: 0.2, fate: false, run: ".." };
  await station.call({ verb: "write", items: [{ path: run }, { path: join(attempt, "spec.json"), text: JSON.stringify(spec) }] });
  const runs = new StationRuns(station, runnerDir);
  const where = { dir: run, runner: runnerDir };
  const before = await runs.agent(where, 1, "probe");
  assert.deepEqual([before.code, before.probe?.state, before.nonce], [0, "absent", spec.nonce]);
  const started = await runs.agent(where, 1, "run", ["--detach"]);
  assert.equal(started.code, 0);
  const taken = await runs.agent(where, 1, "run", ["--detach"]);
  assert.equal(taken.code, 17);
  assert.equal(taken.probe?.started?.nonce, spec.nonce);
  const copy = new Copy();
  await runs.follow(where, {}, (frame) => copy.take(frame), AbortSignal.timeout(60_000));
  const end = copy.frames.at(-1);
  assert.ok(end?.kind === "end");
  assert.equal(copy.text("out.log"), "hello\nbye\n");
  assert.deepEqual(end.sums?.["out.log"], { size: 10, sha256: sha("hello\nbye\n") });
  const probes = copy.frames.flatMap((frame) => (frame.kind === "probe" ? [frame] : []));
  assert.equal(probes.at(-1)?.probe.state, "exited");
  assert.equal(probes.at(-1)?.attempt, 1);
  assert.match(copy.text("journal.jsonl"), /run\.finished.*"done"/);
  assert.deepEqual(await runs.agent({ dir: join(top, "runs/none"), runner: runnerDir }, 1, "probe"), { code: null, probe: null, nonce: null });
  assert.equal((await runs.ask(where, 1, "probe", [])).state, "exited");
  await assert.rejects(runs.ask({ dir: join(top, "runs/none"), runner: runnerDir }, 1, "probe", []), (error) => AppError.is(error, "not-found") && error.message.includes(join(top, "runs/none/attempt-0001")));
});

test("the packages that are asked for are those of the local probe", () => {
  const [, list = ""] = /^PACKAGES = \((.*)\)$/m.exec(readFileSync(join(runnerDir, "probe.py"), "utf8")) ?? [];
  assert.deepEqual(list.split(",").map((word) => word.trim().replaceAll('"', "")), [...runnerPackages]);
});

test("a check tells what is missing, and a target that is not there is a report, not an error", async () => {
  const about = { target: "box", kind: "ssh", address: "box" } as const;
  const report = await new StationRuns(station, runnerDir).check(about, join(top, "checked"));
  assert.deepEqual([report.reachable, report.python?.path], [true, python]);
  assert.ok((report.disk?.free ?? 0) > 0 && (report.roundTrip ?? 0) > 0);
  const bad = await new StationRuns(station, runnerDir).check(about, "/proc/none");
  assert.deepEqual(bad.problems.map(({ reason }) => reason), ["not-writable"]);
  assert.match(bad.problems[0]?.message ?? "", /\/proc\/none.*`dir:`/);
  const none = await new StationRuns(new PipeStation({ name: "none", runnerDir, argv: ["sh", "-c", "exit 3"] }), runnerDir).check(about, top);
  assert.deepEqual([none.reachable, none.python, none.gpus, none.problems.length], [false, null, null, 1]);
});

test("a folder that is gone, and a runner that is gone, are told", async () => {
  await assert.rejects(station.call({ verb: "follow", run: join(top, "none"), runner: runnerDir, known: {} }), (error) => isTrouble(error, "no-run"));
  await assert.rejects(station.call({ verb: "follow", run: runFolder("norunner"), runner: join(top, "none"), known: {} }), (error) => isTrouble(error, "no-runner"));
});

test("a checkpoint is fetched, and again from where it was cut", async () => {
  const there = join(top, "ckpt");
  const here = join(top, "fetched");
  mkdirSync(there, { recursive: true });
  const weights = randomBytes(5 << 20);
  writeFileSync(join(there, "model.safetensors"), weights);
  writeFileSync(join(there, "config.json"), "{}");
  const runs = new StationRuns(station, runnerDir);
  const cut = new AbortController();
  await assert.rejects(runs.fetch(there, here, (_what, copied) => void (copied > 2 << 20 && cut.abort()), cut.signal), (error) => AppError.is(error, "cancelled"));
  const part = statSync(join(here, ".model.safetensors.part")).size;
  assert.ok(part > 1 << 20 && part < weights.length);
  const seen: number[] = [];
  await runs.fetch(there, here, (what, copied) => void (what.includes("model") && seen.push(copied)));
  assert.ok((seen[0] ?? 0) > part, "it went on where it was cut");
  assert.ok(readFileSync(join(here, "model.safetensors")).equals(weights));
  assert.equal(readFileSync(join(here, "config.json"), "utf8"), "{}");
  assert.ok(!existsSync(join(here, ".model.safetensors.mark")) && !existsSync(join(here, ".model.safetensors.part")));
});
