import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdtemp, readFile, readdir, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { OnnxScorer } from "../../../src/inference/onnxScorer.ts";
import type { ScoredRow } from "../../../src/inference/scorer.ts";
import { ThreadScorer } from "../../../src/inference/threadScorer.ts";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const python = join(root, ".venv", process.platform === "win32" ? "Scripts/python.exe" : "bin/python");
const worker = new URL("../../../src/inference/scorerWorker.ts", import.meta.url);
const tolerance = 1e-4;

/** What the runner says of a row (make_models.py). */
interface Expected {
  row: unknown;
  prompt: string;
  reference: string;
  ends: number[];
  ids: number[];
  logprob: number[];
  entropy: number[];
  rank: number[];
  topk_ids: number[][];
  topk_logprob: number[][];
}

let dir = "";
let graphs = "";
let scorer: OnnxScorer;

before(async () => {
  dir = await mkdtemp(join(tmpdir(), "seesaw-live-"));
  graphs = join(dir, "graphs");
  const env = { ...process.env, PYTHONPATH: join(root, "runner"), OMP_WAIT_POLICY: "passive", OMP_NUM_THREADS: "1", HF_HUB_OFFLINE: "1" };
  await promisify(execFile)(python, [fileURLToPath(new URL("make_models.py", import.meta.url)), join(root, "media/sample"), dir], { env });
  scorer = new OnnxScorer();
});

after(async () => {
  await scorer?.dispose();
  await rm(dir, { recursive: true, force: true });
});

const expectedOf = async (name: string): Promise<Expected[]> => JSON.parse(await readFile(join(dir, `${name}.scores.json`), "utf8")) as Expected[];
const request = (row: unknown, names: readonly string[], topK = 8) => ({ row: typeof row === "string" ? row : JSON.stringify(row), checkpoints: names.map((name) => ({ label: name, folder: join(dir, name) })), graphs, topK });

async function scoreOne(row: unknown, name: string): Promise<ScoredRow> {
  const [result] = await scorer.score(request(row, [name]));
  assert.ok(result?.scored, result?.why ?? "nothing came back");
  return result.scored;
}

async function whyNot(row: unknown, name: string, by = scorer): Promise<string> {
  const [result] = await by.score(request(row, [name]));
  assert.equal(result?.scored, null);
  return result?.why ?? "";
}

function assertNear(actual: ArrayLike<number>, expected: readonly number[], what: string): void {
  assert.equal(actual.length, expected.length, what);
  expected.forEach((value, index) => assert.ok(Math.abs((actual[index] as number) - value) <= tolerance, `${what}[${index}]: ${actual[index]} against ${value}`));
}

for (const [name, kind, rows] of [
  ["m0", "the sample's base model, float16 in the file", 200],
  ["trained", "a checkpoint of the same architecture, by the same graph", 10],
  ["sharded", "weights in several files", 10],
  ["bfloat16", "bfloat16 in the file", 10],
  ["adapter", "a LoRA checkpoint, merged here", 10],
  ["patterned", "a LoRA checkpoint whose modules differ in rank and alpha, scaled by the root of the rank", 10],
  ["untied", "Llama with a head of its own, biases, shared keys and llama3 rotary embedding", 10],
  ["mistral", "Mistral", 10],
  ["qwen2", "Qwen2, with biases", 10],
  ["qwen3", "Qwen3, with normed heads", 10],
] as const) {
  test(`the runner's numbers within ${tolerance}: ${kind}`, async () => {
    const all = await expectedOf(name);
    assert.ok(all.length >= rows, `only ${all.length} rows were scored by the runner`);
    for (const expected of all) {
      const { prompt, reference, scores, vocabulary } = await scoreOne(expected.row, name);
      assert.deepEqual({ prompt, reference, ids: [...scores.ids], ends: [...scores.ends] }, { prompt: expected.prompt, reference: expected.reference, ids: expected.ids, ends: expected.ends });
      assertNear(scores.logprob, expected.logprob, "logprob");
      assertNear(scores.entropy, expected.entropy, "entropy");
      assertNear(scores.topkLogprob, expected.topk_logprob.flat(), "top-k logprob");
      assert.deepEqual([...scores.rank], expected.rank);
      assert.ok(scores.topkIds.every((id) => vocabulary.has(id)));
    }
  });
}

