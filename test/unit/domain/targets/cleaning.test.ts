import assert from "node:assert/strict";
import { test } from "node:test";
import { cleaningPlan, cleaningSum, inOrder, spentRuns, type StoredRun } from "../../../../src/domain/targets/cleaning.ts";

const run = (id: string, more: Partial<StoredRun> = {}): StoredRun => ({ id, stage: id.split("-")[0] ?? "", seed: 0, done: true, there: true, complete: true, cleaned: false, text: "", ...more });

test("spent is what has ended, has a newer done run of its stage and seed, and is named by nothing that stays", () => {
  const why = (runs: StoredRun[], pipelines: string[] = []): [string[], Record<string, string>] => {
    const { spent, staying } = spentRuns(runs, pipelines);
    return [spent, Object.fromEntries(staying.map((one) => [one.run, one.why]))];
  };
  assert.deepEqual(why([run("a-2"), run("a-1")]), [["a-1"], { "a-2": "it is the newest run of a" }]);
  assert.deepEqual(why([run("a-2", { done: false }), run("a-1")]), [[], { "a-2": "it is the newest run of a", "a-1": "no newer run of a is done" }]);
  assert.deepEqual(why([run("a-3"), run("a-2", { complete: false }), run("a-1")]), [["a-1"], { "a-3": "it is the newest run of a", "a-2": "it has not ended, or not all of it was copied here" }]);
  assert.deepEqual(why([run("a-2", { seed: 7 }), run("a-1")])[0], [], "another seed stands beside the chain");
  assert.deepEqual(why([run("a-2"), run("a-1")], ["experts: [.seesaw/runs/a-1/checkpoints/step-000002]"]), [[], { "a-2": "it is the newest run of a", "a-1": "seesaw.yaml names it" }]);
  // A chain that was made from it, whatever machine that lies on, holds it, and what holds that.
  const chain = [run("b-2", { there: false, text: "from a-2" }), run("a-3"), run("a-2", { text: "from z-1" }), run("z-2"), run("z-1"), run("a-1")];
  assert.deepEqual(why(chain), [["a-1"], { "a-3": "it is the newest run of a", "a-2": "b-2 was made from it", "z-2": "it is the newest run of z", "z-1": "a-2 was made from it" }]);
  // What goes holds nothing, nor what went before.
  assert.deepEqual(why([run("b-2"), run("a-2"), run("b-1", { text: "from a-1" }), run("a-1")])[0].sort(), ["a-1", "b-1"]);
  assert.deepEqual(why([run("b-2"), run("a-2"), run("b-1", { text: "from a-1", cleaned: true }), run("a-1")])[0], ["a-1"]);
});

test("the sum and its reasons in words", () => {
  const runs = [run("a-2"), run("a-1")];
  const kept = { runs: 3, work: 1, objects: 2, models: 1, runner: 1, arrays: 0 };
  const plan = cleaningPlan("box", "gpu-box", spentRuns(runs, []), {
    dir: "/srv/seesaw", kept, staying: { "a-0": { why: "named", by: "c-1" } }, closed: ["/srv/seesaw/runs/secret"],
    items: [{ kind: "models", name: "f".repeat(64), why: "unused", bytes: 5 << 20 }, { kind: "runs", name: "a-1", why: "spent", bytes: 1 << 20 }, { kind: "work", name: "a-1", why: "spent", bytes: 10 }],
  }, runs);
  assert.equal(plan.bytes, (6 << 20) + 10);
  assert.equal(cleaningSum(plan.items), "6.3 MB in 1 run and 2 shared folders");
  assert.deepEqual(inOrder(plan.items).map(({ kind }) => kind), ["runs", "models", "work"]);
  assert.match(plan.items[1]?.why ?? "", /a newer run of a is done, and nothing names this one; its weights are gone then/);
  assert.deepEqual(plan.staying, [{ run: "a-2", why: "it is the newest run of a" }, { run: "a-0", why: "c-1, which lies there too, needs it" }]);
  assert.match(plan.notes[0] ?? "", /runs\/secret on gpu-box cannot be read/);
});
