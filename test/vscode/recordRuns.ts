import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import Database from "better-sqlite3";
import { parsePipeline } from "../../src/domain/pipeline/pipeline.ts";
import type { Pipeline, Stage } from "../../src/domain/pipeline/pipelineModel.ts";
import { rowHashes } from "../../src/domain/rows/canonical.ts";
import { parseJson } from "../../src/domain/rows/jsonText.ts";
import type { EventBodies, EventType, FlagBody } from "../../src/protocol/journal.ts";
import type { ReplaySpec, RunSpec, Split } from "../../src/protocol/runSpec.ts";
import { makeScores, tokenize, type Knowledge } from "./madeUpScores.ts";

/**
 * Writes run folders as the runner would have left them, with invented scores: for tests of surfaces that show runs, where
 * training for a minute would prove nothing more. Every number follows from names, so the same call writes the same files.
 */
export interface RecordOptions {
  /** Folder with a `seesaw.yaml` and its data. */
  root: string;
  /** Stages to record, from the first; default: all. */
  stages?: string[];
  /** Unix seconds of the first run. */
  created?: number;
  /** Stages that have a failed run before their good one. */
  failedFirst?: string[];
}

/** Records the chain; returns the ids of the finished runs by stage. */
export function recordRuns(options: RecordOptions): Record<string, string> {
  const file = join(options.root, "seesaw.yaml");
  const { pipeline, diagnostics } = parsePipeline(readFileSync(file, "utf8"), file);
  if (pipeline === null) throw new Error(JSON.stringify(diagnostics));
  const ids: Record<string, string> = {};
  let created = options.created ?? 1_780_000_000;
  for (const stage of pipeline.stages) {
    if (options.stages !== undefined && !options.stages.includes(stage.id)) continue;
    if (options.failedFirst?.includes(stage.id)) writeFailedRun(pipeline, stage, ids, created - 300);
    ids[stage.id] = writeRun(pipeline, stage, ids, created);
    created += 60;
  }
  return ids;
}

function writeRun(pipeline: Pipeline, stage: Stage, ids: Readonly<Record<string, string>>, created: number): string {
  const { spec, dir, emit, flush } = newRun(pipeline, stage, ids, created);
  const steps = Number(stage.args["max_steps"] ?? 80);
  emit("run.started", { stage: stage.id, recipe: stage.recipe, device: "cpu", dtype: "float32", parameters: 812_000, trainable: 812_000, total_steps: steps, start_label: spec.start.label, rows: 512, replay_rows: 0, resumed_from: null, packages: {}, processes: 1 });
  const start = knowledgeAt(pipeline, stage.index - 1);
  const end = knowledgeAt(pipeline, stage.index);
  const points = [0, Math.round(steps / 4), Math.round(steps / 2), steps];
  for (const step of points) {
    const share = step / steps;
    const knowledge: Knowledge = Object.fromEntries(pipeline.skills.map(({ id }) => [id, (start[id] ?? 0) + ((end[id] ?? 0) - (start[id] ?? 0)) * Math.sqrt(share)]));
    emit("stage.progress", { phase: step === 0 ? "probe" : "train", step, total: steps, tokens_per_s: 21_000, eta_s: (1 - share) * 14 });
    if (step > 0) emit("metric", { step, values: { loss: 2.4 * Math.exp(-3 * share) + 0.08, learning_rate: 1e-3 * (1 - share) } });
    for (const skill of pipeline.skills) {
      for (const split of ["id", "ood"] as Split[]) {
        const probes = skill.probes[split];
        if (probes === undefined) continue;
        const trace = `traces/step-${String(step).padStart(6, "0")}/${skill.id}.${split}.trace`;
        const { correct, n, summary } = writeTrace(join(dir, trace), probes, { run: spec.id, stage: stage.id, step, skill: skill.id, split }, knowledge);
        emit("probe.scored", { step, skill: skill.id, split, trace, summary, seconds: 0.4 });
        emit("eval.result", { step, skill: skill.id, split, n, correct, seconds: 0.6 });
      }
    }
    for (const skill of pipeline.skills) {
      const fall = (start[skill.id] ?? 0) - (knowledge[skill.id] ?? 0);
      if (fall > 0.1 && step > 0) emit(step === points[1] ? "flag.raised" : "flag.changed", flagOf(skill.id, step, fall));
    }
  }
  emit("checkpoint.saved", { step: steps, path: `checkpoints/step-${String(steps).padStart(6, "0")}`, kind: "full", final: true, weights_hash: sha(spec.id), bytes: 1_638_400 });
  emit("probe.cost", { probe_s: 1.4, stage_s: 14, share: 0.1 });
  if (spec.replay !== null) writeReplay(dir, spec.replay, pipeline.root, steps);
  emit("run.finished", { reason: { kind: "done" } });
  flush();
  return spec.id;
}

