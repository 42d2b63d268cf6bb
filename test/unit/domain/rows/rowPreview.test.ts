import assert from "node:assert/strict";
import { test } from "node:test";
import { parseJson, type JsonValue } from "../../../../src/domain/rows/jsonText.ts";
import { readRow } from "../../../../src/domain/rows/readRow.ts";
import { contentParts, contentState, printable, rowPreview, showInvisible, unwrapJsonText } from "../../../../src/domain/rows/rowPreview.ts";

function value(text: string): JsonValue {
  const result = parseJson(text);
  assert.ok(result.ok);
  return result.value;
}

test("invisible characters are shown", () => {
  assert.equal(showInvisible("a\nb\tc\r\u0000\u007f"), "a↵b⇥c␍␀␡");
  assert.equal(showInvisible("a\u2028b\u200bc\u00a0d\ufeff\u202e\ud83d"), "a⟨U+2028⟩b⟨U+200B⟩c⟨U+00A0⟩d⟨U+FEFF⟩⟨U+202E⟩⟨U+D83D⟩");
  assert.equal(showInvisible("é 中 😀"), "é 中 😀");
});

test("null, absent and empty content are three things", () => {
  const states = ['{"content":null}', "{}", '{"content":""}', '{"content":"x"}', '{"content":[]}', '{"content":1}', '"x"'].map((text) => contentState(value(text)));
  assert.deepEqual(states, ["null", "absent", "empty", "text", "parts", "other", "absent"]);
});

test("an image is a placeholder between the texts", () => {
  const parts = contentParts(value('[{"type":"text","text":"Look at "},{"type":"image_url","image_url":{}},"now"]'));
  assert.deepEqual(parts, [{ kind: "text", text: "Look at " }, { kind: "other", type: "image_url" }, { kind: "text", text: "now" }]);
});

test("previews", () => {
  assert.equal(rowPreview(value('{"prompt":"a\\u2028b","completion":"c"}')), "user: a⟨U+2028⟩b → assistant: c");
  assert.equal(rowPreview(value('{"messages":[{"role":"user","content":"q"},{"role":"assistant","tool_calls":[{}]},{"role":"assistant","content":null}]}')), "user: q → assistant:  [1 tool call] → assistant: (no text)");
  assert.equal(rowPreview(value('{"foo":100}')), '{"foo":1e2}');
  assert.ok(rowPreview(value(JSON.stringify({ prompt: "😀".repeat(9999), completion: "x" }))).length < 400);
});

test("printable replaces each unpaired unit; JSON inside a string is unwrapped", () => {
  assert.equal(printable("half \ud83d, swapped \ude00\ud83d, pair \u{1f600}"), "half \ufffd, swapped \ufffd\ufffd, pair \u{1f600}");
  assert.deepEqual(unwrapJsonText('{"source":"hand"}'), new Map([["source", "hand"]]));
  assert.equal(unwrapJsonText("{broken"), "{broken");
});

test("one bad byte: named with its offset, the row still read, the hash over U+FFFD", () => {
  const bytes = Uint8Array.from([...new TextEncoder().encode('{"text":"it'), 0x92, ...new TextEncoder().encode('s"}')]);
  const read = readRow(bytes, { line: 2, offset: 100 });
  assert.deepEqual(read.problems.map(({ code, offset, column }) => [code, offset, column]), [["invalid-utf8", 111, 12]]);
  assert.match(read.problems[0]?.message ?? "", /byte 0x92 at file offset 111/);
  assert.deepEqual(read.value, new Map([["text", "it\ufffds"]]));
});

test("a literal U+FFFD is no invalid byte", () => {
  assert.deepEqual(readRow(new TextEncoder().encode('{"text":"\ufffd"}'), { line: 1, offset: 0 }).problems, []);
});
