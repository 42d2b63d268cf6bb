import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { stringify } from "yaml";
import { arenaYaml } from "../../../../src/domain/arena/arenaYaml.ts";
import { compileArena, type StepsOf } from "../../../../src/domain/arena/compileArena.ts";
import { parsePipeline } from "../../../../src/domain/pipeline/pipeline.ts";
import type { Pipeline } from "../../../../src/domain/pipeline/pipelineModel.ts";

function pipelineOf(arena: string, stages?: string, buffers = ""): Pipeline {
  const text = `seesaw: 1
base: models/m0
skills:
  math: { probes: m.jsonl, check: { kind: number-after, marker: so } }
  tool: { probes: t.jsonl, check: { kind: json-tool-call } }
  chat: { probes: c.jsonl, check: { kind: text } }
stages:
${stages ?? `  - { id: math, recipe: sft, data: m.train.jsonl, args: { max_steps: 80, learning_rate: 1.0e-3, max_length: 64 } }
  - { id: tool, recipe: sft, data: t.train.jsonl, args: { max_steps: 120, learning_rate: 7.0e-4 } }
  - { id: chat, recipe: sft, data: c.train.jsonl, args: { max_steps: 100, learning_rate: 5.0e-4, max_length: 64 } }`}
${buffers}arena:
  remedies:
${arena.split("\n").map((line) => `    - ${line}`).join("\n")}
`;
  const { pipeline, diagnostics } = parsePipeline(text, "/p/seesaw.yaml");
  assert.deepEqual(diagnostics, []);
  assert.ok(pipeline);
  return pipeline;
}

function compile(arena: string, stepsOf?: StepsOf, stages?: string, buffers?: string) {
  const pipeline = pipelineOf(arena, stages, buffers);
  assert.ok(pipeline.arena);
  const compiled = compileArena(pipeline, pipeline.arena, "/p/.seesaw/arena/mix.jsonl", stepsOf);
  // What is made is an ordinary pipeline: it passes the checks of any other.
  const raw = { seesaw: 1, base: pipeline.base, skills: Object.fromEntries(pipeline.skills.map(({ id, probes, check }) => [id, { probes: probes.id, check }])), stages: compiled.stages, ...(Object.keys(compiled.buffers).length > 0 && { buffers: compiled.buffers }) };
  const read = parsePipeline(stringify(raw), "/p/.seesaw/arena/seed-0/seesaw.yaml");
  assert.deepEqual(read.diagnostics.map(({ message }) => message), []);
  const stage = (id: string) => {
    const found = compiled.stages.find((one) => one.id === id);
    assert.ok(found, `${id} among ${compiled.stages.map((one) => one.id).join(", ")}`);
    return found;
  };
  return { ...compiled, stage };
}

test("the chain is always there, and is run as it stands", () => {
  const { systems, stages } = compile("{ kind: joint }");
  assert.deepEqual(systems.map(({ id, end }) => [id, end]), [["chain", "chat"], ["joint", "joint"]]);
  assert.deepEqual(stages.slice(0, 3).map(({ id, from, args }) => [id, from, args?.["max_steps"]]), [["math", "base", 80], ["tool", "math", 120], ["chat", "tool", 100]]);
});

test("replay runs the chain again from where something is replayed, each stage with the ones before it", () => {
  const { systems, stage, buffers } = compile("{ kind: replay, ratio: 0.2, rows: 50 }");
  assert.deepEqual(systems[1]?.own, ["math", "replay-20-tool", "replay-20-chat"]);
  assert.deepEqual([stage("replay-20-tool").from, stage("replay-20-tool").replay, stage("replay-20-chat").from], ["math", { buffer: "replay-20-tool-buffer", ratio: 0.2 }, "replay-20-tool"]);
  assert.deepEqual(buffers["replay-20-chat-buffer"], { from: ["math", "replay-20-tool"], rows: 50 });
});

test("specialists are shared: the first is the chain's own, the others start from the base and replay nothing", () => {
  const { systems, stage, stages } = compile("{ kind: oracle-sft }\n{ kind: distill, loss: forward-kl }\n{ kind: merge, method: ties, weight: 0.4, density: 0.3 }");
  assert.equal(stages.filter(({ id }) => id.startsWith("specialist-")).length, 2);
  assert.equal(stage("specialist-tool").from, "base");
  assert.deepEqual(stage("oracle-sft").options?.["oracles"], { math: "math", tool: "specialist-tool", chat: "specialist-chat" });
  assert.deepEqual(stage("distill-forward-kl").options, { teachers: { math: "math", tool: "specialist-tool", chat: "specialist-chat" }, max_new_tokens: 256, loss: "forward-kl" });
  assert.deepEqual(stage("merge-ties").options, { method: "ties", models: ["math", "specialist-tool", "specialist-chat"], weight: 0.4, density: 0.3 });
  assert.ok(systems.slice(1).every(({ shared, own }) => own.length === 1 && shared.includes("specialist-tool") && shared.includes("chat")));
});

