import assert from "node:assert/strict";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createHash } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { compareFlags } from "../../../../src/domain/flags/compareFlags.ts";
import type { Recomputed } from "../../../../src/domain/flags/recompute.ts";
import type { FlagRecord } from "../../../../src/domain/run/runState.ts";
import { loadSqlite } from "../../../../src/storage/sqliteDriver.ts";
import { memoryRowIndex } from "../../../../src/storage/rows/memoryRowIndex.ts";
import { FolderRunStore } from "../../../../src/storage/runs/folderRunStore.ts";
import { recomputeRun } from "../../../../src/storage/runs/recomputeRun.ts";
import type { RunRecord } from "../../../../src/storage/runs/runStore.ts";
import { SqliteTraceStore } from "../../../../src/storage/traces/sqliteTraceStore.ts";
import { recordRuns } from "../../../vscode/recordRuns.ts";

const sample = join(import.meta.dirname, "../../../../media/sample");
let root = "";
let search: RunRecord;
let store: SqliteTraceStore;
const rows = memoryRowIndex(null);

before(async () => {
  root = mkdtempSync(join(tmpdir(), "seesaw-recompute-"));
  for (const name of ["seesaw.yaml", "data"]) cpSync(join(sample, name), join(root, name), { recursive: true });
  const ids = recordRuns({ root, stages: ["math", "search"] });
  const runs = new FolderRunStore();
  search = (await runs.list(root)).runs.find(({ id }) => id === ids["search"]) as RunRecord;
  runs.dispose();
  store = new SqliteTraceStore(await loadSqlite());
});
after(() => {
  rows.dispose();
  rmSync(root, { recursive: true, force: true });
});

/** The files that a run was frozen with, as they are now. */
const inputsOf = (...paths: string[]): RunRecord["spec"]["inputs"] => paths.map((path) => ({ path, bytes: 1, sha256: createHash("sha256").update(readFileSync(path)).digest("hex") }));
const frozen = (): RunRecord => ({ ...search, spec: { ...search.spec, inputs: inputsOf(search.spec.data as string, ...search.spec.skills.flatMap(({ probes }) => [probes.id, ...(probes.ood === undefined ? [] : [probes.ood])])) } });
const seriesOf = ({ series }: Recomputed, id: string) => series.find((one) => one.id === id)!;

/** What a runner that decided the same would have journalled. */
function journalOf({ series, detector }: Recomputed): FlagRecord[] {
  let seq = 0;
  const record = (id: string, step: number, state: FlagRecord["state"], more: Partial<FlagRecord>): FlagRecord => ({ id, skill: id.split(".")[0] as string, split: "id", step, state, value: NaN as never, lower: NaN as never, threshold: NaN as never, noise: 0, level: 0.1, n: 64, seq: (seq += 1), t: seq, attempt: 1, detector, ...more });
  return series.flatMap(({ id, reason, looks }) =>
    reason !== null ? [record(id, 0, "not-measurable", { reason })] : looks.flatMap(({ step, entered, verdict }) => entered.map((state) => record(id, step, state, { value: verdict.estimate, lower: verdict.low, threshold: verdict.threshold }))),
  );
}