test("a change of the weights is seen, and other weights give other numbers", async () => {
  const [{ row } = { row: "" }] = await expectedOf("trained");
  const [one, other] = [await scoreOne(row, "trained"), await scoreOne(row, "sharded")];
  assert.ok(one.scores.logprob.some((value, index) => Math.abs(value - (other.scores.logprob[index] as number)) > 0.01));
  const folder = join(dir, "changing");
  await cp(join(dir, "trained"), folder, { recursive: true });
  const first = await scoreOne(row, "changing");
  const file = await readFile(join(folder, "model.safetensors"));
  file.fill(0, file.length - 4000);
  await writeFile(join(folder, "model.safetensors"), file);
  assert.notDeepEqual((await scoreOne(row, "changing")).scores.logprob, first.scores.logprob);
});

test("what is wrong with a checkpoint is a sentence, and the others are scored", async () => {
  const [{ row } = { row: "" }] = await expectedOf("trained");
  const spoiled = async (name: string, spoil: (folder: string) => Promise<void>): Promise<string> => {
    await cp(join(dir, "trained"), join(dir, name), { recursive: true });
    await spoil(join(dir, name));
    return name;
  };
  const config = async (folder: string, change: object): Promise<void> => {
    const path = join(folder, "config.json");
    await writeFile(path, JSON.stringify({ ...(JSON.parse(await readFile(path, "utf8")) as object), ...change }));
  };
  const half = await spoiled("half", (folder) => truncate(join(folder, "model.safetensors"), 900_000));
  const [bad, good] = await scorer.score(request(row, [half, "trained"]));
  assert.match(bad?.why ?? "", /model\.safetensors has 900000 of \d+ bytes\. It may still be being written/);
  assert.ok(good?.scored);
  const begun = await spoiled("begun", (folder) => truncate(join(folder, "model.safetensors"), 5));
  assert.match(await whyNot(row, begun), /shorter \(5 bytes\)/);
  const none = await spoiled("none", (folder) => rm(join(folder, "model.safetensors")));
  assert.match(await whyNot(row, none), /no model\.safetensors/);
  const unknown = await spoiled("unknown", (folder) => config(folder, { rms_norm_eps: 0.5 }));
  assert.match(await whyNot(row, unknown), /no scoring graph for this model yet\. Run a stage once/);
  const odd = await spoiled("odd", (folder) => config(folder, { hidden_act: "gelu" }));
  await promisify(execFile)(python, ["-m", "seesaw_runner.export", "--checkpoint", join(dir, odd), "--out", graphs], { env: { ...process.env, PYTHONPATH: join(root, "runner") } }).catch(() => {});
  assert.match(await whyNot(row, odd), /activation silu, not gelu/);
  const names = await spoiled("names", async (folder) => {
    const path = join(folder, "model.safetensors");
    const bytes = await readFile(path);
    // The header keeps its length: only the name of one tensor changes.
    await writeFile(path, Buffer.from(bytes.toString("latin1").replace("model.norm.weight", "model.morn.weight"), "latin1"));
  });
  assert.match(await whyNot(row, names), /no tensor model\.norm\.weight/);
});

