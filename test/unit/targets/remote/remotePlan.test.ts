import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { buildChain } from "../../../../src/domain/run/chain.ts";
import { freezeRun, planStage } from "../../../../src/targets/freezeRun.ts";
import { FileHasher } from "../../../../src/targets/hashFiles.ts";
import { checkedPipeline, requirePipeline } from "../../../../src/targets/pipelineFile.ts";
import type { RemotePlan } from "../../../../src/targets/remote/port.ts";
import { gatherFiles } from "../../../../src/targets/remote/remoteInputs.ts";
import { planModels } from "../../../../src/targets/remote/remoteModels.ts";
import { nextAttempt, remotePlan } from "../../../../src/targets/remote/remotePlan.ts";

const dir = mkdtempSync(join(tmpdir(), "seesaw-plan-"));
const root = join(dir, "work");
const lib = join(dir, "lib");
const there = { dir: "/srv/seesaw", python: "/opt/python3" };
const settings = { id: "box", kind: "ssh", host: "gpu-box", python: "python3", dir: "~/seesaw" } as const;
const file = (path: string, text = path): void => {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
};
const model = (folder: string): void => {
  file(join(folder, "model.safetensors"));
  file(join(folder, "config.json"), "{}");
};

before(() => {
  for (const name of ["data/a.jsonl", "data/b.jsonl", "p.jsonl", "ood.jsonl", "reworded.jsonl"]) file(join(root, name), `{"text": "${name}"}\n`);
  file(join(root, "acc.yaml"), "compute_environment: LOCAL_MACHINE\n");
  file(join(root, "template.jinja"), "{{ messages }}");
  file(join(root, "rewards.py"), "import math, helper\nfrom pieces import one\nimport torch\n");
  file(join(root, "helper.py"), "import os\n");
  file(join(root, "pieces/__init__.py"));
  file(join(root, "pieces/one.py"));
  file(join(root, "unrelated.py"));
  file(join(root, "tasks/mine.yaml"));
  file(join(root, "tools/train.py"), "from common import x\n");
  file(join(root, "tools/common.py"));
  file(join(root, "tools/conf.yaml"));
  file(join(lib, "checks/own.py"), "import beside\n");
  file(join(lib, "beside.py"));
  model(join(root, "models/m0"));
  model(join(dir, "teacher"));
});
after(() => rmSync(dir, { recursive: true, force: true }));

async function planOf(stage: string, extra = ""): Promise<RemotePlan> {
  const text = `seesaw: 1
base: models/m0
skills:
  math: { probes: p.jsonl, ood: ood.jsonl, check: { kind: function, function: "checks.own:ok", path: ${lib} } }
benchmark: { lm_eval: [mine], include_path: tasks }
stages:
${stage}
targets: { box: { kind: ssh, host: gpu-box, dir: ~/seesaw } }
${extra}`;
  const pipeline = requirePipeline(checkedPipeline(text, join(root, "seesaw.yaml")));
  file(pipeline.file, text);
  const hasher = new FileHasher(null);
  const last = pipeline.stages.at(-1)?.id ?? "";
  const plan = await planStage(pipeline, last, buildChain(pipeline, []), hasher);
  const spec = freezeRun(pipeline, plan, { id: `${last}-20260101T000000-abcd`, trusted: true, target: { id: "box", kind: "ssh", python: there.python }, env: plan.stage.env, versions: {}, created: 1 });
  const { models } = await planModels(spec, settings, there.dir, hasher, join(root, ".seesaw/cache"));
  const { objects, tree } = await gatherFiles(spec, hasher);
  return remotePlan({ spec, dir: join(root, ".seesaw/runs", spec.id), attempt: 1, nonce: "0123456789abcdef", settings, address: "gpu-box", where: there, runner: "aabbccddeeff", objects, tree, models });
}

