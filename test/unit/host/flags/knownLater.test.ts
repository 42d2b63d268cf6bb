import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import type { ChainRun } from "../../../../src/domain/run/chain.ts";
import type { FlagFacts, ReplayFact } from "../../../../src/domain/run/flagCard.ts";
import { emptyRunState } from "../../../../src/domain/run/reduceRun.ts";
import type { FlagRecord } from "../../../../src/domain/run/runState.ts";
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
