import assert from "node:assert/strict";
import { test } from "node:test";
import { routedSetsOf, testOf } from "../../../../src/domain/arena/arenaCharts.ts";
import { arenaCsv, type ArenaTable } from "../../../../src/domain/arena/arenaCsv.ts";
import { arenaHtml } from "../../../../src/domain/arena/arenaHtml.ts";
import { missingGroups, missingTexts } from "../../../../src/domain/arena/arenaText.ts";
import type { ArenaResult } from "../../../../src/domain/arena/arenaResult.ts";
import { wilsonInterval } from "../../../../src/domain/statistics/shares.ts";
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
  const hostile: ArenaResult = { ...arena, pipeline: "<b>x</b>", entries: arena.entries.map((entry) => ({ ...entry, title: `"><i>${entry.title}`, missing: [{ seed: 0, why: { sentence: "</td><script>" } }] })) };
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
  assert.match(questions, /replay 30 %<\/th><td class="thin">9\d\.\d % <small>[\d.]+ to [\d.]+<\/small><\/td><td class="thin">\+9\d\.\d <small>\+[\d.]+ to \+[\d.]+<\/small><\/td><td class="thin">−[\d.]+ <small>.*?<\/small><\/td><td class="thin"><small>no router<\/small>/);
  // 62, 61 and 60 of 64 in-domain prompts of each skill.
  const cells = /<th scope="row" class="name">experts and router<\/th>.*?<\/tr>/.exec(questions)?.[0] ?? "";
  assert.match(cells, /<div>95\.3 % <small>9\d\.\d to 9\d\.\d ID<\/small><\/div><div>89\.1 % <small>8\d\.\d to 9\d\.\d OOD<\/small><\/div>/);
  assert.match(questions, /the chain, no remedy<\/th><td class="thin">1\d\.\d %/);
});

test("the curve, the confusion, the cost, what is missing and what it does not show", () => {
  const sweep = /<svg class="chart sweep"[\s\S]*?<\/svg>/.exec(page)?.[0] ?? "";
  assert.deepEqual([count(sweep, "<polyline"), count(sweep, 'class="mean"'), count(sweep, 'class="seed"')], [4, 16, 48]);
  assert.match(page, /<th scope="row">0\.7<\/th><td class="num thin">\d+ % <small>\d+–\d+ %<\/small><\/td>/);
  assert.equal(count(page, 'class="heat right"'), 8);
  assert.match(page, /replay 30 %<\/th><td class="num">400<\/td><td class="num ">492,000<\/td><td class="num">1\.2e12<\/td><td class="num thin">3 min 54 s<\/td><td class="num">230 MB<\/td><td class="num group">–/);
  assert.match(page, /<h2>What is not there<\/h2>[\s\S]*distillation, forward KL<\/div><\/th><td class="wrap">Seed 2: distill-forward-kl is running\.[\s\S]*Seeds 0, 1, 2: specialist-tool did not finish\. It failed \(exception\): The loss left all bounds at step 7\./);
  assert.match(page, /<table class="plain routed">.*\n<tbody><tr><th scope="row">ID<\/th><td class="num">256<\/td><td class="num thin">95\.3 %<br><small>[\d.]+ to [\d.]+<\/small><\/td><td class="num thin">95\.3 %<br><small>.*?<\/small><\/td><td class="num thin">−4\.7<br><small>−[\d.]+ to −[\d.]+<\/small>/);
  assert.match(page, /does not say how they would rank on another model/);
  assert.match(page, /18 of 19<\/b><span>systems with results/);
});

test("what is missing for the same reason is said once", () => {
  const why = { stage: "specialist-search", status: "failed", reason: { kind: "out-of-memory", message: "8 GB were not enough." } } as const;
  const groups = missingGroups(arena.entries.map((entry, index) => ({ ...entry, missing: index > 15 ? [0, 2].map((seed) => ({ seed, why })) : [] })));
  assert.deepEqual(groups.map(({ entries, text }) => [entries.map(({ id }) => id), text]), [[["together-10", "joint", "gone"], "Seeds 0, 2: specialist-search did not finish. Memory ran out: 8 GB were not enough."]]);
  const left = (status: "done" | "orphan" | null): string => missingTexts({ missing: [{ seed: 1, why: { stage: "x", status, reason: null } }] }).join();
  assert.deepEqual([left("done"), left("orphan"), left(null)], ["Seed 1: x is out of date: it will be run again.", "Seed 1: x is running.", "Seed 1: x has not been run."]);
});