/** Every text anywhere in a value, with its place. */
function texts(value: unknown, place = ""): [string, string][] {
  if (typeof value === "string") return [[place, value]];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, item]) => [[`${place}/${key}`, key] as [string, string], ...texts(item, `${place}/${key}`)]);
}

function mustBeThere(plan: RemotePlan): void {
  const { spec, attemptSpec, remote } = plan;
  for (const [place, text] of texts({ spec, attemptSpec })) assert.ok(!text.includes(dir), `a path of this machine is left at ${place}: ${text}`);
  const sent = plan.inputs.map((input) => input.remote);
  assert.equal(new Set(sent).size, sent.length, "two inputs have one place");
  const holds = (path: string): boolean => sent.some((one) => one === path || one.startsWith(`${path}/`));
  for (const [place, text] of texts(spec)) {
    for (const path of text.match(/\/srv\/seesaw\/[\w./-]+/g) ?? []) {
      if (place === "/pipeline/root" || place.startsWith("/env/") || path.startsWith(remote.dir)) continue;
      assert.ok(holds(path.replace(/\/\*$/, "")), `${place} names ${path}, which is not sent`);
    }
  }
}
const remoteOf = (plan: RemotePlan, name: string): string | undefined => plan.inputs.find(({ local }) => local === join(root, name) || local === join(lib, name))?.remote;

test("a stage's data, probes, template and launcher go by what they hold; code keeps its place", async () => {
  const plan = await planOf(`  - { id: math, recipe: sft, data: data/a.jsonl, on: box, args: { chat_template_path: template.jinja, max_steps: 4 }, launch: { kind: accelerate, processes: 2, config: acc.yaml }, env: { WHERE: ${join(root, "x")} } }`);
  mustBeThere(plan);
  const { spec, remote, attemptSpec } = plan;
  assert.match(spec.data ?? "", /^\/srv\/seesaw\/objects\/[0-9a-f]{64}\/a\.jsonl$/);
  assert.match(spec.skills[0]?.probes.ood ?? "", /^\/srv\/seesaw\/objects\/[0-9a-f]{64}\/ood\.jsonl$/);
  assert.match(spec.base, /^\/srv\/seesaw\/models\/[0-9a-f]{64}$/);
  assert.equal(spec.start.checkpoint, spec.base);
  assert.equal(remote.dir, `/srv/seesaw/runs/${plan.id}`);
  assert.equal(spec.pipeline.root, `/srv/seesaw/work/${plan.id}`);
  assert.equal(remoteOf(plan, "template.jinja"), `${spec.pipeline.root}/template.jinja`);
  assert.equal(spec.args["chat_template_path"], "template.jinja");
  assert.deepEqual(attemptSpec.argv.slice(0, 5), ["/opt/python3", "-m", "accelerate.commands.launch", "--config_file", spec.launch.config]);
  assert.equal(attemptSpec.argv.at(-1), remote.dir);
  assert.equal(attemptSpec.cwd, spec.pipeline.root);
  assert.equal(spec.env["WHERE"], `${spec.pipeline.root}/x`);
  assert.equal(attemptSpec.fate, false);
  assert.equal(attemptSpec.check, undefined, "everything was checked on that very machine");
});

test("the environment is the target's: no path and no thread count of this machine", async () => {
  process.env["PYTHONPATH"] = join(dir, "mine");
  try {
    const { attemptSpec } = await planOf("  - { id: math, recipe: sft, data: data/a.jsonl, on: box, env: { PYTHONPATH: /opt/lib, A: b } }");
    assert.equal(attemptSpec.env["PYTHONPATH"], "/srv/seesaw/runner/aabbccddeeff:/opt/lib");
    assert.equal(attemptSpec.env["A"], "b");
    assert.equal(attemptSpec.env["OMP_NUM_THREADS"], undefined);
    assert.equal(attemptSpec.env["HF_HUB_OFFLINE"], "1");
  } finally {
    delete process.env["PYTHONPATH"];
  }
});

