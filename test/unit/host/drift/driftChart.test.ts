import assert from "node:assert/strict";
import { cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { parsePipeline } from "../../../../src/domain/pipeline/pipeline.ts";
import { reportModel } from "../../../../src/domain/report/reportModel.ts";
import { buildChain, type Chain } from "../../../../src/domain/run/chain.ts";
import type { Pipeline } from "../../../../src/domain/pipeline/pipelineModel.ts";
import { readChart } from "../../../../src/host/drift/driftChart.ts";
import type { ResolvedSelection } from "../../../../src/host/drift/driftChoices.ts";
import { readFilm, readList } from "../../../../src/host/drift/driftData.ts";
import { TraceCache } from "../../../../src/host/drift/traceCache.ts";
import { FolderRunStore } from "../../../../src/storage/runs/folderRunStore.ts";
import { loadSqlite } from "../../../../src/storage/sqliteDriver.ts";
import { SqliteTraceStore } from "../../../../src/storage/traces/sqliteTraceStore.ts";
import type { DriftCheckpoint } from "../../../../src/protocol/webview.ts";
import { checkpointOf, changeTicks, stopsOf, stopText, summaryOf } from "../../../../webview/chart/stops.ts";
import { recordRuns } from "../../../vscode/recordRuns.ts";

const sample = join(dirname(fileURLToPath(import.meta.url)), "../../../../media/sample");
let root = "";
let pipeline: Pipeline;
let chain: Chain;

before(async () => {
  root = mkdtempSync(join(tmpdir(), "seesaw-chart-"));
  for (const name of ["seesaw.yaml", "data"]) cpSync(join(sample, name), join(root, name), { recursive: true });
  recordRuns({ root, stages: ["math", "search", "tool"] });
  const file = join(root, "seesaw.yaml");
  pipeline = parsePipeline(readFileSync(file, "utf8"), file).pipeline!;
  const runs = new FolderRunStore();
  chain = buildChain(pipeline, (await runs.list(root)).runs);
  runs.dispose();
});
after(() => rmSync(root, { recursive: true, force: true }));

const select = (reference: string): ResolvedSelection => ({ view: { uri: { fsPath: join(root, "seesaw.yaml") }, listing: { runs: Object.values(chain.newest), unreadable: [] } }, pipeline, chain, skill: "math", split: "id", reference }) as unknown as ResolvedSelection;

test("the chart has the numbers of the report, and its flags", () => {
  const chart = readChart(select("M1"))!;
  const report = reportModel({ pipeline, chain, films: [], segments: [], replay: [], notes: [], made: 0, formatTime: String });
  const curves = report.curves.find(({ skill }) => skill === "math")!;
  assert.ok(curves.splits[0]!.accuracy.length >= 3);
  assert.deepEqual(chart.splits.map(({ accuracy }) => accuracy.map(({ x, y, low }) => [x, y, low])), curves.splits.map(({ accuracy }) => accuracy.map(({ x, y, interval }) => [x, y, interval?.low])));
  assert.deepEqual(chart.splits.map(({ logprob }) => logprob.map(({ x, y }) => [x, y])), curves.splits.map(({ logprob }) => logprob.map(({ x, y }) => [x, y])));
  assert.deepEqual(chart.stages, report.spans);
  assert.equal(chart.ownStage, "math");
  assert.ok(chart.flags.length > 0 && chart.flags.every(({ x }, index) => x === curves.marks[index]?.x));
  assert.ok(chart.flags.some(({ state, facts }) => state === "confirmed" && facts.some(({ label, text }) => label === "Track record" && /^this installation has no report card/.test(text))), "with its facts");
  assert.deepEqual(JSON.parse(JSON.stringify(chart)), chart, "it survives the way to the page");
  assert.equal(readChart({ ...select("M1"), skill: "no such" }), null);
});

test("a chart without a single number is none", () => {
  assert.equal(readChart({ ...select("M1"), chain: buildChain(pipeline, []) }), null);
});

test("stops hold everything of a step, and lead to a checkpoint", () => {
  const chart = readChart(select("M1"))!;
  const stops = stopsOf(chart);
  assert.deepEqual(stops.map(({ x }) => x), [...stops.map(({ x }) => x)].sort((a, b) => a - b));
  assert.equal(stops[0]?.label, "M0");
  assert.equal(new Set(stops.map(({ x, label }) => `${x} ${label}`)).size, stops.length);
  assert.equal(stops.flatMap(({ flags }) => flags).length, chart.flags.length, "no flag is lost");
  const checkpoints = readList(select("M1"), new SqliteTraceStore(sqlite())).checkpoints;
  const between = stops.find(({ label }) => label.startsWith("search "))!;
  assert.equal(checkpoints[checkpointOf(between, checkpoints)]?.label, "M2", "a step inside a stage leads to its end");
  assert.equal(checkpoints[checkpointOf(stops.find(({ label }) => label === "M1")!, checkpoints)]?.label, "M1");
  assert.match(stopText(stops.find(({ label }) => label === "M1")!), /^M1 math, step 80; in-domain passed \d+ % \(\d+–\d+ %\), log p [+−]/);
  assert.match(summaryOf(chart), /^passed \d+ % at M1, \d+ % at M3$/);
  const ticks = changeTicks(chart);
  const values = chart.splits.flatMap(({ logprob }) => logprob.map(({ y }) => Number(y)));
  assert.ok(ticks.includes(0) && ticks[0]! <= Math.min(...values) && ticks.at(-1)! >= Math.max(...values) && ticks.length <= 6, String(ticks));
});

test("each checkpoint knows what it is compared with", () => {
  const store = new SqliteTraceStore(sqlite());
  const against = (list: readonly DriftCheckpoint[]): (number | null)[] => list.map((one) => one.against);
  assert.deepEqual(against(readList(select("M1"), store).checkpoints), [null, null, 1, 1]);
  assert.deepEqual(against(readList(select("start"), store).checkpoints), [null, 0, 1, 2]);
  assert.deepEqual(against(readList(select("M0"), store).checkpoints), [null, 0, 0, 0]);
});

test("through the cache everything is the same", () => {
  const store = new SqliteTraceStore(sqlite());
  const cache = new TraceCache();
  const cached = cache.over(store);
  const list = readList(select("M1"), store);
  assert.deepEqual(readList(select("M1"), cached), list);
  for (const { row } of list.prompts.slice(0, 5)) assert.deepEqual(readFilm(select("M1"), row, null, cached), readFilm(select("M1"), row, null, store));
  cache.dispose();
});

let driver: Awaited<ReturnType<typeof loadSqlite>> | undefined;
before(async () => void (driver = await loadSqlite()));
function sqlite(): NonNullable<typeof driver> {
  assert.ok(driver);
  return driver;
}