test("the verdicts of a run follow from its traces: a skill that fell alarms, one that was never there is not watched", async () => {
  const { result, notes } = await recomputeRun(store, rows, frozen());
  assert.deepEqual(notes, []);
  assert.deepEqual([result.detector, result.looks, result.tolerance], ["soft", 4, 2]);
  const math = seriesOf(result, "math.id");
  assert.deepEqual(math.looks.map(({ step }) => step), [15, 30, 60]);
  assert.equal(math.n, 64);
  const last = math.looks.at(-1)!;
  assert.ok(last.verdict.alarm && last.verdict.estimate > 10 && last.verdict.low < last.verdict.estimate && last.verdict.estimate < last.verdict.high, JSON.stringify(last));
  assert.equal(math.looks.flatMap(({ entered }) => entered)[0], "drifting");
  assert.equal(last.state, "confirmed");
  assert.match(seriesOf(result, "format.id").reason ?? "", /^The skill was not there at the stage's start/);
  assert.deepEqual(await recomputeRun(store, rows, frozen()), { result, notes }, "the same traces, the same verdicts");
});

test("every detector and tolerance can be asked", async () => {
  for (const detector of ["nll", "shift", "strict"] as const) {
    const { result } = await recomputeRun(store, rows, frozen(), { detector });
    assert.deepEqual([result.detector, result.tolerance], [detector, detector === "nll" ? 0.2 : 2]);
    assert.ok(seriesOf(result, "math.id").looks.some(({ verdict }) => verdict.alarm), detector);
  }
  const lenient = (await recomputeRun(store, rows, frozen(), { tolerance: 99 })).result;
  assert.ok(seriesOf(lenient, "math.id").looks.every(({ verdict }) => !verdict.alarm && verdict.threshold === 99));
});

test("a journal that says what the traces give is equal; one word or number else is a difference at its look", async () => {
  const { result } = await recomputeRun(store, rows, frozen());
  const journal = journalOf(result);
  assert.deepEqual(compareFlags(result, journal), []);
  const change = (index: number, more: Partial<FlagRecord>) => journal.map((flag, place) => (place === index ? { ...flag, ...more } : flag));
  const confirmed = journal.findIndex(({ id, state }) => id === "math.id" && state === "confirmed");
  const { step } = journal[confirmed] as FlagRecord;
  assert.deepEqual(compareFlags(result, change(confirmed, { state: "drifting" })), [{ id: "math.id", step, journal: "drifting", traces: "confirmed" }]);
  assert.deepEqual(compareFlags(result, journal.filter((_, place) => place !== confirmed)).map(({ step: at, journal: told }) => [at, told]), [[step, "no change"]]);
  const first = journal.findIndex(({ id }) => id === "math.id");
  const [shifted] = compareFlags(result, change(first, { value: (journal[first]?.value as number) + 0.01 }));
  assert.match(shifted?.journal ?? "", /^value /);
  assert.deepEqual(compareFlags(result, change(first, { value: (journal[first]?.value as number) * (1 + 1e-9) })), [], "the last digits of two languages may differ");
  const unmeasured = journal.findIndex(({ state }) => state === "not-measurable");
  assert.equal(compareFlags(result, journal.filter((_, place) => place !== unmeasured)).length, 1);
  assert.match(compareFlags(result, change(unmeasured, { reason: "The skill was not there at the stage's start (9 of 64 right), so there is nothing to forget." }))[0]?.journal ?? "", /9 of 64/);
});

test("rows that are trained on are dropped, rows of one group count once, and a file that changed says nothing", async () => {
  const probes = search.spec.skills[0]?.probes.id as string;
  const before = readFileSync(probes, "utf8");
  const data = readFileSync(search.spec.data as string, "utf8");
  try {
    const lines = before.trimEnd().split("\n");
    writeFileSync(search.spec.data as string, `${data}${lines.slice(0, 3).join("\n")}\n`);
    writeFileSync(probes, `${lines.map((line, index) => (index >= 60 ? JSON.stringify({ ...(JSON.parse(line) as object), group: "g" }) : line)).join("\n")}\n`);
    const { result } = await recomputeRun(store, rows, frozen());
    const math = seriesOf(result, "math.id");
    assert.deepEqual([math.dropped, math.n], [3, 64 - 3 - 3], "three are trained on, and the last four count once");
    assert.equal(math.weak, true);
    const stale = await recomputeRun(store, rows, { ...frozen(), spec: { ...frozen().spec, inputs: [] } });
    assert.equal(seriesOf(stale.result, "math.id").n, 64);
    assert.match(stale.notes.join("\n"), /math\.probe\.jsonl was changed since the run scored it/);
    assert.match(stale.notes.join("\n"), /search\.train\.jsonl was changed since the run/);
  } finally {
    writeFileSync(probes, before);
    writeFileSync(search.spec.data as string, data);
  }
});

test("a command's looks are not planned: the j-th has spent 1 − 1/(j+1)", async () => {
  const run = frozen();
  const { result } = await recomputeRun(store, rows, { ...run, spec: { ...run.spec, recipe: "command" } });
  assert.equal(result.looks, null);
  assert.deepEqual(seriesOf(result, "math.id").looks.map(({ progress }) => progress), [1, 2, 3].map((j) => 1 - 1 / (j + 1)));
});