test("a check function brings its package and what it imports from its folder, a reward likewise, and nothing else", async () => {
  const plan = await planOf(`  - { id: math, recipe: grpo, data: data/a.jsonl, on: box, options: { rewards: [{ function: "rewards:score" }, { skill: math }] } }`);
  mustBeThere(plan);
  const check = plan.spec.skills[0]?.check as { path?: string };
  assert.match(check.path ?? "", /^\/srv\/seesaw\/work\/[\w-]+\/outside\/[0-9a-f]{12}$/);
  assert.equal(remoteOf(plan, "checks/own.py"), `${check.path}/checks/own.py`);
  assert.equal(remoteOf(plan, "beside.py"), `${check.path}/beside.py`);
  const work = plan.spec.pipeline.root;
  for (const name of ["rewards.py", "helper.py", "pieces/__init__.py", "pieces/one.py", "tasks/mine.yaml", "seesaw.yaml"]) assert.equal(remoteOf(plan, name), `${work}/${name}`, name);
  assert.equal(remoteOf(plan, "unrelated.py"), undefined);
  assert.equal(plan.spec.benchmark?.include_path, `${work}/tasks`);
});

test("a command keeps the places of its files, in a list and in a shell line", async () => {
  const list = await planOf(`  - { id: own, recipe: command, data: data/a.jsonl, on: box, options: { run: [python, train.py, "--config=${join(root, "tools/conf.yaml")}", "{data}"], cwd: tools, checkpoints: "${join(root, "tools")}/out/*" } }`);
  const { options, pipeline } = list.spec;
  assert.deepEqual(options?.["run"], ["python", "train.py", `--config=${pipeline.root}/tools/conf.yaml`, "{data}"]);
  assert.equal(options?.["cwd"], `${pipeline.root}/tools`);
  assert.equal(options?.["checkpoints"], `${pipeline.root}/tools/out/*`);
  for (const name of ["tools/train.py", "tools/common.py", "tools/conf.yaml"]) assert.equal(remoteOf(list, name), `${pipeline.root}/${name}`);
  for (const [place, text] of texts(list.spec)) assert.ok(!text.includes(dir), `${place}: ${text}`);
  const line = await planOf(`  - { id: own, recipe: command, on: box, options: { run: "cd ${join(root, "tools")} && python ${join(root, "tools/train.py")} > out.log", checkpoints: "out/*" } }`);
  assert.equal(line.spec.options?.["run"], `cd ${line.spec.pipeline.root}/tools && python ${line.spec.pipeline.root}/tools/train.py > out.log`);
});

test("models are sent once each, under the name of what they hold, and options name them there", async () => {
  const plan = await planOf(`  - { id: math, recipe: sft, data: data/a.jsonl }
  - { id: mix, recipe: distill, from: base, data: data/b.jsonl, on: box, options: { teachers: { math: "${join(dir, "teacher")}" } } }`);
  mustBeThere(plan);
  const models = plan.inputs.filter(({ kind }) => kind === "model");
  assert.deepEqual(models.map(({ local }) => local), [join(root, "models/m0"), join(dir, "teacher")]);
  const teacher = models[1]?.remote ?? "";
  assert.deepEqual(plan.spec.options?.["teachers"], { math: teacher });
  assert.equal(plan.spec.models?.[teacher]?.checkpoint, teacher);
  assert.equal(basename(teacher), models[1]?.sha256);
});

test("an adapter is sent with a configuration that names its base as the target has it", async () => {
  const adapter = join(dir, "adapter");
  file(join(adapter, "adapter_model.safetensors"));
  file(join(adapter, "adapter_config.json"), JSON.stringify({ r: 8, base_model_name_or_path: join(dir, "teacher") }));
  const plan = await planOf(`  - { id: mix, recipe: merge, on: box, options: { method: average, models: ["${adapter}", base] } }`);
  mustBeThere(plan);
  const sent = plan.inputs.find(({ local }) => local.includes(join(".seesaw", "cache", "remote")));
  const config = JSON.parse(readFileSync(join(sent?.local ?? "", "adapter_config.json"), "utf8")) as Record<string, unknown>;
  assert.equal(config["base_model_name_or_path"], plan.inputs.find(({ local }) => local === join(dir, "teacher"))?.remote);
  assert.equal(readFileSync(join(sent?.local ?? "", "adapter_model.safetensors"), "utf8"), join(adapter, "adapter_model.safetensors"));
});