test("a remedy over all skills takes the chain's steps and what every trainer knows of its arguments", () => {
  const { stage } = compile("{ kind: joint, args: { learning_rate: 2.0e-3 } }\n{ kind: distill, id: opd }\n{ kind: self-distill }");
  assert.deepEqual(stage("joint").args, { learning_rate: 2e-3, max_steps: 300 });
  assert.deepEqual(stage("opd").args, { learning_rate: 5e-4, max_steps: 300 });
  assert.deepEqual([stage("joint").from, stage("joint").data, stage("joint").options], ["base", "/p/.seesaw/arena/mix.jsonl", { balance: "data_source" }]);
  assert.deepEqual([stage("self-distill").from, stage("self-distill").options], ["chat", { domain_field: "data_source", max_new_tokens: 256 }]);
});

test("a budget scales every remedy, stage by stage", () => {
  const half: StepsOf = (_, stages) => stages.map(({ steps }) => steps / 2);
  const { stage } = compile("{ kind: replay }\n{ kind: joint }\n{ kind: experts }", half);
  assert.deepEqual(["replay-10-math", "replay-10-tool", "joint", "experts-chat"].map((id) => stage(id).args?.["max_steps"]), [40, 60, 150, 50]);
});

test("a sweep is a curve of its own systems; a merge without a weight has none", () => {
  const { systems } = compile("{ kind: merge, method: task-arithmetic, weight: 0.5, sweep: [0.3, 0.5, 1.0] }\n{ kind: merge, method: average, of: chain }");
  assert.deepEqual(systems.slice(1).map(({ id, sweep }) => [id, sweep]), [
    ["merge-task-arithmetic", { of: "merge-task-arithmetic", weight: 0.5 }], ["merge-task-arithmetic-w0_3", { of: "merge-task-arithmetic", weight: 0.3 }],
    ["merge-task-arithmetic-w1", { of: "merge-task-arithmetic", weight: 1 }], ["merge-average-chain", null],
  ]);
});

test("experts are one for each skill and a router; together, each replays the others", () => {
  const { stage, systems, buffers } = compile("{ kind: experts, adapter: { r: 4 } }\n{ kind: together, ratio: 0.3 }");
  assert.deepEqual([stage("experts-tool").recipe, stage("experts-tool").from, stage("experts-tool").adapter], ["experts", "base", { r: 4 }]);
  assert.deepEqual(stage("experts-router").options?.["experts"], { math: "experts-math", tool: "experts-tool", chat: "experts-chat" });
  assert.deepEqual(systems[2]?.end, "together-30-router");
  assert.deepEqual(buffers["together-30-tool-buffer"]?.from, ["math", "chat"]);
});

test("a chain that cannot be compared says why", () => {
  assert.throws(() => compile("{ kind: joint }", undefined, "  - { id: math, recipe: sft, data: m.jsonl, args: { max_steps: 5 } }"), /at least two stages that each teach the skill of their name: only "math" does/);
  assert.throws(() => compile("{ kind: joint }", undefined, "  - { id: math, recipe: sft, data: m.jsonl }\n  - { id: tool, recipe: sft, data: t.jsonl, args: { max_steps: 5 } }"), /how long the stage "math" is: write max_steps/);
  assert.throws(() => compile("{ kind: joint, id: tool }"), /two stages called "tool"/);
});

test("the sample's arena compiles", () => {
  const file = new URL("../../../../media/sample/arena/seesaw.yaml", import.meta.url);
  const { pipeline, diagnostics } = parsePipeline(readFileSync(file, "utf8"), "/s/arena/seesaw.yaml");
  assert.deepEqual(diagnostics, []);
  assert.ok(pipeline?.arena);
  const { systems, stages } = compileArena(pipeline, pipeline.arena, "/m.jsonl");
  assert.ok(systems.length >= 18 && new Set(stages.map(({ id }) => id)).size === stages.length);
});

test("a fork in the chain keeps its step, and what it forks from is saved there in the arena, too", () => {
  const stages = `  - { id: math, recipe: sft, data: m.train.jsonl, save_every: 20, args: { max_steps: 80 } }
  - { id: tool, recipe: sft, data: t.train.jsonl, from: math@40, args: { max_steps: 60 } }`;
  const { stage } = compile("{ kind: replay, ratio: 0.2, rows: 50 }", undefined, stages);
  assert.deepEqual([stage("math").save_every, stage("tool").from, stage("tool").save_every, stage("replay-20-tool").from], [20, "math@40", undefined, "math@40"]);
});