function writeFailedRun(pipeline: Pipeline, stage: Stage, ids: Readonly<Record<string, string>>, created: number): void {
  const { emit, flush } = newRun(pipeline, stage, ids, created);
  const steps = Number(stage.args["max_steps"] ?? 80);
  emit("stage.progress", { phase: "train", step: 30, total: steps });
  emit("metric", { step: 30, values: { loss: "NaN" } });
  emit("run.finished", { reason: { kind: "failed", code: "nan-loss", message: "The loss became NaN at step 30.", where: "step 30" } });
  flush();
}

interface NewRun {
  spec: RunSpec;
  dir: string;
  emit<K extends EventType>(type: K, body: EventBodies[K]): void;
  flush(): void;
}

function newRun(pipeline: Pipeline, stage: Stage, ids: Readonly<Record<string, string>>, created: number): NewRun {
  const parent = stage.from === null ? null : ids[stage.from] ?? null;
  const parentStage = pipeline.stages.find(({ id }) => id === stage.from);
  const stamp = new Date(created * 1000).toISOString().replace(/[-:]/g, "").slice(0, 15);
  const id = `${stage.id}-${stamp}-${sha(stage.id).slice(0, 4)}`;
  const dir = join(pipeline.root, ".seesaw", "runs", id);
  mkdirSync(dir, { recursive: true });
  const spec: RunSpec = {
    schema: "1.0", id, stage: stage.id, index: stage.index, recipe: stage.recipe,
    pipeline: { file: pipeline.file, name: pipeline.name, root: pipeline.root },
    created,
    start: { checkpoint: pipeline.base, label: parentStage === undefined ? "M0" : `M${parentStage.index}`, run: parent, step: parent === null ? null : Number(parentStage?.args["max_steps"] ?? 80) },
    base: pipeline.base, data: stage.data, inputs: [], args: stage.args, adapter: stage.adapter, launch: stage.launch, seed: pipeline.seed, save_every: stage.save_every,
    skills: pipeline.skills.map(({ id: skill, probes, check, segments }) => ({ id: skill, probes, check, segments, own_stage: pipeline.stages.some((one) => one.id === skill) ? skill : null })),
    probe: stage.probe, flags: pipeline.flags, replay: replaySpec(pipeline, stage),
    target: { id: "local", kind: "local", python: "/nowhere/python" },
    env: stage.env, fingerprint: sha(id), trusted: true, versions: { python: "3.11.2" },
  };
  writeFileSync(join(dir, "run.json"), JSON.stringify(spec, null, 2));
  const lines: string[] = [];
  return {
    spec,
    dir,
    emit: (type, body) => void lines.push(JSON.stringify({ v: 1, seq: lines.length + 1, t: created + lines.length * 0.25, attempt: 1, type, ...body })),
    flush: () => writeFileSync(join(dir, "journal.jsonl"), `${lines.join("\n")}\n`),
  };
}

/** How well each skill stands after `index` stages: learned in its own stage, pushed down by every later one. */
function knowledgeAt(pipeline: Pipeline, index: number): Knowledge {
  return Object.fromEntries(
    pipeline.skills.map(({ id }) => {
      const own = pipeline.stages.find((stage) => stage.id === id)?.index ?? 1;
      if (index < own) return [id, 0.05];
      return [id, Math.max(0.08, 0.97 - 0.42 * (index - own))];
    }),
  );
}

