import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { run, spawnDetached, start } from "../../../src/targets/spawn.ts";
import { AppError } from "../../../src/util/errors.ts";

const node = (code: string): string[] => [process.execPath, "-e", code];

test("a signal is not an exit code, and both streams come back", async () => {
  const ended = await run(node("console.log('out'); console.error('err'); process.exit(7)"));
  assert.deepEqual([ended.code, ended.signal, ended.stdout, ended.stderr], [7, null, "out\n", "err\n"]);
  const killed = await run(node("process.kill(process.pid, 'SIGKILL')"));
  assert.deepEqual([killed.code, killed.signal], [null, "SIGKILL"]);
});

test("no shell: arguments arrive as they are", async () => {
  const nasty = ["$(touch CANARY)", "; echo hi", "a b", "*", "--x='1'"];
  const { stdout } = await run([...node("console.log(JSON.stringify(process.argv.slice(1)))"), "--", ...nasty]);
  assert.deepEqual(JSON.parse(stdout), nasty);
});

test("input reaches the program, and one that does not read it is no error", async () => {
  assert.equal((await run(node("process.stdin.pipe(process.stdout)"), { input: "hé" })).stdout, "hé");
  assert.equal((await run(node("process.exit(0)"), { input: "x".repeat(1 << 20) })).code, 0);
});

test("output is bounded but read to the end", async () => {
  const ended = await run(node("process.stdout.write('x'.repeat(300000))"), { maxBytes: 1000 });
  assert.deepEqual([ended.code, ended.stdout.length, ended.truncated], [0, 1000, true]);
});

test("a program that hangs is ended by the timeout, one that ignores SIGTERM too", async () => {
  const start = Date.now();
  const ended = await run(node("process.on('SIGTERM', () => {}); console.log('up'); setInterval(() => {}, 1000)"), { timeout: 800 });
  assert.deepEqual([ended.timedOut, ended.signal, ended.stdout], [true, "SIGKILL", "up\n"]);
  assert.ok(Date.now() - start < 8_000);
});

test("cancelling ends the program and rejects", async () => {
  const controller = new AbortController();
  setTimeout(() => controller.abort(), 200);
  await assert.rejects(run(node("setInterval(() => {}, 1000)"), { signal: controller.signal }), (error) => AppError.is(error, "cancelled"));
});

test("a program that is not there is a sentence", async () => {
  await assert.rejects(run(["/nowhere/python"]), (error) => AppError.is(error, "spawn-failed") && /\/nowhere\/python could not be started: it does not exist/.test(error.message));
  await assert.rejects(spawnDetached(["/nowhere/python"]), (error) => AppError.is(error, "spawn-failed"));
});

test("a detached program writes to its log and is not waited for", async () => {
  const dir = mkdtempSync(join(tmpdir(), "seesaw-spawn-"));
  try {
    const log = join(dir, "log");
    const pid = await spawnDetached(node("setTimeout(() => console.log('late', process.pid), 200)"), { log });
    for (let i = 0; i < 100 && readFileSync(log, "utf8") === ""; i++) await new Promise((resolve) => setTimeout(resolve, 50));
    assert.equal(readFileSync(log, "utf8"), `late ${pid}\n`);
  } finally {
    rmSync(dir, { recursive: true });
  }
});

test("a program that is spoken to: what is written comes back, and its end is told", async () => {
  const child = await start(["cat"]);
  const big = Buffer.alloc(3 << 20, "x");
  const writing = child.write(big).then(() => child.end());
  let bytes = 0;
  for await (const chunk of child.output) bytes += chunk.length;
  await writing;
  assert.equal(bytes, big.length);
  assert.deepEqual(await child.ended, { code: 0, signal: null });
});

test("a program waits while nobody reads what it prints, and a killed one ends at once", async () => {
  const child = await start(["sh", "-c", "exec dd if=/dev/zero bs=65536 count=100000 status=none"]);
  await new Promise((resolve) => setTimeout(resolve, 500));
  const waits = readFileSync(`/proc/${child.pid}/io`, "utf8");
  assert.ok(Number(/wchar: (\d+)/.exec(waits)?.[1]) < 8 << 20, waits);
  const since = Date.now();
  child.kill();
  assert.equal((await child.ended).signal, "SIGTERM");
  assert.ok(Date.now() - since < 5_000);
  assert.equal(await child.write("too late"), false); // the end says why
});

test("the end of what a program says on stderr is kept, and one that closes its input is no error", async () => {
  const child = await start(["sh", "-c", "exec 0<&-; for i in 1 2 3 4 5 6 7 8; do head -c 4096 /dev/zero | tr '\\0' $i >&2; echo >&2; done; echo last >&2; exit 4"]);
  for (let i = 0; i < 20; i++) await child.write(Buffer.alloc(100_000));
  assert.deepEqual(await child.ended, { code: 4, signal: null });
  const said = child.errors();
  assert.ok(said.endsWith("8\nlast\n") && !said.includes("1"), said.slice(0, 40));
  assert.ok(said.length <= 16_384 && /^(\d)\1+\n/.test(said));
  await assert.rejects(start(["/nowhere/x"]), (error) => AppError.is(error, "spawn-failed"));
});
