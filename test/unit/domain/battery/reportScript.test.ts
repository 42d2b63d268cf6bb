import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { gzipSync } from "node:zlib";
import type { BankFile } from "../../../../src/domain/battery/bank.ts";
import type { RawRun } from "../../../../src/domain/battery/rawRun.ts";
import { parseReportCard } from "../../../../src/protocol/reportCard.ts";
import { gradual, makeRun, steady, type World } from "./makeRuns.ts";

const folder = mkdtempSync(join(tmpdir(), "seesaw-battery-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const script = join(import.meta.dirname, "../../../../.config/scripts/battery-report.mjs");
const args = ["--raw", join(folder, "raw"), "--out", join(folder, "out"), "--report", join(folder, "REPORT_CARD.md"), "--jobs", "2"];
const run = (...more: string[]): string => execFileSync(process.execPath, [script, ...args, ...more], { encoding: "utf8" });

/** Small runs on 32 rows: the whole grid, in seconds. */
function write(bank: "A" | "B"): void {
  mkdirSync(join(folder, "raw", bank), { recursive: true });
  const worlds: [string, World][] = [["h0", steady], ["h1", steady], ["f0", gradual]];
  const runs: RawRun[] = worlds.map(([name, world], i) => makeRun({ id: `${bank}-${name}`, bank, kind: name.startsWith("h") ? "continue" : "sft", seed: (bank === "A" ? 10 : 50) + i, skills: { math: world }, rows: 32, oracle: 500 }));
  for (const one of runs) writeFileSync(join(folder, "raw", bank, `${one.id}.json.gz`), gzipSync(JSON.stringify(one)));
}

test("bank B is not judged before bank A has fixed the settings", () => {
  write("B");
  const { status, stderr } = spawnSync(process.execPath, [script, ...args, "--bank", "B"], { encoding: "utf8" });
  assert.equal(status, 5);
  assert.match(stderr, /settings are fixed on bank A before bank B is opened/);
});

test("raw runs become a bank's results, the card and the report; a damaged run is named; the same again gives the same", () => {
  write("A");
  writeFileSync(join(folder, "raw", "A", "broken.json.gz"), "no gzip");
  run("--bank", "A");
  const read = (name: string): string => readFileSync(join(folder, "out", name), "utf8");
  const bank = JSON.parse(read("bank-A.json")) as BankFile;
  assert.deepEqual(bank.runs.map(({ id, class: of }) => [id, of]), [["A-f0", "forgetting"], ["A-h0", "healthy"], ["A-h1", "healthy"]]);
  assert.deepEqual(bank.left_out.map(({ file }) => file), ["broken.json.gz"]);
  assert.ok(bank.candidates.some(({ id }) => id.endsWith("@0.1")) && bank.candidates.some(({ rows }) => rows === 256), "the second round is in it");
  const card = parseReportCard(read("card.json"));
  assert.equal(card?.tested, false);
  assert.match(readFileSync(join(folder, "REPORT_CARD.md"), "utf8"), /broken\.json\.gz/);

  run("--bank", "B");
  const tested = parseReportCard(read("card.json"));
  assert.equal(tested?.tested, true);
  assert.equal(tested?.bank, "B");
  assert.equal(tested?.detector.id, card?.detector.id);
  const other = JSON.parse(read("bank-B.json")) as BankFile;
  assert.deepEqual(other.candidates, bank.candidates);

  const before = [read("card.json"), readFileSync(join(folder, "REPORT_CARD.md"), "utf8")];
  run();
  assert.deepEqual([read("card.json"), readFileSync(join(folder, "REPORT_CARD.md"), "utf8")], before);
});

test("an option it does not know is refused by name", () => {
  const { status, stderr } = spawnSync(process.execPath, [script, "--bnak", "A"], { encoding: "utf8" });
  assert.equal(status, 5);
  assert.match(stderr, /--bnak/);
});
