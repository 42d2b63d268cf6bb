import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { thisProcess } from "../../../src/storage/runs/processIdentity.ts";
import { lockStage } from "../../../src/targets/stageLock.ts";
import { run } from "../../../src/targets/spawn.ts";
import { AppError } from "../../../src/util/errors.ts";

let dir = "";
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "seesaw-lock-"));
});
afterEach(() => rmSync(dir, { recursive: true }));

const lockFile = (stage: string): string => join(dir, `.lock-${stage}`);
const write = (stage: string, content: object | string): void =>
  writeFileSync(lockFile(stage), typeof content === "string" ? content : JSON.stringify({ run: "old-run", t: 0, ...content }));

test("the second one is told which run is being started; after release the next one gets it", async () => {
  const release = await lockStage(dir, "math", "math-1");
  await assert.rejects(lockStage(dir, "math", "math-2"), (error) => AppError.is(error, "already-running") && error.message.includes("math-1"));
  const other = await lockStage(dir, "search", "search-1");
  await release();
  await (await lockStage(dir, "math", "math-3"))();
  await other();
  assert.deepEqual(readdirSync(dir), []);
});

test("a lock whose owner died, or whose pid belongs to another program now, is taken over", async () => {
  const me = thisProcess();
  write("a", { ...me, pid: 2 ** 22 - 3 });
  write("b", { ...me, start: (me.start ?? 0) - 1 });
  write("c", { ...me, boot: "another boot" });
  write("d", "half wri");
  for (const stage of ["a", "b", "c", "d"]) {
    await (await lockStage(dir, stage, "new-run"))();
    assert.equal(existsSync(lockFile(stage)), false);
  }
});

test("a lock of another machine is believed while it shows life, and no longer", async () => {
  write("a", { ...thisProcess(), host: "elsewhere" });
  await assert.rejects(lockStage(dir, "a", "new"), (error) => AppError.is(error, "already-running"));
  const old = new Date(Date.now() - 300_000);
  utimesSync(lockFile("a"), old, old);
  await (await lockStage(dir, "a", "new"))();
});

test("of many processes that race for a stale lock exactly one gets it", async () => {
  write("math", { ...thisProcess(), pid: 2 ** 22 - 3 });
  const script = `
    const { lockStage } = await import(${JSON.stringify(join(import.meta.dirname, "../../../src/targets/stageLock.ts"))});
    try { await lockStage(${JSON.stringify(dir)}, "math", "run-" + process.pid); console.log("won"); await new Promise((r) => setTimeout(r, 1500)); }
    catch (error) { console.log(error.reason); }`;
  const ends = await Promise.all(Array.from({ length: 5 }, () => run([process.execPath, "--input-type=module", "-e", script])));
  const said = ends.map(({ stdout }) => stdout.trim()).sort();
  assert.deepEqual(said, ["already-running", "already-running", "already-running", "already-running", "won"], JSON.stringify(ends.map((e) => e.stderr)));
});