function flagOf(skill: string, step: number, fall: number): FlagBody {
  const state = fall > 0.3 ? "confirmed" : "drifting";
  const test = { lost: 31, gained: 2, n: 64, p: 1e-6, level: 0.0125, accuracy_start: 0.96, accuracy_now: 0.96 - fall };
  const points = { estimate: 90 * fall, low: 78 * fall, high: 101 * fall };
  const moved = [3, 11, 40].map((row, place) => ({ row, line: row + 1, tokens: [place + 4, place + 6], change: -5 * fall + place }));
  return {
    id: `${skill}.id`, skill, split: "id", step, state, value: points.estimate, lower: points.low, threshold: 2, noise: 0.01, level: 0.025, n: 64, detector: "soft", unit: "points", high: points.high, points, spent: 0.06, weak: false, margin: "all",
    moved, smallest_drop: 9.4, ...(state === "confirmed" ? { test } : {}),
  };
}

function writeTrace(path: string, probes: string, about: { run: string; stage: string; step: number; skill: string; split: Split }, knowledge: Knowledge): { correct: number; n: number; summary: EventBodies["probe.scored"]["summary"] } {
  mkdirSync(join(path, ".."), { recursive: true });
  const db = new Database(path);
  db.pragma("synchronous = OFF");
  db.pragma("journal_mode = MEMORY");
  db.exec(`CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT);
    CREATE TABLE probe(row INTEGER PRIMARY KEY, line INTEGER, hash TEXT, prompt TEXT, reference TEXT, tags TEXT, status TEXT, reason TEXT, tokens INTEGER, nll REAL, mean_entropy REAL, kl_start REAL, kl_base REAL, worst INTEGER, correct INTEGER, generated TEXT, finish TEXT);
    CREATE TABLE tokens(row INTEGER PRIMARY KEY, ids BLOB, ends BLOB, logprob BLOB, entropy BLOB, rank BLOB, topk_ids BLOB, topk_logprob BLOB, segment BLOB, kl_start BLOB, kl_base BLOB);
    CREATE TABLE segment(idx INTEGER PRIMARY KEY, name TEXT);
    CREATE TABLE summary(kind TEXT, name TEXT, rows INTEGER, tokens INTEGER, nll REAL, perplexity REAL, mean_entropy REAL, kl_start REAL, kl_base REAL, correct INTEGER, checked INTEGER, PRIMARY KEY(kind, name));
    CREATE TABLE vocab(id INTEGER PRIMARY KEY, text BLOB);`);
  const meta = {
    schema: "1.0", ...about, engine: "transformers", dtype: "float32", attention: "sdpa", batch_size: 64, temperature: 1, tokenizer_hash: sha("tokenizer"), template_hash: sha("template"),
    probe_set_hash: sha(probes.split("/").at(-1) ?? ""), top_k: 4, mask: "generation-block", weights_hash: sha(about.run), device: "cpu", noise: { nll_q99: 0.02, token_q99: 0.01 },
  };
  const put = db.prepare("INSERT INTO meta VALUES (?, ?)");
  const rows = readFileSync(probes, "utf8").split("\n").filter((line) => line.trim() !== "");
  db.transaction(() => {
    for (const [key, value] of Object.entries(meta)) put.run(key, JSON.stringify(value));
    db.prepare("INSERT INTO segment VALUES (0, 'reasoning'), (1, 'answer'), (2, 'terminator')").run();
  })();
  const vocabulary = new Map<string, number>();
  const id = (text: string): number => {
    // The same text has the same id in every trace, as with one tokenizer.
    const known = vocabulary.get(text) ?? Number.parseInt(sha(text).slice(0, 7), 16);
    vocabulary.set(text, known);
    return known;
  };
  const insertProbe = db.prepare("INSERT INTO probe VALUES (?, ?, ?, ?, ?, ?, 'ok', NULL, ?, ?, ?, 0, 0, ?, ?, ?, 'stop')");
  const insertTokens = db.prepare("INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL)");
  let [correct, total, nllSum] = [0, 0, 0];
  db.transaction(() => {
    for (const [row, line] of rows.entries()) {
      const { messages, tags } = JSON.parse(line) as { messages: { role: string; content: string }[]; tags?: string[] };
      const reference = messages.at(-1)?.content ?? "";
      const prompt = messages.at(-2)?.content ?? "";
      const texts = tokenize(reference);
      const scores = makeScores(texts, `${about.skill} ${row}`, knowledge, about.skill, id);
      insertProbe.run(row, row + 1, fullHash(line), prompt, reference, JSON.stringify(tags ?? []), texts.length, scores.nll, scores.meanEntropy, scores.worst, scores.correct ? 1 : 0, scores.correct ? reference : scores.generated);
      insertTokens.run(row, blob(Uint32Array.from(scores.ids)), blob(Uint32Array.from(scores.ends)), blob(Float32Array.from(scores.logprob)), blob(Float32Array.from(scores.entropy)), blob(Uint32Array.from(scores.rank)), blob(Uint32Array.from(scores.topIds)), blob(Float32Array.from(scores.topLogprob)), blob(Uint8Array.from(scores.segment)));
      correct += scores.correct ? 1 : 0;
      total += texts.length;
      nllSum += scores.nll;
    }
    const insertWord = db.prepare("INSERT INTO vocab VALUES (?, ?)");
    for (const [text, key] of vocabulary) insertWord.run(key, Buffer.from(text));
    db.prepare("INSERT INTO summary VALUES ('all', 'all', ?, ?, ?, ?, 0.4, 0, 0, ?, ?)").run(rows.length, total, nllSum / rows.length, Math.exp(nllSum / total), correct, rows.length);
  })();
  db.close();
  return { correct, n: rows.length, summary: { rows: rows.length, skipped: 0, tokens: total, nll: nllSum / rows.length, delta_nll: 0, perplexity: Math.exp(nllSum / total), kl_start: 0, kl_base: 0, segments: {} } };
}

