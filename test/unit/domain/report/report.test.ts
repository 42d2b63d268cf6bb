import assert from "node:assert/strict";
import { test } from "node:test";
import type { Chain, ChainRun } from "../../../../src/domain/run/chain.ts";
import type { FilmCell, Filmstrip } from "../../../../src/domain/drift/filmstrip.ts";
import type { Pipeline } from "../../../../src/domain/pipeline/pipelineModel.ts";
import { promptText } from "../../../../src/domain/drift/promptText.ts";
import { emptyRunState } from "../../../../src/domain/run/reduceRun.ts";
import { niceRange } from "../../../../src/domain/report/chart.ts";
import { escapeText, html, scriptJson } from "../../../../src/domain/report/html.ts";
import { renderReport } from "../../../../src/domain/report/renderReport.ts";
import { reportModel, type ReportInput } from "../../../../src/domain/report/reportModel.ts";
import { splitFlags } from "../../../../src/domain/report/unwatched.ts";
import { flagsOfRun, type FlagEntry } from "../../../../src/domain/run/flagText.ts";

const evil = `</script><script>alert(1)</script><img src=x onerror="alert(1)">'"&\u0000\ud800\u2028`;
const range = { line: 1, column: 1, endLine: 1, endColumn: 1 };
const probe = { every: 1, eval_every: 1, top_k: 2, max_new_tokens: 8, batch_size: 4, kl: [] };

/** A chain of one stage with hostile names everywhere a name can come from. */
function input(name = evil): ReportInput {
  const summary = (nll: number) => ({ rows: 2, skipped: 0, tokens: 4, nll, delta_nll: 0, perplexity: 2, kl_start: null, kl_base: null, segments: {} });
  const state = {
    ...emptyRunState(),
    status: "done" as const,
    device: name,
    step: 10,
    probes: [0, 10].map((step) => ({ step, skill: "s", split: "id" as const, trace: "t", summary: summary(step === 0 ? 5 : 8) })),
    flagHistory: [
      { id: "s.id", skill: "s", split: "id" as const, step: 5, state: "not-measurable" as const, value: 0, lower: 0, threshold: 0, noise: 0, level: 0.1, n: 2, reason: `too few (1 of 2 right) ${name}`, seq: 1, t: 1, attempt: 1 },
      { id: "s.id", skill: "s", split: "id" as const, step: 6, state: "drifting" as const, value: 1, lower: "NaN" as const, threshold: 0.2, noise: 0, level: 0.1, n: 2, seq: 2, t: 2, attempt: 1 },
    ],
  };
  const spec = { id: "r", stage: "a", index: 1, fingerprint: "f".repeat(64), start: { label: "M0" }, versions: { torch: name }, recipe: "sft", flags: { alpha: 0.1, tolerance: 2 }, replay: null };
  const run = { dir: "/r", id: "r", stage: "a", spec, state } as unknown as ChainRun;
  const evals = (correct: number) => ({ "s.id": { n: 2, correct } });
  const stop = (step: number, correct: number) => ({ stage: "a", run: "r", step, position: step, label: step === 0 ? "a 0" : "M1", traces: {}, evals: evals(correct) });
  const chain: Chain = {
    checkpoints: [
      { label: "M0", index: 0, stage: null, run, step: 0, path: "/b", status: "ready", reason: null, traces: {}, evals: evals(2), flags: {}, stops: [] },
      { label: "M1", index: 1, stage: "a", run, step: 10, path: "/c", status: "stale", reason: name, traces: {}, evals: evals(0), flags: { "s.id": "drifting" }, stops: [stop(0, 2), stop(10, 0)] },
    ],
    newest: { a: run },
  };
  const pipeline = {
    file: name, root: "/", name, base: "/b", seed: 0, buffers: [], targets: [], flags: { alpha: 0.1, tolerance: 0.2 },
    skills: [{ id: "s", probes: { id: "/p" }, check: { kind: "text" }, segments: [], range }],
    stages: [{ id: "a", index: 1, recipe: "sft", data: "/d", args: {}, options: {}, references: [], adapter: null, launch: { kind: "python", processes: 1 }, probe, save_every: null, replay: null, from: null, on: "local", env: {}, range }],
  } as Pipeline;
  const cell: FilmCell = { class: "lost", change: "fell", coloured: true, logprob: -3, delta: -2, rank: 4, entropy: 1, klStart: null, klBase: null, alternatives: [{ id: 1, display: name, logprob: -0.1, probability: 0.9, isReference: false }] };
  const film: Filmstrip = {
    probe: { row: 0, line: 1, hash: "h", prompt: name, reference: name, tags: [] },
    tokens: [{ index: 0, id: 1, text: name, display: name, group: 0, bytes: null, start: 0, end: 1, terminator: false, segment: name }],
    frames: [{ label: "M1", cells: [cell], why: null, note: null, nll: 3, delta: 2, correct: false, generated: name, finish: "stop" }],
  };
  return {
    pipeline, chain, films: [{ skill: "s", split: "id", against: "M0", film, of: 2 }], segments: [], notes: [name], made: 0, formatTime: () => "1970-01-01 00:00 UTC",
    replay: [{ stage: name, run: "r", buffer: name, ratio: 0.1, rows: 1, sources: [{ stage: name, rows: 1 }], dropped: { quality: 0, duplicate: 0, probe: 0 }, draws: 1, distinct: 1 }],
  };
}

