import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { extension, FakePage, folder, seesaw } from "../support.ts";

/** Holds a trace as a backup or a database browser would: nobody else can read it until `release`. */
function lock(path: string): { release(): void } {
  const require = createRequire(join(extension().extensionPath, "package.json"));
  const Database = require("better-sqlite3") as new (path: string) => { exec(sql: string): void; close(): void } & Partial<DatabaseSync>;
  const database = new Database(path);
  database.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE");
  return {
    release() {
      database.exec("COMMIT");
      database.close();
    },
  };
}

describe("a locked database", () => {
  let page: FakePage | null = null;
  after(() => page?.close());

  it("is said to be locked, takes nothing else down, and is read once it is free", async () => {
    const { host } = await seesaw();
    const runs = join(folder(), ".seesaw", "runs");
    const run = readdirSync(runs).filter((name) => name.startsWith("search-")).sort().at(-1);
    assert.ok(run, "a run of search");
    const traces = join(runs, run, "traces");
    const last = readdirSync(traces).sort().at(-1) as string;
    const held = lock(join(traces, last, "search.ood.trace"));
    page = new FakePage(host);
    try {
      const state = await page.ready({ skill: "search", split: "ood" });
      assert.ok(state.notes.concat(state.empty === null ? [] : [JSON.stringify(state.empty)]).some((text) => /is locked by another program/.test(text)), JSON.stringify([state.notes, state.empty]));
      assert.equal((await page.select({ skill: "math", split: "id", row: null })).prompts.length, 64, "the others are shown");
    } finally {
      held.release();
    }
    const state = await page.select({ skill: "search", split: "ood", row: null });
    assert.equal(state.prompts.length, 64);
    assert.deepEqual(state.notes, []);
  });
});
