import assert from "node:assert/strict";
import { test } from "node:test";
import { formatInterval } from "../../../src/domain/format.ts";
import { wilsonInterval } from "../../../src/domain/statistics/shares.ts";
import { skillNodes } from "../../../src/host/skills/skillNodes.ts";
import { finishedRun, flagged, flagOf, viewOf } from "./finishedRuns.ts";
import { makeView } from "./views.ts";

const math = finishedRun("math", null, { "math.id": [3, 64], "math.ood": [0, 48], "search.id": [2, 1] });
const search = finishedRun("search", math, { "math.id": [64, 20], "math.ood": [48, 10], "search.id": [1, 63] }, flagged(flagOf("confirmed")));

test("a skill has its newest accuracy with Wilson's interval, and what it lost since its own stage", () => {
  const nodes = skillNodes([viewOf([search, math])]);
  assert.deepEqual(nodes.map(({ label }) => label), ["math ID", "math OOD", "search ID"]);
  const interval = formatInterval(wilsonInterval(20, 64), 0).replace(" %", "");
  assert.equal(nodes[0]?.description, `⚑ 31 % (${interval}) · −69 since M1`);
  assert.match(nodes[0]!.tooltip, /20 of 64 answers pass the check at M2/);
  assert.match(nodes[0]!.tooltip, /100\.0 % at M1, the end of its own stage: −69 points/);
  assert.match(nodes[0]!.tooltip, /Flag of search: math \(in-domain\): loss confirmed/);
  assert.equal(nodes[0]?.icon.name, "arrow-down");
  assert.match(nodes[1]!.description, /^16 % .* · −59 since M1$/, "the flag is of the other split");
  // On its own stage the newest is compared with where it stood best before.
  assert.match(nodes[2]!.description, /^98 % \(.*\) · \+95 since M0$/);
});

test("a skill leads to its drift on that split, and holds its accuracy at every checkpoint, the newest first", () => {
  const [, ood] = skillNodes([viewOf([search, math])]);
  assert.equal(ood?.opens, "drift");
  assert.deepEqual([ood?.target.skill, ood?.target.split], ["math", "ood"]);
  assert.deepEqual(ood?.children.map(({ label }) => label), ["M2 search", "M1 math", "M0 base"]);
  assert.equal(ood?.children[1]?.description, `75 % (${formatInterval(wilsonInterval(48, 64), 0)})`);
  const [id] = skillNodes([viewOf([search, math])]);
  assert.match(id!.children[0]!.description, /✗$/);
});

test("a run under way shows its flag before its end is scored; a recovered one is calm", () => {
  const live = finishedRun("search", math, { "math.id": [64, 64] }, { status: "running", checkpoints: [], ...flagged(flagOf("drifting")) });
  assert.match(skillNodes([viewOf([live, math])])[0]!.description, /^⚑ 100 % \(.*\) · \+95 since M0$/);
  assert.equal(skillNodes([viewOf([live, math])])[0]!.icon.name, "warning");
  const calm = finishedRun("search", math, { "math.id": [64, 64] }, flagged(flagOf("recovered")));
  const node = skillNodes([viewOf([calm, math])])[0]!;
  assert.equal(node.icon.name, "beaker");
  assert.match(node.description, /^100 % .* · unchanged since M1$/);
});

test("what a later stage cannot measure stays lost; a checkpoint that was not checked is not taken for the newest", () => {
  const tool = "seesaw: 1\nbase: m0\nskills:\n  math: { probes: math.jsonl, check: { kind: text } }\nstages:\n" + ["math", "search", "tool"].map((id) => `  - { id: ${id}, recipe: sft, data: d.jsonl, args: { max_steps: 80 } }\n`).join("");
  const blind = finishedRun("tool", search, { "math.id": [20, 2] }, flagged(flagOf("not-measurable")));
  const [node] = skillNodes([viewOf([blind, search, math], tool)]);
  assert.match(node!.description, /^⚑ 3 % .* · −97 since M1$/);
  assert.match(node!.tooltip, /Flag of search: math \(in-domain\): loss confirmed/);
  const [unchecked] = skillNodes([viewOf([finishedRun("tool", search, {}), search, math], tool)]);
  assert.match(unchecked!.description, /^⚑ 31 % \(.*\) at M2 · −69 since M1$/);
});

test("nothing scored, no skills readable, several pipelines", () => {
  assert.deepEqual(skillNodes([makeView()]).map(({ description, children }) => [description, children.length]), Array.from({ length: 3 }, () => ["not checked yet", 0]));
  const [broken] = skillNodes([makeView({ text: "seesaw: 1\n" })]);
  assert.deepEqual([broken?.label, broken?.opens], ["seesaw.yaml has errors", "pipeline"]);
  const other = { ...makeView(), uri: { fsPath: "/w/slope/seesaw.yaml" } as ReturnType<typeof makeView>["uri"] };
  const nodes = skillNodes([makeView(), other]);
  assert.deepEqual(nodes.map(({ context }) => context), ["pipeline", "pipeline"]);
  const ids = nodes.flatMap((node) => [node.id, ...node.children.map(({ id }) => id)]);
  assert.equal(new Set(ids).size, ids.length);
});
