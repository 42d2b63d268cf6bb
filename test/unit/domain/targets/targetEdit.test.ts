import assert from "node:assert/strict";
import { test } from "node:test";
import { newTargetEdit, parsePipeline } from "../../../../src/domain/pipeline/pipeline.ts";
import { applyChanges } from "../../../../src/domain/pipeline/yamlEdits.ts";
import { remoteKinds, type RemoteKind } from "../../../../src/protocol/remote.ts";

const base = `seesaw: 1
base: m0
skills:
  math: { probes: math.jsonl, check: { kind: text } }
stages:
  - { id: math, recipe: sft, data: math.jsonl } # the first
`;

function added(text: string, kind: RemoteKind): { text: string; id: string; filled: string } {
  const edit = newTargetEdit(text, kind);
  assert.ok(edit);
  const after = applyChanges(text, edit.changes);
  return { text: after, id: edit.id, filled: after.slice(edit.fill.offset, edit.fill.offset + edit.fill.length) };
}

test("a target of every kind can be added, the file stays valid, and the cursor stands on what is to be filled in", () => {
  const filled = { ssh: "your-gpu-box", slurm: "your-login-node", ray: "http://your-head:8265" };
  for (const text of [base, base.trimEnd(), base.replaceAll("\n", "\r\n"), `${base}targets:\n  gpu: { kind: local } # mine\n`, `${base}targets: { gpu: { kind: local } }\n`, `${base}targets:\n`]) {
    for (const kind of remoteKinds) {
      const made = added(text, kind);
      const { pipeline, diagnostics } = parsePipeline(made.text, "/w/seesaw.yaml");
      assert.deepEqual(diagnostics.filter(({ severity }) => severity === "error"), [], made.text);
      assert.equal(pipeline?.targets.find(({ id }) => id === made.id)?.kind, kind);
      assert.equal(made.filled, filled[kind]);
      assert.ok(made.text.includes("# the first"), "comments stay");
    }
  }
});

test("a name that is taken is not taken again; a file with errors is left alone", () => {
  const once = added(base, "ssh");
  const twice = added(once.text, "ssh");
  assert.deepEqual([once.id, twice.id], ["box", "box-2"]);
  assert.equal(parsePipeline(twice.text, "/w/seesaw.yaml").pipeline?.targets.length, 3);
  assert.equal(newTargetEdit("stages: [", "ssh"), null);
});
