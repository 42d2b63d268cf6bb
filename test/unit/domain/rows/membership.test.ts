import assert from "node:assert/strict";
import { test } from "node:test";
import { joinMembership, ReplayMembership, validDraws, type BufferRow, type ReplayRecord } from "../../../../src/domain/rows/membership.ts";

const member = (name: string, since = "search"): BufferRow => ({ hash: `full-${name}`, prompt_hash: `prompt-${name}`, answer_hash: `answer-${name}`, source: "data/a.jsonl", line: 1, since });
const record = (over: Partial<ReplayRecord> = {}): ReplayRecord => ({ run: "tool-1", stage: "tool", buffer: "main", rows: [member("a"), member("b", "math")], ledger: [], ...over });

test("draws are added up with their first and last step", () => {
  const ledger = [{ resumed_from: null }, { step: 3, buffer: "main", draws: [["full-a", 2]] as [string, number][] }, { step: 9, buffer: "main", draws: [["full-a", 12], ["full-x", 1]] as [string, number][] }];
  const membership = new ReplayMembership([record({ ledger })]);
  const [found] = membership.of("full-a");
  assert.deepEqual([found?.draws, found?.firstStep, found?.lastStep, found?.since], [14, 3, 9, "search"]);
  const [row] = joinMembership([{ line: 7, full: "full-a" }], membership);
  assert.equal(row?.label, "replay: main since search · drawn 14×");
  assert.equal(membership.relate({ line: 1, full: "full-b" })?.label, "replay: main since math · not drawn yet");
});

test("a resumed attempt voids the later steps of earlier ones", () => {
  const draw = (step: number) => ({ step, buffer: "main", draws: [["full-a", 1]] as [string, number][] });
  assert.deepEqual(validDraws([{ resumed_from: null }, draw(1), draw(2), draw(3), { resumed_from: 2 }, draw(3), draw(4)]).map(({ step }) => step), [1, 2, 3, 4]);
  assert.deepEqual(validDraws([draw(1), { resumed_from: null }, draw(5)]).map(({ step }) => step), [5]);
});

test("same prompt with another answer is a finding of its own", () => {
  const membership = new ReplayMembership([record()]);
  const relation = (prompt: string | null, answer: string | null): string | undefined => membership.relate({ line: 1, full: "other", prompt, answer })?.relation;
  assert.equal(relation("prompt-a", "answer-z"), "same-prompt");
  assert.equal(relation("prompt-a", "answer-a"), "same-text");
  assert.equal(relation("prompt-z", "answer-a"), "same-answer");
  assert.equal(relation("prompt-z", null), undefined);
  assert.match(membership.relate({ line: 1, full: null, prompt: "prompt-a", answer: null })?.label ?? "", /^same prompt, other answer → replay: main since /);
});

test("several runs of one buffer are told apart by their stage", () => {
  const draws = (count: number) => [{ step: 1, buffer: "main", draws: [["full-a", count]] as [string, number][] }];
  const membership = new ReplayMembership([record({ ledger: draws(2) }), record({ run: "format-1", stage: "format", ledger: draws(3) })]);
  assert.equal(membership.relate({ line: 1, full: "full-a" })?.label, "replay: main since search · drawn 2× in tool, 3× in format");
});

test("rows that have nothing to do with replay are left out", () => {
  assert.deepEqual(joinMembership([{ line: 1, full: "x" }, { line: 2, full: null }], new ReplayMembership([record()])), []);
});
