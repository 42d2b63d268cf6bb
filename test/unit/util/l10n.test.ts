import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { formatDuration, formatPlural } from "../../../src/domain/format.ts";
import { flagTitle } from "../../../src/domain/run/flagText.ts";
import { statusWords } from "../../../src/host/runWords.ts";
import { inEnglish, setWords, t } from "../../../src/util/l10n.ts";

afterEach(() => setWords(undefined));

test("without a table every text is English, with its places filled in", () => {
  assert.equal(t("{0} of {1}", 3, "four"), "3 of four");
  assert.equal(t("a {0} that is not given, {1}", "one"), "a one that is not given, {1}");
  assert.equal(t("braces {0} stay"), "braces {0} stay");
  assert.equal(t("{0}", "{1}", "never twice"), "{1}");
});

test("a table changes what is said from then on, and only what it holds", () => {
  setWords({ "{0} prompts": "{0} 个提示", "{0} min {1} s": "{0} 分 {1} 秒", "{0} (OOD)": "{0}（域外）", "{0}: loss confirmed": "{0}：已确认退化", done: "已完成" });
  assert.equal(formatPlural(64, "prompt"), "64 个提示");
  assert.equal(formatPlural(1, "prompt"), "1 prompt");
  assert.equal(formatDuration(185), "3 分 05 秒");
  assert.equal(flagTitle({ skill: "math", split: "ood", state: "confirmed" }), "math（域外）：已确认退化");
  assert.equal(statusWords.done, "已完成");
  assert.equal(t("toString"), "toString");
});

test("inEnglish is English inside and leaves the table as it was, also after an error", () => {
  setWords({ done: "已完成" });
  assert.equal(inEnglish(() => statusWords.done), "done");
  assert.throws(() => inEnglish(() => assert.fail("x")), /x/);
  assert.equal(statusWords.done, "已完成");
});
