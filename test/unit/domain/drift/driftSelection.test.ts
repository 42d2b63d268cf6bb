import assert from "node:assert/strict";
import { test } from "node:test";
import type { Chain, ChainCheckpoint } from "../../../../src/domain/run/chain.ts";
import { compareWith, orderedDrift, ownReference, probeSetsOf, scoredCheckpoints, shownCheckpoints, startReference, withProbeSet, type ClosableTrace } from "../../../../src/domain/drift/driftSelection.ts";
import type { Pipeline, Skill } from "../../../../src/domain/pipeline/pipelineModel.ts";
import { makeTrace } from "../makeTrace.ts";

/** M0 … MN of the stages `math`, `search` and `tool`; `scored` names the traces of math.id. */
function chainOf(...scored: string[]): Chain {
  const checkpoints = [null, "math", "search", "tool"].map((stage, index) => {
    const label = `M${index}`;
    return { label, index, stage, traces: scored.includes(label) ? { "math.id": label } : {} } as unknown as ChainCheckpoint;
  });
  return { checkpoints, newest: {} };
}

const pipeline = { stages: [{ id: "math", from: null }, { id: "search", from: "math" }, { id: "tool", from: "math" }] } as unknown as Pipeline;
const set = { skill: "math", split: "id" } as const;
const score: Record<string, number> = { M0: -9, M1: -1, M2: -2, M3: -4 };
let open = 0;
function openTrace(path: string): ClosableTrace {
  if (score[path] === undefined) throw new Error(`${path} is damaged.`);
  open += 1;
  return { ...makeTrace([{ hash: "p", logprob: [score[path]] }, { hash: "q", logprob: [score[path] * (path === "M2" ? 3 : 1)] }]), close: () => void (open -= 1) };
}
const deltas = (chain: Chain, against: string, onlyLater = false) =>
  withProbeSet(chain, set, openTrace, (opened) => orderedDrift(compareWith(pipeline, opened, against, onlyLater)).rows.map(({ hash, worst, cells }) => [hash, worst, ...cells.map(({ delta }) => delta)]));

test("shown up to the last scored checkpoint; compared with the end of the skill's own stage where something follows", () => {
  const chain = chainOf("M0", "M1", "M3");
  assert.deepEqual([shownCheckpoints(chain, set).map(({ label }) => label), scoredCheckpoints(chain, set).map(({ label }) => label)], [["M0", "M1", "M2", "M3"], ["M0", "M1", "M3"]]);
  assert.equal(ownReference(chain, set), "M1");
  assert.equal(ownReference(chainOf("M0", "M1"), set), "M0", "nothing comes after its own stage yet");
  assert.equal(ownReference(chain, { skill: "tool", split: "id" }), "M0", "a skill that no checkpoint scored");
  assert.equal(ownReference(chainOf("M2", "M3"), set), startReference, "neither its own stage nor the base was scored");
  assert.deepEqual(probeSetsOf({ id: "s", probes: { id: "p", ood: "o" } } as Skill), [{ skill: "s", split: "id" }, { skill: "s", split: "ood" }]);
});

test("what came before the reference is shown, or not, but never decides the order", () => {
  const chain = chainOf("M0", "M1", "M2", "M3");
  assert.deepEqual(deltas(chain, "M1"), [["q", 5, 8, 0, 5, 3], ["p", 3, 8, 0, 1, 3]]);
  assert.deepEqual(deltas(chain, "M1", true), [["q", 5, null, null, 5, 3], ["p", 3, null, null, 1, 3]]);
  assert.deepEqual(deltas(chain, startReference), [["q", 5, null, -8, 5, 3], ["p", 3, null, -8, 1, 3]], "tool starts from math here");
  assert.equal(open, 0, "every trace was closed");
});

test("a trace that cannot be read is a problem of its checkpoint; the others are read and closed", () => {
  const chain = chainOf("M0", "M1", "M2");
  (chain.checkpoints[1] as { traces: object }).traces = { "math.id": "/torn" };
  const problems = withProbeSet(chain, set, openTrace, (opened) => [...opened.problems, ...opened.readers.keys()]);
  assert.deepEqual(problems, [["M1", "/torn is damaged."], "M0", "M2"]);
  const inside = (path: string): ClosableTrace => {
    const trace = openTrace(path === "/torn" ? "M1" : path);
    return path === "/torn" ? { ...trace, probes: () => assert.fail("its third page is damaged") } : trace;
  };
  assert.deepEqual(withProbeSet(chain, set, inside, (opened) => [...opened.problems, ...opened.readers.keys()]), [["M1", "its third page is damaged"], "M0", "M2"]);
  assert.throws(() => withProbeSet(chain, set, openTrace, () => assert.fail("stop")), /stop/);
  assert.equal(open, 0);
});
