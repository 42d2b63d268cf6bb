import assert from "node:assert/strict";
import { appendFileSync, cpSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { parsePipeline } from "../../../../src/domain/pipeline/pipeline.ts";
import { rowHashes } from "../../../../src/domain/rows/canonical.ts";
import { parseJson } from "../../../../src/domain/rows/jsonText.ts";
import { buildChain } from "../../../../src/domain/run/chain.ts";
import { DatasetSession } from "../../../../src/host/datasets/datasetSession.ts";
import { prettyJson } from "../../../../src/host/datasets/rowText.ts";
import type { PipelineView } from "../../../../src/host/workspaceModel.ts";
import type { DatasetLine, DatasetState, FromDatasetPage, ToDatasetPage } from "../../../../src/protocol/datasets.ts";
import { openDataset } from "../../../../src/storage/datasets/openDataset.ts";
import { sha256Hex } from "../../../../src/storage/rows/sha256.ts";
import { FolderRunStore } from "../../../../src/storage/runs/folderRunStore.ts";
import { LedgerReader } from "../../../../src/storage/runs/ledgers.ts";
import { loadSqlite } from "../../../../src/storage/sqliteDriver.ts";
import { SqliteTraceStore } from "../../../../src/storage/traces/sqliteTraceStore.ts";
import { silentLog } from "../../../../src/util/log.ts";
import { recordRuns } from "../../../vscode/recordRuns.ts";

const dir = mkdtempSync(join(tmpdir(), "seesaw-dataset-session-"));
const sample = join(dirname(fileURLToPath(import.meta.url)), "../../../../media/sample");
const pages: Page[] = [];
after(() => {
  for (const page of pages) page.session.dispose();
  rmSync(dir, { recursive: true, force: true });
});

/** The page's half: keeps what the session says. */
class Page {
  readonly session: DatasetSession;
  readonly received: ToDatasetPage[] = [];
  readonly shown: unknown[] = [];
  private readonly ledgers = new LedgerReader();

  constructor(path: string, views: readonly PipelineView[] = []) {
    pages.push(this);
    this.session = new DatasetSession(
      path,
      {
        views: () => views,
        traces: async () => new SqliteTraceStore(await loadSqlite()),
        ledgers: (folders) => this.ledgers.read(folders),
        open: (file) => openDataset(file, { spillDir: join(dir, "spill") }),
        log: silentLog,
        showLog: () => {},
        openLine: (file, line) => void this.shown.push([file, line]),
        showDrift: (target) => void this.shown.push(target),
      },
      (message) => {
        const copy = JSON.parse(JSON.stringify(message)) as ToDatasetPage;
        assert.deepEqual(copy, message, "a message must survive JSON");
        this.received.push(copy);
      },
    );
  }

  send(message: FromDatasetPage): void {
    this.session.handle(structuredClone(message));
  }

  get state(): DatasetState | undefined {
    return this.received.findLast((message) => message.type === "state")?.state;
  }

  lines(block: number): DatasetLine[] | undefined {
    const found = this.received.findLast((message) => message.type === "block" && message.block === block && message.version === this.state?.version);
    return found?.type === "block" ? found.lines : undefined;
  }

  async wait<T>(what: string, look: () => T | undefined | null | false): Promise<T> {
    for (const deadline = Date.now() + 15_000; ; await new Promise((wake) => setTimeout(wake, 10))) {
      const seen = look();
      if (seen !== undefined && seen !== null && seen !== false) return seen;
      if (Date.now() > deadline) throw new Error(`${what}: not within 15 s; the last message: ${JSON.stringify(this.received.at(-1))}`);
    }
  }

  async ready(): Promise<DatasetState> {
    this.send({ type: "ready" });
    return this.wait("the whole file", () => (this.state?.complete === true || this.state?.empty != null ? this.state : null));
  }

  async block(block: number): Promise<DatasetLine[]> {
    this.send({ type: "want", version: this.state?.version ?? 0, blocks: [block] });
    return this.wait(`block ${block}`, () => this.lines(block));
  }
}

let files = 0;
function write(content: string | Uint8Array, ending = "jsonl"): string {
  const path = join(dir, `${files++}.${ending}`);
  writeFileSync(path, content);
  return path;
}

/** The sample with recorded runs; the second stage replayed one row of the first one's data. */
async function workspace(): Promise<{ root: string; view: PipelineView; member: number }> {
  const root = mkdtempSync(join(dir, "ws-"));
  cpSync(sample, root, { recursive: true, filter: (source) => !source.includes(".seesaw") });
  const runs = recordRuns({ root, stages: ["math", "search"] });
  const member = 5;
  const parsed = parseJson(readFileSync(join(root, "data/math.train.jsonl"), "utf8").split("\n")[member - 1]!);
  assert.ok(parsed.ok);
  const { full, prompt, answer } = rowHashes(parsed.value, sha256Hex);
  const run = join(root, ".seesaw/runs", runs["search"]!);
  writeFileSync(join(run, "buffer.json"), JSON.stringify({ v: 1, buffer: "main", rows: [{ hash: full, prompt_hash: prompt, answer_hash: answer, source: "data/math.train.jsonl", line: member, since: "math" }] }));
  writeFileSync(join(run, "ledger.jsonl"), `{"v":1,"seq":1,"attempt":1,"step":3,"buffer":"main","draws":[["${full}",14]]}\n`);
  const file = join(root, "seesaw.yaml");
  const { pipeline, diagnostics } = parsePipeline(readFileSync(file, "utf8"), file);
  assert.ok(pipeline);
  const listing = await new FolderRunStore().list(root);
  const view: PipelineView = { uri: { fsPath: file } as PipelineView["uri"], label: "seesaw.yaml", pipeline, shown: pipeline, diagnostics, listing, chain: buildChain(pipeline, listing.runs) };
  return { root, view, member };
}

test("rows come by blocks, in reading order; a bad one says where and why", async () => {
  const rows = Array.from({ length: 130 }, (_, i) => JSON.stringify({ prompt: `q${i}`, completion: `a${i}` }));
  rows[70] = '{"prompt": "q", broken}';
  const page = new Page(write(`${rows.join("\n")}\n`));
  const state = await page.ready();
  assert.deepEqual([state.rows, state.kind, state.columns, state.text, state.changed, state.empty], [130, "lines", [], true, false, null]);
  const first = await page.block(0);
  assert.equal(first.length, 64);
  assert.match(first[3]!.preview, /user: q3 → assistant: a3/);
  const second = await page.block(1);
  assert.equal(second[6]?.line, 71);
  assert.match(second[6]?.problem ?? "", /^line 71, column 17: /);
  assert.equal((await page.block(2)).length, 2);
});

test("membership and drift of the rows in sight are those of the runs", async () => {
  const { root, view, member } = await workspace();
  const train = new Page(join(root, "data/math.train.jsonl"), [view]);
  await train.ready();
  await train.block(0);
  await train.wait("the columns", () => train.state!.columns.length > 0 && train.state!.replay);
  const lines = await train.wait("the marks", () => (train.lines(0)?.some(({ replay }) => replay !== null) ? train.lines(0) : null));
  assert.equal(lines.find(({ line }) => line === member)?.replay, "replay: main since math · drawn 14×");
  assert.equal(lines.find(({ line }) => line === member)?.probe, null);

  const probes = new Page(join(root, "data/math.probe.jsonl"), [view]);
  await probes.ready();
  await probes.block(0);
  const marked = await probes.wait("the drift", () => (probes.lines(0)?.some(({ probe }) => probe !== null) ? probes.lines(0) : null));
  assert.deepEqual(probes.state!.columns.map(({ label }) => label), ["M0", "M1", "M2"]);
  assert.equal(marked.filter(({ probe }) => probe !== null).length, 64);
  assert.ok(marked.some(({ probe }) => probe!.beyondNoise[2] && Number(probe!.changes[2]) < -1 && probe!.checks[1] === "passed" && probe!.checks[2] === "failed"));
  assert.ok(marked.every(({ probe }) => probe!.changes[1] === null), "nothing is compared with itself");
  probes.send({ type: "openDrift", row: 3 });
  const target = await probes.wait("the filmstrip", () => probes.shown[0]);
  assert.deepEqual(target, { pipeline: view.uri.fsPath, skill: "math", split: "id", row: 3 });

  const copy = new Page(write(gzipSync(readFileSync(join(root, "data/math.probe.jsonl"))), "jsonl.gz"), [view]);
  await copy.ready();
  await copy.block(0);
  await copy.wait("the drift of a copy", () => copy.lines(0)?.every(({ probe }) => probe?.skill === "math"));
});

test("one row in full: its turns, indented JSON with every digit, and its beginning where it is huge", async () => {
  const odd = '{"messages":[{"role":"user","content":"<b>hi</b>\\nyou"},{"role":"assistant","content":"so 1"}],"n":1.50,"big":12345678901234567890}';
  const page = new Page(write(`${odd}\n${JSON.stringify({ text: "x".repeat(400_000) })}\n[1]\n`));
  const { version } = await page.ready();
  const detail = async (row: number, whole = false) => {
    const count = page.received.length;
    page.send({ type: "choose", version, row, whole });
    return page.wait("the detail", () => page.received.slice(count).find((message) => message.type === "detail")?.detail);
  };
  const first = await detail(0);
  assert.deepEqual(first.turns, [{ role: "user", text: "<b>hi</b>\nyou" }, { role: "assistant", text: "so 1" }]);
  assert.match(first.text, /\n {2}"n": 1\.50,\n {2}"big": 12345678901234567890\n\}$/);
  const cut = await detail(1);
  assert.deepEqual([cut.cut, cut.more, cut.text.length], [true, true, 256 * 1024]);
  const whole = await detail(1, true);
  assert.deepEqual([whole.cut, whole.more, whole.turns[0]?.text.length], [false, false, 400_000]);
  assert.match((await detail(2)).problems[0] ?? "", /line 3, column 1: the row is an array, not an object/);
});