test("a buffer's rows come from the files as they lie there", async () => {
  const plan = await planOf(`  - { id: math, recipe: sft, data: data/a.jsonl }
  - { id: b, recipe: sft, from: base, data: data/b.jsonl, on: box, replay: { buffer: main, ratio: 0.1 } }`, "buffers: { main: { from: [math], rows: 10, near: { rows: p.jsonl, lines: [1] } } }");
  mustBeThere(plan);
  const { replay } = plan.spec;
  assert.equal(replay?.from[0]?.data, remoteOf(plan, "data/a.jsonl"));
  assert.equal(replay?.near?.rows, remoteOf(plan, "p.jsonl"));
});

test("the next attempt has its own mark and epoch, and the runner as it is now", async () => {
  const plan = await planOf("  - { id: math, recipe: sft, data: data/a.jsonl, on: box }");
  const remote = { ...plan.remote, attempts: [{ attempt: 1, nonce: "0123456789abcdef", state: "submitted" as const, job: { id: "1", nonce: "0123456789abcdef" }, asked: 1 }] };
  const next = nextAttempt(plan, { attempt: 2, nonce: "fedcba9876543210", runner: "112233445566", remote });
  assert.deepEqual(next.remote.attempts.map(({ attempt, state }) => [attempt, state]), [[1, "submitted"], [2, "prepared"]]);
  assert.equal(next.remote.runner, "/srv/seesaw/runner/112233445566");
  assert.equal(next.attemptSpec.env["PYTHONPATH"], next.remote.runner);
  assert.deepEqual([next.attemptSpec.epoch, next.attemptSpec.nonce, next.attempt], [2, "fedcba9876543210", 2]);
  assert.deepEqual(next.attemptSpec.argv, plan.attemptSpec.argv);
  const settings = { id: "box", kind: "slurm", host: null, python: "/opt/python3", dir: "/srv/seesaw", resources: {} } as const;
  const job = nextAttempt(plan, { attempt: 2, nonce: "fedcba9876543210", runner: "112233445566", remote: { ...remote, settings } });
  assert.deepEqual(job.attemptSpec.check, ["/opt/python3", "-m", "seesaw_runner.node_check", plan.remote.dir], "a job may get another machine");
});

test("where a stage runs and what it asks for there is not part of its fingerprint; how many processes there are in all is", async () => {
  const mark = async (stage: string): Promise<string> => {
    const text = `seesaw: 1
base: models/m0
skills: { math: { probes: p.jsonl, check: { kind: text } } }
stages: [{ id: math, recipe: sft, data: data/a.jsonl, ${stage} }]
targets: { box: { kind: ssh, host: a, dir: /s }, cluster: { kind: slurm, dir: /s, resources: { gpus: 4 } } }
`;
    const pipeline = requirePipeline(checkedPipeline(text, join(root, "seesaw.yaml")));
    return (await planStage(pipeline, "math", buildChain(pipeline, []), new FileHasher(null))).fingerprint;
  };
  const one = await mark("on: local");
  assert.equal(await mark("on: box"), one);
  assert.equal(await mark("on: cluster, resources: { time: 90, partition: gpu }"), one);
  const four = await mark("on: local, launch: { kind: torchrun, processes: 4 }");
  assert.notEqual(four, one);
  assert.equal(await mark("on: cluster, launch: { kind: torchrun, processes: 2 }, resources: { nodes: 2 }"), four);
  assert.notEqual(await mark("on: cluster, launch: { kind: torchrun, processes: 4 }, resources: { nodes: 2 }"), four);
});
