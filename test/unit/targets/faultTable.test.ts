import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { pathToFileURL } from "node:url";
import type { FaultRow } from "../../targets/shared/fault.ts";

// The table of `npm run test:targets` is red for everything that was lost or done twice.
const { report } = (await import(pathToFileURL(join(import.meta.dirname, "../../../.config/scripts/test-targets.mjs")).href)) as { report(table: string): string[] };
const dir = mkdtempSync(join(tmpdir(), "seesaw-table-"));
after(() => rmSync(dir, { recursive: true, force: true }));
const fine: FaultRow = { target: "ssh", fault: "link cut", seconds: 3, runs: 1, runsLost: 0, events: 46, eventsLost: 0, doubled: 0, ended: ["done"], notes: [], failed: null };

function red(...rows: Partial<FaultRow>[]): string[] {
  const table = join(dir, "faults.jsonl");
  writeFileSync(table, rows.map((row) => `${JSON.stringify({ ...fine, ...row })}\n`).join(""));
  return report(table);
}

test("a table of faults without a loss is green", () => {
  assert.deepEqual(red({}, { fault: "two windows" }), []);
  assert.deepEqual(report(join(dir, "nothing")), []);
});

test("each kind of loss, and a failed fault, is named", () => {
  assert.deepEqual(red({}, { runsLost: 1 }), ["runs lost: 1"]);
  assert.deepEqual(red({ eventsLost: 2 }, { eventsLost: 3 }), ["events lost: 5"]);
  assert.deepEqual(red({ doubled: 1, failed: "started twice" }), ["doubled starts: 1", "ssh: link cut: started twice"]);
});

test("a second try excuses a fault that failed, but neither a lost event nor a doubled start", () => {
  assert.deepEqual(red({ failed: "not done after 300 s", runsLost: 1 }, {}), []);
  assert.deepEqual(red({}, { failed: "not done after 300 s", runsLost: 1 }), ["runs lost: 1", "ssh: link cut: not done after 300 s"]);
  assert.deepEqual(red({ failed: "started twice", doubled: 1 }, {}), ["doubled starts: 1"]);
  assert.deepEqual(red({ failed: "not done", runsLost: 1 }, { fault: "another" }), ["runs lost: 1", "ssh: link cut: not done"]);
});