test("indented JSON reads back as the same value", () => {
  const text = '{"a":[],"b":{},"c":[1e400,-0.0,null,true,"\\u2028\\ud800"],"d":{"e":[{"f":"g"}]}}';
  const once = parseJson(text);
  assert.ok(once.ok);
  const twice = parseJson(prettyJson(once.value));
  assert.ok(twice.ok);
  assert.deepEqual(twice.value, once.value);
});

test("search goes on from the other end and says so; lines are jumped to", async () => {
  const page = new Page(write(Array.from({ length: 300 }, (_, i) => `{"t":"row ${i}${i % 100 === 7 ? " marked" : ""}"}`).join("\n")));
  await page.ready();
  const find = async (turn: number, from: number, direction: 1 | -1, text = "marked") => {
    page.send({ type: "find", turn, text, matchCase: false, from, direction });
    const found = await page.wait("the match", () => page.received.find((message) => message.type === "found" && message.turn === turn));
    return found.type === "found" ? [found.row, found.wrapped, found.problem] : null;
  };
  assert.deepEqual(await find(1, 0, 1), [7, false, null]);
  assert.deepEqual(await find(2, 208, 1), [7, true, null]);
  assert.deepEqual(await find(3, 6, -1), [207, true, null]);
  assert.deepEqual(await find(4, -1, -1), [207, true, null]);
  assert.deepEqual(await find(5, 0, 1, "nowhere"), [null, false, null]);
  const goTo = async (turn: number, line: number) => {
    page.send({ type: "goTo", turn, line });
    const went = await page.wait("the line", () => page.received.find((message) => message.type === "wentTo" && message.turn === turn));
    return went.type === "wentTo" ? [went.row, went.exact] : null;
  };
  assert.deepEqual(await goTo(1, 250), [249, true]);
  assert.deepEqual(await goTo(2, 5000), [299, false]);
});

