import assert from "node:assert/strict";
import { test } from "node:test";
import { arenaCsv } from "../../../../src/domain/arena/arenaCsv.ts";
import { arenaHtml } from "../../../../src/domain/arena/arenaHtml.ts";
import type { ArenaResult } from "../../../../src/domain/arena/arenaResult.ts";
import { setWords } from "../../../../src/util/l10n.ts";
import { madeUpArena } from "./madeUpArena.ts";

const arena = madeUpArena();
const page = arenaHtml(arena);
const count = (text: string, part: string | RegExp): number => text.split(part).length - 1;

test("the report is one file that loads nothing and runs nothing", () => {
  assert.match(page, /^<!doctype html>/);
  assert.match(page, /Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"/);
  assert.doesNotMatch(page, /<script|<img|<link|https?:\/\/|url\(|@import|undefined|NaN|\[object/);
  assert.equal(count(page, "<section>"), count(page, "</section>"));
});

test("text of files is escaped, in marks and in tables", () => {
  assert.ok(page.includes("grpo &amp; &lt;others&gt;") && !page.includes("<others>"));
  const hostile: ArenaResult = { ...arena, pipeline: "<b>x</b>", entries: arena.entries.map((entry) => ({ ...entry, title: `"><i>${entry.title}`, missing: ["</td><script>"] })) };
  assert.doesNotMatch(arenaHtml(hostile), /<i>|<script|<b>x/);
});

test("every system is on the plane with its whiskers and all its seeds, and in every table", () => {
  const plane = /<svg class="chart plane"[\s\S]*?<\/svg>/.exec(page)?.[0] ?? "";
  assert.equal(count(plane, 'class="shape"'), 15);
  assert.equal(count(plane, 'class="whisker"'), 30);
  assert.equal(count(plane, 'class="seed"'), 14 * 3 + 2);
  assert.equal(count(plane, 'class="name'), 15);
  assert.match(plane, /<title>replay 5 %: old skills 6\d\.\d % \(95 % CI .*\), new skill 100\.0 % .*, 3 seeds, 421000 tokens<\/title>/);
  const tests = /<h2>Against the chain<\/h2>[\s\S]*?<\/section>/.exec(page)?.[0] ?? "";
  assert.equal(count(tests, "<tr"), 1 + 18);
  assert.match(tests, /replay 10 %<\/th><td class="num">3<\/td><td class="group thin"><b>80 %<\/b> <small>\d+–\d+ %<\/small><br><span class="gain">\+\d+\.\d<\/span> <small>\(\+[\d.]+ to \+[\d.]+\)<\/small><\/td><td class="thin">&lt; 0\.001 <small>gain<\/small><br><small>\d+\.\d/);
  assert.match(tests, /class="unsure">0\.0<\/span>[\s\S]*not shown/);
  const skills = /<h2>Skill by skill<\/h2>[\s\S]*?<\/section>/.exec(page)?.[0] ?? "";
  assert.equal(count(skills, '<svg class="dots '), 18 * 8, "four skills, two splits");
});

test("the four questions are answered for every system, each with its interval; routing where there is a router", () => {
  const questions = /<h2>The four questions<\/h2>[\s\S]*?<\/section>/.exec(page)?.[0] ?? "";
  assert.equal(count(questions, "<tr"), 1 + 18);
  assert.match(questions, /replay 30 %<\/th><td class="thin">9\d\.\d % <small>[\d.]+ to [\d.]+<\/small><\/td><td class="thin">\+9\d\.\d <small>\+[\d.]+ to \+[\d.]+<\/small><\/td><td class="thin">−[\d.]+ <small>.*?<\/small><\/td><td><small>no router<\/small>/);
  assert.match(questions, /experts and router<\/th>.*?<td>97\.0 %<\/td>/);
  assert.match(questions, /the chain, no remedy<\/th><td class="thin">1\d\.\d %/);
});

test("the curve, the confusion, the cost, what is missing and what it does not show", () => {
  const sweep = /<svg class="chart sweep"[\s\S]*?<\/svg>/.exec(page)?.[0] ?? "";
  assert.deepEqual([count(sweep, "<polyline"), count(sweep, 'class="mean"'), count(sweep, 'class="seed"')], [4, 16, 48]);
  assert.equal(count(page, 'class="heat right"'), 8);
  assert.match(page, /replay 30 %<\/th><td class="num">400<\/td><td class="num ">492,000<\/td><td class="num">1\.2e12<\/td><td class="num thin">3 min 54 s<\/td><td class="num">230 MB<\/td><td class="num group">–/);
  assert.match(page, /<h2>What is not there<\/h2>[\s\S]*distillation, forward KL<\/th><td class="wrap">Seed 2: distill-forward-kl is running\.[\s\S]*specialist-tool has not been run/);
  assert.match(page, /does not say how they would rank on another model/);
  assert.match(page, /18 of 19<\/b><span>systems with results/);
});

test("nothing has finished, one seed, no router: the report says so and leaves out what there is not", () => {
  const nothing = arenaHtml({ ...arena, entries: arena.entries.map((entry) => ({ ...entry, scores: null, confusion: null })), comparison: null });
  assert.match(nothing, /Nothing has finished yet/);
  assert.doesNotMatch(nothing, /<svg|<h2>Cost/);
  const one = arenaHtml(madeUpArena([0]));
  assert.match(one, /One seed says little of how much the seed decides/);
  assert.doesNotMatch(/<svg class="chart plane"[\s\S]*?<\/svg>/.exec(one)?.[0] ?? "", /class="seed"/);
});

test("the report is English whatever the person's language", () => {
  setWords({ "{0} ms": "{0} 毫秒", "{0} min {1} s": "{0} 分 {1} 秒" });
  try {
    assert.equal(arenaHtml(arena), page);
  } finally {
    setWords(undefined);
  }
});

test("the CSV has every number of every chart, each seed and the mean", () => {
  const [header = "", ...lines] = arenaCsv(arena).trimEnd().split("\r\n");
  const column = (line: string, name: string): string => line.split(",")[header.split(",").indexOf(name)] ?? "";
  const replay = lines.filter((line) => line.startsWith("replay-10,") && column(line, "skills") === "old skills");
  assert.deepEqual(replay.map((line) => column(line, "seed")), ["", "0", "1", "2"]);
  const curve = new Set(lines.filter((line) => column(line, "sweep_of") === "merge-task-arithmetic").map((line) => column(line, "sweep_weight")));
  assert.deepEqual([...curve].sort(), ["0.3", "0.5", "0.7", "1"]);
});
