import assert from "node:assert/strict";
import { test } from "node:test";
import { parseJson, type JsonObject, type JsonValue } from "../../../../src/domain/rows/jsonText.ts";
import { preferenceOf } from "../../../../src/domain/rows/preference.ts";
import { isDropped, rowFindings } from "../../../../src/domain/rows/rowFindings.ts";
import { rowFormat, type RowFormatOptions } from "../../../../src/domain/rows/rowFormat.ts";
import { toTurns } from "../../../../src/domain/rows/turns.ts";

function row(value: unknown): JsonValue {
  const result = parseJson(typeof value === "string" ? value : JSON.stringify(value));
  assert.ok(result.ok);
  return result.value;
}

const codes = (value: unknown, options?: RowFormatOptions): string[] => rowFindings(row(value), options).map(({ code, turn }) => (turn === null ? code : `${code}@${turn}`));
const chat = (...turns: [string, unknown][]): unknown => ({ messages: turns.map(([role, content]) => ({ role, content })) });
const share = (...turns: [string, string][]): unknown => ({ conversations: turns.map(([from, value]) => ({ from, value })) });

test("the format is decided per row", () => {
  const rows: [unknown, string][] = [
    [chat(["user", "q"]), "messages"],
    [{ prompt: "p", completion: "c" }, "prompt-completion"],
    [{ prompt: "p", chosen: "a", rejected: "b" }, "preference"],
    [share(["human", "hi"]), "sharegpt"],
    [{ instruction: "Do", input: "", output: "x" }, "alpaca"],
    [{ prompt: "1+1=", label: "2" }, "slime"],
    [{ text: "t" }, "text"],
    [{ foo: 1 }, "unknown"],
    [["no"], "not-an-object"],
  ];
  for (const [value, format] of rows) assert.equal(rowFormat(row(value)), format);
});

test("null or missing content is a problem only without a tool call", () => {
  const call = { id: "c", type: "function", function: { name: "w", arguments: "{}" } };
  assert.deepEqual(codes({ messages: [{ role: "user", content: "q" }, { role: "assistant", content: null, tool_calls: [call] }] }), []);
  assert.deepEqual(codes({ messages: [{ role: "user", content: "q" }, { role: "assistant", tool_calls: [call] }] }), []);
  assert.deepEqual(codes(chat(["user", "q"], ["assistant", null])), ["no-trainable-text", "empty-turn@1"]);
});

test("parts are joined, others counted", () => {
  const value = chat(["user", [{ type: "text", text: "Look at " }, { type: "image_url", image_url: {} }, { type: "text", text: "and answer." }]], ["assistant", [{ type: "text", text: "A cat." }]]);
  assert.deepEqual(codes(value), ["other-parts"]);
  assert.deepEqual(toTurns(row(value)).map(({ text }) => text), ["Look at and answer.", "A cat."]);
});

test("ShareGPT: what a strictly alternating trainer drops, with the turn", () => {
  const good = [share(["human", "hi"], ["gpt", "x"]), share(["system", "s"], ["human", "q"], ["gpt", "a"]), share(["user", "q"], ["assistant", "a"])];
  for (const value of good) assert.deepEqual(codes(value), []);
  const bad: [unknown, string][] = [
    [share(["human", "a"], ["human", "b"], ["gpt", "c"]), "turn-order@1"],
    [share(["gpt", "a"], ["human", "b"], ["gpt", "c"]), "turn-order@0"],
    [share(["human", "q"]), "turn-order"],
    [share(["human", "q"], ["bot", "?"]), "unknown-role@1"],
    [share(), "empty-conversation"],
    [share(["human", "a"], ["gpt", "b"], ["human", "c"]), "turn-order@2"],
  ];
  for (const [value, code] of bad) {
    assert.ok(codes(value).includes(code), JSON.stringify(value));
    assert.ok(isDropped(rowFindings(row(value))));
  }
});

test("empty and blank answers have no trainable text", () => {
  for (const value of [chat(["user", "q"], ["assistant", ""]), chat(["user", "q"], ["assistant", "  \n"]), chat(["user", "q"]), { instruction: "x", output: "" }]) {
    assert.ok(codes(value).includes("no-trainable-text"), JSON.stringify(value));
  }
  assert.deepEqual(codes(chat(["user", "q"], ["assistant", "fine"])), []);
});

test("preference rows: explicit, implicit and repeated prompts give the same", () => {
  const [question, apple, car] = [{ role: "user", content: "Name a fruit" }, { role: "assistant", content: "Apple" }, { role: "assistant", content: "Car" }];
  const forms = [{ prompt: [question], chosen: [apple], rejected: [car] }, { chosen: [question, apple], rejected: [question, car] }, { prompt: "Name a fruit", chosen: "Apple", rejected: "Car" }, { prompt: [question], chosen: [question, apple], rejected: [question, car] }];
  const [first, ...others] = forms.map((form) => preferenceOf(row(form) as JsonObject));
  for (const other of others) assert.deepEqual(other, first);
  assert.deepEqual(codes(forms[3]), ["prompt-repeated"]);
  assert.deepEqual(codes({ chosen: [question, apple], rejected: [{ role: "user", content: "B?" }, car] }), ["no-common-prompt"]);
  assert.deepEqual(codes({ prompt: "same", chosen: "tie", rejected: "tie" }), ["chosen-equals-rejected"]);
  assert.deepEqual(codes({ chosen: "Apple", rejected: "Car" }), ["no-prompt"]);
});

test("slime: label optional, empty prompt named, the key is a setting", () => {
  assert.deepEqual(codes({ prompt: "6*7?", label: 42, metadata: '{"source":"hand"}' }), []);
  assert.deepEqual(codes({ prompt: "no label" }), ["no-label"]);
  assert.deepEqual(codes({ prompt: [], label: "x" }), ["empty-prompt"]);
  assert.deepEqual(codes({ input: "other key", label: "y" }), ["unknown-format"]);
  assert.deepEqual(codes({ input: "other key", label: "y" }, { promptKey: "input" }), []);
  assert.equal(toTurns(row({ input: "q", label: "y" }), { promptKey: "input" })[0]?.text, "q");
});