/** The page without its style and script. */
const shown = (page: string): string => page.replace(/<(script|style)[^]*?<\/\1>/g, "");

test("no text from data, models or files becomes markup, and nothing is fetched", () => {
  const page = renderReport(input());
  assert.equal(page.split("<script").length - 1, 2, "only our own two script elements");
  assert.doesNotMatch(page, /<img/i);
  assert.doesNotMatch(page, /https?:\/\//);
  assert.match(page, /default-src 'none'/);
  assert.equal(Buffer.from(page, "utf8").toString("utf8"), page, "it can be written as UTF-8");
  assert.doesNotMatch(page, /\u0000/);
  const details = JSON.parse(/id="details">(.*?)<\/script>/s.exec(page)?.[1] ?? "") as { top: { token: string }[] }[];
  assert.equal(details[0]?.top[0]?.token, evil, "the texts themselves survive");
});

test("every attribute stays inside its quotes", () => {
  const page = renderReport(input(`" onmouseover="alert(1)`));
  assert.doesNotMatch(page, /[^&;]" onmouseover="/);
});

test("the report says what it shows and what it does not", () => {
  const page = renderReport(input("plain"));
  for (const text of ["Skills × checkpoints", "95 % CI", "Warnings, in time order", "s (in-domain) is drifting", "Not watched (too few plain): in a: s (in-domain).", "Token by token", "What this data does not show", "at most 1 in 10 runs"]) {
    assert.ok(page.includes(text), text);
  }
  assert.doesNotMatch(shown(page), /forgetting|90 % sure|undefined|\[object|[Ee]arly warning/);
});

test("facts stand under each flag, and the word early only where the report card bears it out", () => {
  const one = input("plain");
  const history = one.chain.checkpoints.flatMap(({ run }) => (run === null ? [] : [run]));
  const page = (card: unknown): string => renderReport({ ...one, history, facts: { card: card as never, replay: () => ({ kind: "none" }) } });
  assert.match(page(null), /<dt>Replay<\/dt><dd>no replay in this stage/);
  assert.match(page(null), /this installation has no report card/);
  const share = { hits: 1, of: 60, share: 1 / 60, low: 0, high: 0.1 };
  const lead = { events: 60, q1: 1, median: 9, q3: 20, median_low: 1, median_high: 20, ahead: share };
  const card = { detector: { family: "nll" }, panels: [{ rows: 64, false_alarms: share, lead }], ships: "alarm", early: true, tested: true };
  assert.match(page(card), /<h2>Early warnings, in time order/);
  assert.match(page(card), /median \+9 steps/);
  for (const not of [{ ...card, early: false }, { ...card, ships: "descriptive" }]) assert.doesNotMatch(page(not), /Early warnings/);
});

test("a chain without runs still makes a page", () => {
  const { pipeline } = input("plain");
  const missing = { label: "M1", index: 1, stage: "a", run: null, step: null, path: null, status: "missing" as const, reason: "Stage a has not been run yet.", traces: {}, evals: {}, flags: {}, stops: [] };
  const base = { ...missing, label: "M0", index: 0, stage: null, status: "ready" as const, reason: null };
  const page = renderReport({ ...input("plain"), pipeline, chain: { checkpoints: [base, missing], newest: {} }, films: [], replay: [] });
  assert.match(page, /Stage a has not been run yet\./);
  assert.match(page, /No flags were raised\./);
  assert.doesNotMatch(shown(page), /NaN|undefined|Infinity/);
});

test("curves: accuracy with its interval, log-probability against M0, stages on one axis", () => {
  const { curves, spans } = reportModel(input("plain"));
  assert.deepEqual(spans, [{ stage: "a", label: "M1", from: 0, to: 10 }]);
  const split = curves[0]?.splits[0];
  assert.deepEqual(split?.accuracy.map(({ x, y }) => [x, y]), [[0, 1], [10, 0]]);
  assert.deepEqual(split?.logprob.map(({ x, y }) => [x, y]), [[0, 0], [10, -3]]);
  assert.deepEqual(curves[0]?.marks.map(({ x, entry }) => [x, entry.state]), [[5, "not-measurable"], [6, "drifting"]]);
});

test("axis ends hold all values and zero", () => {
  assert.deepEqual([niceRange([]), niceRange([0]), niceRange([-3, 33]), niceRange([0.2, 0.4]), niceRange([-120, -5])], [[-1, 1], [-1, 1], [-5, 35], [0, 1], [-150, 0]]);
});

test("what could not be watched is gathered by reason", () => {
  const run = input("plain").chain.checkpoints[1]?.run as ChainRun;
  const { flags, unwatched } = splitFlags(flagsOfRun(run));
  assert.deepEqual([flags.length, unwatched], [1, ["Not watched (too few plain): in a: s (in-domain)."]]);
  const entry = flagsOfRun(run)[0] as FlagEntry;
  const flag = { ...entry.flag, reason: "It was not there (2 of 9)." };
  const sets = [["a", "s", "id"], ["a", "s", "ood"], ["a", "t", "ood"], ["b", "s", "id"]] as const;
  assert.deepEqual(splitFlags(sets.map(([stage, skill, split]) => ({ ...entry, stage, skill, split, flag }))).unwatched, ["Not watched (it was not there): in a: s, t (OOD); in b: s (in-domain)."]);
});

test("html escapes by default; markup is only what html made", () => {
  assert.equal(html`<b title="${'"<'}">${"<i>"}${html`<u>${1}</u>`}${[null, false, "x"]}</b>`.text, '<b title="&quot;&lt;">&lt;i&gt;<u>1</u>x</b>');
  assert.equal(escapeText("a\u0007b\tc\n"), "a\ufffdb\tc\n");
  assert.equal(scriptJson("</script>&\u2028").text, '"\\u003c/script\\u003e\\u0026\\u2028"');
});

test("the person's own words in a rendered prompt", () => {
  assert.equal(promptText("<|bos|><|user|>What is 80 + 57?<|end|><|assistant|>"), "What is 80 + 57?");
  assert.equal(promptText("<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi a < b<|im_end|>\n<|im_start|>assistant\n"), "Hi a < b");
  assert.equal(promptText("<s>[INST] Add 2 [/INST]"), "Add 2");
  assert.equal(promptText("<start_of_turn>user\nHello<end_of_turn>\n<start_of_turn>model\n"), "Hello");
  assert.equal(promptText("plain <b> text"), "plain <b> text");
});