test("a changed file is announced, and reread on request; what grows is followed", async () => {
  const path = write('{"text":"one"}\n');
  const page = new Page(path);
  await page.ready();
  assert.equal((await page.block(0)).length, 1);
  appendFileSync(path, '{"text":"two"}\n');
  await page.wait("the new row", () => page.lines(0)?.length === 2);
  writeFileSync(path, '{"text":"other"}\n');
  utimesSync(path, new Date(), new Date(Date.now() + 5000));
  await page.wait("the banner", () => page.state!.changed);
  const { version } = page.state!;
  page.send({ type: "reread" });
  await page.wait("the new file", () => page.state!.version === version + 1 && page.state!.complete && !page.state!.changed);
  assert.match((await page.block(0))[0]!.preview, /other/);
});

test("a file that cannot be shown, or has no rows, is an answer; a later reread may help", async () => {
  const path = write("PAR1 no", "parquet");
  const page = new Page(path);
  const state = await page.ready();
  assert.equal(state.empty?.kind, "error");
  assert.match(state.empty?.detail ?? "", /not a whole Parquet file/);
  writeFileSync(path, '{"text":"x"}\n');
  page.send({ type: "reread" });
  await page.wait("the sentence", () => /is no Parquet file/.test(page.state!.empty?.detail ?? ""));
  const empty = await new Page(write("\n\n")).ready();
  assert.equal(empty.empty?.kind, "none");
});

test("a hidden page gets nothing, and everything again when it is back; disposal in the middle is quiet", async () => {
  const page = new Page(write(Array.from({ length: 500 }, (_, i) => `{"text":"${i}"}`).join("\n")));
  await page.ready();
  await page.block(1);
  page.session.close();
  const count = page.received.length;
  page.send({ type: "want", version: page.state!.version, blocks: [2] });
  page.session.refresh();
  await new Promise((wake) => setTimeout(wake, 100));
  assert.equal(page.received.length, count);
  await page.ready();
  assert.equal((await page.block(2)).length, 64);
  const other = new Page(write("{}\n".repeat(100_000)));
  other.send({ type: "ready" });
  other.session.dispose();
  await new Promise((wake) => setTimeout(wake, 100));
  assert.equal(other.received.filter(({ type }) => type === "block").length, 0);
});