function blob(array: Uint32Array | Float32Array | Uint8Array): Buffer {
  return Buffer.from(array.buffer, array.byteOffset, array.byteLength);
}

function replaySpec(pipeline: Pipeline, stage: Stage): ReplaySpec | null {
  const buffer = pipeline.buffers.find(({ id }) => id === stage.replay?.buffer);
  if (stage.replay === null || buffer === undefined) return null;
  const from = buffer.from.map((source) => ({ stage: source, data: pipeline.stages.find(({ id }) => id === source)?.data ?? "", skill: source }));
  return { ...stage.replay, rows: buffer.rows, from, quality: buffer.quality, diversity: buffer.diversity };
}

/** The frozen buffer, every so many good rows of each source, and one draw of ten rows a step; none is a near-duplicate. */
function writeReplay(dir: string, spec: ReplaySpec, root: string, steps: number): void {
  const dropped = { quality: 0, duplicate: 0, probe: 0 };
  const sources: { stage: string; data: string; rows: number; kept: number; taken: number }[] = [];
  const rows = spec.from.flatMap(({ stage, data }) => {
    const lines = readFileSync(data, "utf8").split("\n").filter((line) => line.trim() !== "");
    const least = spec.quality !== null && "min" in spec.quality ? spec.quality.min : -Infinity;
    const good = lines.flatMap((line, index) => {
      const parsed = parseJson(line);
      const { reward } = JSON.parse(line) as { reward?: number };
      return parsed.ok && (reward ?? -1) >= least ? [{ index, hashes: rowHashes(parsed.value, sha) }] : [];
    });
    dropped.quality += lines.length - good.length;
    const quota = Math.min(good.length, Math.floor(spec.rows / spec.from.length));
    sources.push({ stage, data: relative(root, data), rows: lines.length, kept: good.length, taken: quota });
    const stride = Math.floor(good.length / quota);
    return good.filter((_, place) => place % stride === 0).slice(0, quota).map(({ index, hashes: { full, prompt, answer } }) => ({ hash: full, prompt_hash: prompt, answer_hash: answer, source: relative(root, data), line: index + 1, since: stage }));
  });
  writeFileSync(join(dir, "buffer.json"), JSON.stringify({ v: 1, buffer: spec.buffer, seed: 0, ratio: spec.ratio, rows, dropped, sources }));
  const draws = Array.from({ length: steps }, (_, step) => ({ v: 1, seq: step + 2, attempt: 1, step: step + 1, draws: Array.from({ length: 10 }, (__, place) => [rows[(step * 10 + place) % rows.length]?.hash, 1]), buffer: spec.buffer }));
  writeFileSync(join(dir, "ledger.jsonl"), [{ v: 1, seq: 1, attempt: 1, resumed_from: null }, ...draws].map((line) => `${JSON.stringify(line)}\n`).join(""));
}

/** The row's identity, as the runner writes it. */
function fullHash(line: string): string {
  const parsed = parseJson(line);
  return parsed.ok ? rowHashes(parsed.value, sha).full : sha(line);
}

function sha(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
