import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { canonicalTurns } from "../../../../src/domain/rows/canonical.ts";
import { parseJson } from "../../../../src/domain/rows/jsonText.ts";
import { rowFormat } from "../../../../src/domain/rows/rowFormat.ts";
import { RowScanner } from "../../../../src/domain/rows/rowScanner.ts";
import { splitTurns } from "../../../../src/domain/rows/turns.ts";
import { TurnWriter } from "../../../../src/domain/rows/turnWriter.ts";
import { RandomJson } from "../randomJson.ts";

/** Compares with the thorough reader; false where the writer leaves the row to it. */
function check(scanner: RowScanner, line: string): boolean {
  const result = parseJson(line);
  assert.ok(result.ok, line);
  const bytes = new TextEncoder().encode(line);
  if (bytes.length + 1 > scanner.capacity) scanner.reserve(bytes.length + 1);
  scanner.bytes.set(bytes);
  assert.ok(scanner.scan(0, bytes.length), line);
  const text = (part: Uint8Array | null): string | null => (part === null ? null : new TextDecoder("utf-8", { ignoreBOM: true }).decode(part));
  let [prompt, answer]: (string | null)[] = [null, null];
  const written = new TurnWriter(scanner).write(rowFormat(result.value), (part) => (prompt = text(part)), (part) => (answer = text(part)));
  if (!written) return false;
  const expected = splitTurns(result.value);
  assert.equal(prompt, expected.prompt.length > 0 ? canonicalTurns(expected.prompt) : null, line);
  assert.equal(answer, expected.answer === null ? null : canonicalTurns([expected.answer]), line);
  return true;
}

test("the fixture's rows", () => {
  const rows = JSON.parse(readFileSync(new URL("../../../fixtures/protocol/rows.json", import.meta.url), "utf8")) as { line: string }[];
  const scanner = new RowScanner(4096);
  assert.ok(rows.filter(({ line }) => check(scanner, line)).length > 30);
});

for (const simple of [false, true]) {
  test(`random conversations, ${simple ? "without" : "with"} WebAssembly`, () => {
    const random = new RandomJson(simple ? 5 : 6);
    const scanner = new RowScanner(16 * 1024, simple);
    const blanks = ["", " ", "\\n", "\\t", "\\r\\n", "\\u000b", "\\f", "\\\\n", "\\\\ ", "\\\\\\n", "\\u001f", "\\u00a0", "\\u0020", "\\r", "\\u000d\\n"];
    const text = (): string => `"${random.pick(blanks)}${random.pick(blanks)}${random.pick(["", "x", "long enough to be skipped in sixteens ", "é", "\\ud83d", '\\"'])}${random.pick(blanks)}y${random.pick(blanks)}${random.pick(blanks)}"`;
    const content = (): string => random.pick([text, text, text, () => "null", () => '[{"type":"text","text":"p"}]', () => "1.50"])();
    const calls = (): string => random.pick(["", "", ',"tool_calls":[]', ',"tool_calls":null', ',"tool_calls":[{"b": 1.0,"a":"]"}]', ',"tool_calls":{}', ',"tool_calls":0', ',"weight": [1,{"k":"}"}]']);
    const chat = (): string => `{"role": "${random.pick(["user", "assistant", "system", "tool", "\\u0061ssistant"])}"${random.pick(["", `,"content":${content()}`, `,"content": ${content()}`])}${calls()}}`;
    const share = (): string => `{"from":"${random.pick(["human", "gpt", "user", "assistant", "bot"])}","value":${content()}${random.pick(["", "", ',"role":"x"'])}${calls()}}`;
    const list = (make: () => string): string => `[${Array.from({ length: random.below(5) }, make).join(", ")}]`;
    let written = 0;
    for (let i = 0; i < 20_000; i++) {
      const line = random.pick([
        () => `{"id": [1,{"x":"]"}], "messages": ${list(chat)}, "z":1}`,
        () => `{"conversations": ${list(share)}}`,
        () => `{"prompt": ${content()}, "a": {}, "completion": ${content()}}`,
        () => `{"text": ${text()}}`,
      ])();
      if (check(scanner, line)) written++;
    }
    assert.ok(written > 8_000, String(written));
  });
}
