import assert from "node:assert/strict";
import { test } from "node:test";
import { parseSeeds, seedsProblem, seedsText } from "../../../../src/domain/pipeline/seedList.ts";
import { AppError } from "../../../../src/util/errors.ts";

test("lists, ranges and how many at once", () => {
  assert.deepEqual(parseSeeds("0,1,2"), { seeds: [0, 1, 2], limit: null });
  assert.deepEqual(parseSeeds("0-4"), { seeds: [0, 1, 2, 3, 4], limit: null });
  assert.deepEqual(parseSeeds("0-4%2"), { seeds: [0, 1, 2, 3, 4], limit: 2 });
  assert.deepEqual(parseSeeds(" 7 , 2-3,3 % 1 "), { seeds: [7, 2, 3], limit: 1 }, "each once, in the order given");
  assert.deepEqual(parseSeeds("4294967295"), { seeds: [4294967295], limit: null });
  assert.equal(parseSeeds("0-255").seeds.length, 256);
});

test("seeds are told in short, in the order given; what is typed is judged in the same words", () => {
  assert.deepEqual([[0, 1, 2, 3, 9], [7, 2, 3], [5], [3, 2, 1]].map(seedsText), ["0–3, 9", "7, 2, 3", "5", "3, 2, 1"]);
  assert.equal(seedsProblem("0-4%2"), null);
  assert.match(seedsProblem("") ?? "", /^`` is no list of seeds: write 0,1,2 or 0-4/);
  assert.match(seedsProblem("4-0") ?? "", /run backwards: write 0-4\./);
});

test("what is no list of seeds is refused with a sentence", () => {
  const refused = (text: string, pattern: RegExp): void => assert.throws(() => parseSeeds(text), (error) => AppError.is(error, "usage") && pattern.test(error.message), text);
  for (const text of ["", "a", "1,,2", "-1", "1-", "1.5", "0-2:2", "1;2", "1%", "%2", "1%2%3", "1 2", "$(id)"]) refused(text, /no list of seeds: write 0,1,2/);
  refused("4-0", /run backwards: write 0-4/);
  refused("4294967296", /too large/);
  refused("0-256", /more than 256 seeds/);
  refused("0-200,300-400", /more than 256 seeds/);
  refused("0-2%0", /lets no run start/);
});
