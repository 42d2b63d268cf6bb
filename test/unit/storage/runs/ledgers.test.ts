import assert from "node:assert/strict";
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { ReplayMembership } from "../../../../src/domain/rows/membership.ts";
import { LedgerReader } from "../../../../src/storage/runs/ledgers.ts";

const root = mkdtempSync(join(tmpdir(), "seesaw-ledgers-"));
after(() => rmSync(root, { recursive: true }));

function folder(name: string, buffer: string | null, ledger: string | null): { dir: string; run: string; stage: string } {
  const dir = join(root, name);
  mkdirSync(dir);
  if (buffer !== null) writeFileSync(join(dir, "buffer.json"), buffer);
  if (ledger !== null) writeFileSync(join(dir, "ledger.jsonl"), ledger);
  return { dir, run: name, stage: "tool" };
}

const buffer = JSON.stringify({ v: 1, buffer: "main", seed: 0, ratio: 0.1, rows: [{ hash: "h", prompt_hash: "p", answer_hash: null, source: "d.jsonl", line: 3, since: "math" }, { odd: true }], dropped: {} });
const draw = (seq: number, step: number, count: number): string => `${JSON.stringify({ v: 1, seq, attempt: 1, step, draws: [["h", count]], buffer: "main" })}\n`;

test("reads buffers and ledgers; a torn last line is left out and later read", async () => {
  const start = folder("good", buffer, `{"v":1,"seq":1,"attempt":1,"resumed_from":null}\n${draw(2, 5, 3)}{"v":1,"seq":3,"st`);
  const reader = new LedgerReader();
  const first = await reader.read([start]);
  assert.deepEqual(first.problems, []);
  assert.equal(first.records[0]?.rows.length, 1);
  assert.equal(new ReplayMembership(first.records).of("h")[0]?.draws, 3);
  appendFileSync(join(start.dir, "ledger.jsonl"), `\n${draw(4, 6, 4)}`);
  assert.equal(new ReplayMembership((await reader.read([start])).records).of("h")[0]?.draws, 7);
});

test("runs without replay say nothing; damaged and newer files say why", async () => {
  const reader = new LedgerReader();
  const { records, problems } = await reader.read([folder("none", null, null), folder("bad", "{", null), folder("newer", '{"v":2,"rows":[]}', null), folder("no-draws", buffer, null)]);
  assert.equal(records.length, 1);
  assert.deepEqual(records[0]?.ledger, []);
  assert.equal(problems.length, 2);
  assert.deepEqual([records[0]?.dropped, records[0]?.coverage, records[0]?.nearness], [{ quality: 0, duplicate: 0, probe: 0 }, undefined, undefined], "a file of an older Seesaw");
  assert.match(problems[1] ?? "", /version 2, this Seesaw reads version 1; update/);
});

test("what a buffer left out, and what its choice of rows bought, is read as it was written", async () => {
  const sources = [{ stage: "math", rows: 90, kept: 80, taken: 10, quota: 12, data: "d.jsonl" }];
  const coverage = [{ stage: "math", method: "k_center", features: "tfidf", compared: 80, mean: 0.2, max: 0.5, random: { mean: 0.3, max: 0.9 } }];
  const nearness = [{ stage: "math", rows: 5, compared: 80, mean: 0.6, random: { mean: 0.2 } }];
  const rows = [{ hash: "h", source: "d.jsonl", line: 3, since: "math", near: 0.75 }, { hash: "i", source: "d.jsonl", line: 4, since: "math" }];
  const file = JSON.stringify({ ...(JSON.parse(buffer) as object), rows, dropped: { quality: 3, duplicate: 2, probe: 1 }, sources, coverage, nearness });
  const [record] = (await new LedgerReader().read([folder("covered", file, null)])).records;
  assert.deepEqual([record?.dropped, record?.sources], [{ quality: 3, duplicate: 2, probe: 1 }, [{ stage: "math", rows: 90, kept: 80, taken: 10, quota: 12 }]]);
  assert.deepEqual(record?.coverage, [{ stage: "math", method: "k_center", features: "tfidf", mean: 0.2, max: 0.5, random: { mean: 0.3, max: 0.9 } }]);
  assert.deepEqual([record?.nearness, record?.rows.map(({ near }) => near)], [[{ stage: "math", rows: 5, mean: 0.6, random: { mean: 0.2 } }], [0.75, undefined]]);
});