test("nothing has finished, one seed, no router: the report says so and leaves out what there is not", () => {
  const nothing = arenaHtml({ ...arena, entries: arena.entries.map((entry) => ({ ...entry, scores: null, routing: null })), comparison: null });
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

test("the CSV of the tests has estimate, interval, p, corrected p and smallest drop of every system against the chain", () => {
  const lines = rows("tests");
  assert.equal(new Set(lines.map(({ system }) => system)).size, 17, "all but the chain and the one without a seed");
  const replay = lines.find(({ system, measure }) => system === "replay-10" && measure === "old-skills");
  const row = testOf(arena, "replay-10", "old-skills");
  assert.ok(row && replay);
  assert.deepEqual([replay["estimate"], replay["low"], replay["high"], replay["p"], replay["p_adjusted"], replay["smallest_drop"]].map(Number), [row.estimate, row.interval?.low, row.interval?.high, row.p, row.adjusted, row.smallestDrop]);
  assert.ok(Number(replay["p_adjusted"]) >= Number(replay["p"]));
});

test("the CSV of routing has where every prompt of each seed went, also an expert that got none; that of the questions its intervals", () => {
  const lines = rows("routing");
  assert.equal(lines.length, 2 * 3 * 4 * 2 * 5, "routers, seeds, skills, sets, experts");
  const of = (more: Record<string, string>): Record<string, string> | undefined => lines.find((line) => Object.entries({ system: "experts", seed: "1", skill: "math", split: "ood", ...more }).every(([name, value]) => line[name] === value));
  assert.deepEqual([of({ expert: "math" })?.["prompts"], of({ expert: "search" })?.["prompts"], of({ expert: "base" })?.["prompts"], of({ expert: "math" })?.["share"]], ["57", "7", "0", String(57 / 64)]);
  const routed = rows("questions").filter(({ question }) => question === "routing");
  assert.deepEqual(routed.filter(({ system, measure }) => system === "experts" && measure === "routing-accuracy").map(({ split, n, seeds }) => [split, n, seeds]), [["id", "256", "3"], ["ood", "256", "3"]]);
  assert.ok(routed.every(({ estimate, low, high }) => Number(low) < Number(estimate) && Number(estimate) < Number(high)));
});

test("one seed's routing accuracy has Wilson's interval; several seeds make it wider by what they differ", () => {
  const one = routedSetsOf(madeUpArena([0]).entries.find(({ id }) => id === "experts") ?? assert.fail())[0]?.accuracy;
  assert.deepEqual([one?.estimate, one?.interval], [248 / 256, wilsonInterval(248, 256, 0.95)]);
  const three = routedSetsOf(arena.entries.find(({ id }) => id === "experts") ?? assert.fail())[0]?.accuracy;
  assert.equal(three?.seeds, 3);
  assert.match(three?.method ?? "", /Wilson.*t over the seeds/);
});

test("the CSV of the cost has what is shared apart, that of the curve only its points", () => {
  assert.deepEqual(rows("cost").find(({ system }) => system === "oracle-sft"), { system: "oracle-sft", kind: "oracle-sft", n_seeds: "3", optimizer_steps: "110", tokens: "135000", flops: "337500000000", seconds: String(135_000 / 2100), peak_memory_bytes: "230135000", shared_optimizer_steps: "327", shared_tokens: "402000", shared_flops: "1005000000000", shared_seconds: String(402_000 / 2100), shared_peak_memory_bytes: "230402000" });
  assert.deepEqual([...new Set(rows("sweep").map(({ system }) => system))], ["merge-task-arithmetic", "merge-task-arithmetic-w0_3", "merge-task-arithmetic-w0_7", "merge-task-arithmetic-w1"]);
  assert.equal(arenaCsv({ ...arena, comparison: null }, "tests").trimEnd().split("\r\n").length, 1);
});

function rows(table: ArenaTable): Record<string, string>[] {
  const [header = "", ...lines] = arenaCsv(arena, table).trimEnd().split("\r\n");
  const names = header.split(",");
  // Methods and notes, which have commas, stand last.
  return lines.map((line) => Object.fromEntries(names.map((name, index) => [name, line.split(",")[index] ?? ""])));
}