test("an adapter that cannot be merged exactly is refused in a sentence that names why", async () => {
  const [{ row } = { row: "" }] = await expectedOf("trained");
  const folder = join(dir, "odd-adapter");
  await cp(join(dir, "adapter"), folder, { recursive: true });
  const path = join(folder, "adapter_config.json");
  const config = JSON.parse(await readFile(path, "utf8")) as object;
  for (const [change, why] of [
    [{ use_dora: true }, /uses DoRA \(use_dora\), which live scoring cannot merge exactly\. The scores of runs are not affected\.$/],
    [{ bias: "lora_only" }, /uses trained biases \(bias: "lora_only"\), which/],
    [{ lora_bias: true }, /uses a bias \(lora_bias\)/],
    [{ init_lora_weights: "pissa_niter_16" }, /uses weights begun as pissa_niter_16/],
    [{ rank_pattern: { "(?P<x>q_proj)": 2 } }, /has a rank_pattern that live scoring cannot read \(\(\?P<x>q_proj\): /],
    [{ rank_pattern: { q_proj: 2 } }, /holds matrices of rank 4 for model\.layers\.0\.self_attn\.q_proj, and its adapter_config\.json says 2/],
  ] as const) {
    await writeFile(path, JSON.stringify({ ...config, ...change }));
    assert.match(await whyNot(row, "odd-adapter"), why);
  }
});

test("what is wrong with a row is a sentence", async () => {
  const chat = (content: unknown) => ({ messages: [{ role: "user", content: "Hi" }, { role: "assistant", content }] });
  await assert.rejects(scorer.score(request("{", ["m0"])), /The row is no valid JSON/);
  await assert.rejects(scorer.score(request("[1]", ["m0"])), /no JSON object/);
  await assert.rejects(scorer.score(request({ what: 1 }, ["m0"])), /none of the known shapes/);
  await assert.rejects(scorer.score(request({ messages: [{ role: "user", content: "Hi" }] }, ["m0"])), /no assistant message/);
  assert.match(await whyNot(chat("word ".repeat(400)), "m0"), /can be scored up to 256\. Shorten it/);
  assert.match(await whyNot({ messages: [{ role: "owl", content: "Hi" }, { role: "assistant", content: "x" }] }, "m0"), /The chat template rejects this row: This template knows the roles/);
});

test("too little memory is refused, and what was used longest ago makes room", async () => {
  const rows = await expectedOf("trained");
  const { row } = rows[0] as Expected;
  const small = new OnnxScorer(1_000_000);
  assert.match(await whyNot(row, "trained", small), /need 0\.00 GiB of memory as float32, and live scoring takes 0\.00 GiB at most/);
  // Room for one and a half: every checkpoint pushes the other out, and the numbers stay right.
  const tight = new OnnxScorer(2_600_000);
  for (const name of ["trained", "m0", "trained"]) {
    const [result] = await tight.score(request(row, [name]));
    const expected = (await expectedOf(name)).find((one) => JSON.stringify(one.row) === JSON.stringify(row)) as Expected;
    assertNear(result?.scored?.scores.logprob ?? [], expected.logprob, name);
  }
  await tight.dispose();
  await small.dispose();
});

test("a thread scores, cancels, ends when told to, and a new one starts", async () => {
  const { row, logprob } = (await expectedOf("m0"))[0] as Expected;
  for (const _ of [1, 2]) {
    const thread = new ThreadScorer(worker);
    const [result] = await thread.score(request(row, ["m0"]));
    assertNear(result?.scored?.scores.logprob ?? [], logprob, "logprob");
    const told: number[] = [];
    await thread.score(request(row, ["m0", "m0"]), undefined, (count) => told.push(count));
    assert.deepEqual(told, [1, 2], "told after every checkpoint");
    const abort = new AbortController();
    const running = thread.score(request(row, Array.from({ length: 300 }, () => "m0")), abort.signal);
    abort.abort();
    await assert.rejects(running, { reason: "cancelled" });
    await assert.rejects(thread.score(request("{", ["m0"])), { reason: "bad-input", message: /no valid JSON/ });
    assert.equal(thread.running, true);
    thread.dispose();
    assert.equal(thread.running, false);
    await thread.ended;
    await assert.rejects(thread.score(request(row, ["m0"])), { reason: "cancelled" });
  }
});

test("an idle thread gives its memory back", async () => {
  const { row } = (await expectedOf("m0"))[0] as Expected;
  const thread = new ThreadScorer(worker, 20);
  await thread.score(request(row, ["m0"]));
  await new Promise((resolve) => setTimeout(resolve, 150));
  assert.equal(thread.running, false);
  await thread.ended;
  assert.ok((await thread.score(request(row, ["m0"])))[0]?.scored);
  thread.dispose();
  await thread.ended;
});

test("every model of this test has a graph, and equal architectures share one", async () => {
  assert.equal((await readdir(graphs)).filter((name) => name.endsWith(".onnx")).length, 5);
});