test("remedies run where the chain runs, with what it asks for there; a merge in one process", () => {
  const stages = ["math", "tool", "chat"].map((id) => `  - { id: ${id}, recipe: sft, data: ${id}.jsonl, args: { max_steps: 8 }, on: cluster, launch: { kind: torchrun, processes: 2 }, resources: { nodes: 2 } }`).join("\n");
  const text = `seesaw: 1
base: models/m0
skills: { math: { probes: m.jsonl, check: { kind: text } }, tool: { probes: t.jsonl, check: { kind: text } }, chat: { probes: c.jsonl, check: { kind: text } } }
stages:
${stages}
targets:
  cluster: { kind: slurm, host: login1, dir: ~/seesaw, resources: { gpus: 2, partition: gpu } }
  box: { kind: ssh, host: box, dir: /s }
arena: { remedies: [{ kind: joint }, { kind: merge, method: average }] }
`;
  const { pipeline, diagnostics } = parsePipeline(text, "/p/seesaw.yaml");
  assert.deepEqual(diagnostics, []);
  assert.ok(pipeline?.arena);
  const again = parsePipeline(arenaYaml(pipeline, compileArena(pipeline, pipeline.arena, "/p/mix.jsonl"), 0), "/p/.seesaw/arena/seed-0/seesaw.yaml");
  assert.deepEqual(again.diagnostics.map(({ message }) => message), []);
  assert.deepEqual(again.pipeline?.targets, pipeline.targets);
  const asked = Object.fromEntries(again.pipeline?.stages.map(({ recipe, launch, resources }) => [recipe, [launch, resources]]) ?? []);
  assert.deepEqual(asked["sft"], [{ kind: "torchrun", processes: 2, nodes: 2 }, { gpus: 2, partition: "gpu", nodes: 2 }]);
  assert.deepEqual(asked["merge"], [{ kind: "python", processes: 1 }, { gpus: 2, partition: "gpu", nodes: 1 }]);
});

test("a buffer of the chain keeps all that it was asked for, and brings the stage that judges its rows", () => {
  const { systems, stage, stages, buffers } = compile(
    "{ kind: joint }", undefined,
    `  - { id: math, recipe: sft, data: m.train.jsonl, args: { max_steps: 80 } }
  - { id: judge, recipe: command, from: base, options: { run: [python, train.py], checkpoints: "out/checkpoint-*" } }
  - { id: tool, recipe: sft, from: math, data: t.train.jsonl, args: { max_steps: 120 }, replay: { buffer: old, ratio: 0.2 } }`,
    `buffers:
  old: { from: [math], quotas: { math: 40 }, quality: { reward_model: judge, min: 0.5 }, diversity: { minhash: 0.7, clusters: 4 }, near: { rows: m.jsonl, lines: [3, 1] } }
  unused: { from: [judge], rows: 10 }
`,
  );
  assert.deepEqual(buffers, { old: { from: ["math"], rows: 40, quotas: { math: 40 }, quality: { reward_model: "judge", min: 0.5 }, diversity: { minhash: 0.7, clusters: { features: "tfidf", count: 4 } }, near: { rows: "/p/m.jsonl", lines: [1, 3] } } });
  assert.deepEqual(stages.map(({ id }) => id), ["math", "judge", "tool", "joint"]);
  assert.equal(stage("judge").from, "base");
  // The judge is run for the chain, and is no cost of a remedy that replays nothing.
  assert.deepEqual(systems.map(({ id, own, shared }) => [id, own, shared]), [["chain", ["math", "tool"], ["judge"]], ["joint", ["joint"], []]]);
});

test("a reward model that is a folder, a field and a reward stay what they were", () => {
  const { buffers } = compile(
    "{ kind: joint }", undefined,
    `  - { id: math, recipe: sft, data: m.train.jsonl, args: { max_steps: 80 } }
  - { id: tool, recipe: sft, data: t.train.jsonl, args: { max_steps: 120 }, replay: { buffer: b, ratio: 0.1 } }
  - { id: chat, recipe: sft, data: c.train.jsonl, args: { max_steps: 120 }, replay: { buffer: c, ratio: 0.1 } }`,
    `buffers:
  b: { from: [math], rows: 5, quality: { reward_model: ./judge, min: 1 }, diversity: minhash }
  c: { from: [math, tool], rows: 5, quality: { reward: 0.5 } }
`,
  );
  assert.deepEqual([buffers["b"]?.quality, buffers["b"]?.diversity, buffers["c"]?.quality], [{ reward_model: "/p/judge", min: 1 }, { minhash: 0.8 }, { reward: 0.5 }]);
});
