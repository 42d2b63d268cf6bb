import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { readRoutes } from "../../../../src/storage/runs/routerRoutes.ts";

const line = (skill: string, split: string, place: number, more: object = {}): string => JSON.stringify({ key: "hash", line: place, skill, split, picked: "math", right: true, ...more });

test("routes are read with the group of their probe; a set that is no probe set has none", async () => {
  const dir = mkdtempSync(join(tmpdir(), "routes "));
  try {
    assert.equal(await readRoutes(dir), null, "a run of no router");
    writeFileSync(join(dir, "router-routes.jsonl"), `${[line("math", "id", 1), line("math", "id", 2, { correct: { math: true } }), line("math", "paraphrase", 1)].join("\n")}\n`);
    const asked: unknown[] = [];
    const rows = await readRoutes(dir, (set, place) => (asked.push([set, place]), place === 1 ? "passage 7" : undefined));
    assert.deepEqual(rows, [
      { key: "math.id:1", skill: "math", split: "id", picked: "math", group: "passage 7" },
      { key: "math.id:2", skill: "math", split: "id", picked: "math", correct: { math: true } },
      { key: "math.paraphrase:1", skill: "math", split: "paraphrase", picked: "math" },
    ]);
    assert.equal(asked.length, 2);
    writeFileSync(join(dir, "router-routes.jsonl"), "{torn");
    await assert.rejects(readRoutes(dir), /router-routes\.jsonl cannot be read .*run the router's stage again/);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});
