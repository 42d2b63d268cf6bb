import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { parseCheckedFlag, type CheckedFlag } from "../../../src/domain/run/checkedFlag.ts";
import type { ConfirmationPlan } from "../../../src/domain/run/confirmation.ts";
import { keepCheck } from "../../../src/targets/confirmer.ts";

const box = mkdtempSync(join(tmpdir(), "seesaw-checked-"));
after(() => rmSync(box, { recursive: true, force: true }));
const warned: string[] = [];
const log = { debug() {}, info() {}, warn: (text: string) => void warned.push(text), error() {} };
const { found } = JSON.parse(readFileSync(new URL("../../fixtures/protocol/checked/math.json", import.meta.url), "utf8")) as CheckedFlag;
const planOf = (dir: string): ConfirmationPlan => ({ run: { dir } as ConfirmationPlan["run"], skill: "math", step: 60, start: "", now: "" });

test("a verdict is kept whole, and a newer one takes its place", async () => {
  const dir = join(box, "search-1");
  mkdirSync(dir);
  for (const n of [64, 65]) await keepCheck(planOf(dir), "/data/more.jsonl", { ...found, n }, log);
  assert.deepEqual([readdirSync(dir), readdirSync(join(dir, "checked")), warned], [["checked"], ["math.json"], []]);
  const kept = parseCheckedFlag(readFileSync(join(dir, "checked", "math.json"), "utf8"), "it");
  assert.ok(!("problem" in kept) && Math.abs(kept.t - Date.now() / 1000) < 600);
  assert.deepEqual({ ...kept, t: 0 }, { v: 1, skill: "math", step: 60, t: 0, prompts: "/data/more.jsonl", found: { ...found, n: 65 } });
});

test("where it cannot be kept, that is said; a run that was deleted meanwhile does not come back", async () => {
  const gone = join(box, "search-2");
  await keepCheck(planOf(gone), "p", found, log);
  assert.deepEqual(readdirSync(box), ["search-1"]);
  const blocked = join(box, "search-3");
  mkdirSync(blocked);
  writeFileSync(join(blocked, "checked"), "a file");
  await keepCheck(planOf(blocked), "p", found, log);
  assert.equal(warned.length, 2);
  for (const text of warned) assert.match(text, /^The verdict could not be kept in .*checked.math\.json, so nothing else will show it: ./);
});
