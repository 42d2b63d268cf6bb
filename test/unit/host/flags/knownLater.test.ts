import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import type { ChainRun } from "../../../../src/domain/run/chain.ts";
import type { Confirmation } from "../../../../src/domain/run/confirmation.ts";
import type { FlagFacts, ReplayFact } from "../../../../src/domain/run/flagCard.ts";
import { emptyRunState } from "../../../../src/domain/run/reduceRun.ts";
import type { FlagRecord } from "../../../../src/domain/run/runState.ts";
import { CheckedFlags, checkedText } from "../../../../src/host/flags/checkedFlags.ts";
import { ReplayFacts } from "../../../../src/host/flags/replayFacts.ts";

const root = mkdtempSync(join(tmpdir(), "seesaw-known-"));
after(() => rmSync(root, { recursive: true, force: true }));
const warned: string[] = [];
const log = { debug() {}, info: (text: string) => void warned.push(text), warn: (text: string) => void warned.push(text), error() {} };
const flag = (step: number): FlagRecord => ({ id: "math.id", skill: "math", split: "id", step, state: "drifting", value: 7, lower: 3, threshold: 2, noise: 0, level: 0.01, n: 64, seq: step, t: step, attempt: 1 });
const runOf = (step: number, replay: boolean): ChainRun => ({ id: "search-1", stage: "search", dir: join(root, ".seesaw", "runs", "search-1"), spec: { replay: replay ? { buffer: "main", ratio: 0.1 } : null } as never, state: { ...emptyRunState(), flags: [flag(step)] } });

test("what replay did is read when somebody looks, once for each change of a flag, and not where there is none", async () => {
  let [reads, changes] = [0, 0];
  const fact: ReplayFact = { kind: "rows", buffer: "main", ratio: 0.1, rows: [], drawn: 0 };
  const facts = new ReplayFacts(() => (reads++, Promise.resolve({ card: null, replay: () => fact } satisfies FlagFacts)), () => changes++, log);
  await facts.look(runOf(10, false));
  assert.deepEqual([facts.of(runOf(10, true), flag(10)), reads], [undefined, 0], "nobody looked");
  await Promise.all([facts.look(runOf(10, true)), facts.look(runOf(10, true))]);
  assert.deepEqual([facts.of(runOf(10, true), flag(10)), reads, changes], [fact, 1, 1]);
  assert.equal(facts.of(runOf(20, true), flag(20)), undefined, "the flag changed");
  await facts.look(runOf(20, true));
  assert.deepEqual([facts.of(runOf(20, true), flag(20)), reads, changes], [fact, 2, 2]);
});

test("a run whose buffer cannot be read is told of once, and shown without", async () => {
  let reads = 0;
  const facts = new ReplayFacts(() => (reads++, Promise.reject(new Error("gone"))), () => assert.fail("nothing is known"), log);
  for (let turn = 0; turn < 3; turn++) await facts.look(runOf(10, true));
  assert.deepEqual([facts.of(runOf(10, true), flag(10)), reads], [undefined, 1]);
  assert.ok(warned.some((text) => text.includes("search-1") && text.includes("gone")));
});

const found: Confirmation = { n: 64, lost: 31, gained: 2, before: 0.96, now: 0.5, interval: { low: -0.6, high: -0.3 }, p: 1e-6, confirmed: true, left_out: { unusable: 0, trained: 0, more: 0 } };

test("a check on further prompts is there in the next window too, and the run folder is left alone", async () => {
  const run = runOf(10, false);
  mkdirSync(run.dir, { recursive: true });
  let changes = 0;
  const first = new CheckedFlags(() => changes++, log);
  assert.equal(first.of(run, "math"), null);
  await first.keep({ run, skill: "math", step: 60, start: "", now: "" }, found);
  assert.deepEqual([first.of(run, "math")?.found.n, changes, readdirSync(run.dir)], [64, 1, []]);
  assert.match(checkedText(run, "math", first.of(run, "math")!), /^The loss of math is confirmed: 96\.0 % at the start of search, 50\.0 % at step 60/);

  let told = (): void => {};
  const known = new Promise<void>((resolve) => (told = resolve));
  const next = new CheckedFlags(told, log);
  assert.equal(next.of(run, "math"), null, "not read yet");
  await known;
  assert.equal(next.of(run, "math")?.step, 60);
  assert.equal(next.of(run, "search"), null);
});

test("a file that is no check is as if there was none", async () => {
  const run = { ...runOf(10, false), id: "search-2" };
  const folder = join(root, ".seesaw", "cache", "checked");
  writeFileSync(join(folder, "search-2.math.json"), '{"v":1,"found":null}');
  writeFileSync(join(folder, "search-2.tool.json"), "{");
  const checked = new CheckedFlags(() => assert.fail("nothing is known"), log);
  assert.deepEqual([checked.of(run, "math"), checked.of(run, "tool")], [null, null]);
  await wait(50);
  assert.deepEqual([checked.of(run, "math"), checked.of(run, "tool")], [null, null]);
  assert.equal(readFileSync(join(folder, "search-2.tool.json"), "utf8"), "{");
});
