import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { checkedText, parseCheckedFlag, readableCheck, type FlagChecks } from "../../../../src/domain/run/checkedFlag.ts";

const text = readFileSync(new URL("../../../fixtures/protocol/checked/math.json", import.meta.url), "utf8");
const name = "checked/math.json of run search-1";
const run = (file: string): { stage: string; checked: FlagChecks } => ({ stage: "search", checked: new Map([["math", parseCheckedFlag(file, name)]]) });

test("a check that was kept is told as it was when it was made", () => {
  assert.match(checkedText(run(text), "math") ?? "", /^The loss of math is confirmed: 96\.9 % at the start of search, 51\.6 % at step 60 \(31 lost, 2 gained of 64 prompts; .*\)\. Left out: 3 prompts trained on in this stage, 1 prompt not usable\.$/);
  assert.equal(readableCheck(run(text), "math")?.found.n, 64);
  assert.deepEqual([checkedText(run(text), "search"), checkedText({ stage: "search" }, "math"), checkedText({ stage: "search" }, "constructor")], [null, null, null]);
  assert.equal(readableCheck(run(text.replace('"v": 1', '"v": 1, "said": "by a later 1.x"')), "math")?.step, 60, "a field more is no harm");
});

test("a damaged check, or one of a later Seesaw, is a sentence with a way out", () => {
  const whole = JSON.parse(text) as { found: Record<string, unknown> };
  const damaged = ["", "{", "null", "[1]", '{"v":1}', '{"v":1,"found":null}', text.slice(0, 200), text.replace('"lost": 31', '"lost": "31"'), text.replace('"t": 1767225600.5', '"t": null'), ...Object.keys(whole.found).map((key) => JSON.stringify({ ...whole, found: { ...whole.found, [key]: undefined } }))];
  for (const file of damaged) {
    assert.equal(checkedText(run(file), "math"), `${name} is damaged, so what was checked is not known. Confirm the flag once more, which replaces it.`, file);
    assert.equal(readableCheck(run(file), "math"), null);
  }
  assert.equal(checkedText(run('{"v":2,"verdict":"…"}'), "math"), `${name} has format 2; this Seesaw reads format 1. Update Seesaw to see the check.`);
});
