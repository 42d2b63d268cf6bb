import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { note } from "../runSuite.ts";
import { extension, FakePage, seesaw, treeByPath } from "../support.ts";

/** Case V11: the native module of this platform is not there (the driver removed it from the installed extension). */
describe("without better-sqlite3's native module", () => {
  it("activates and shows the stages", async () => {
    const prebuilds = join(extension().extensionPath, "node_modules/better-sqlite3/prebuilds");
    assert.ok(!existsSync(prebuilds) || readdirSync(prebuilds).length === 0, "the driver should have removed it");
    const { host } = await seesaw();
    assert.ok(treeByPath(host).get("cliff/math"));
  });

  it("reads traces with Node's own SQLite, or says in one sentence why not", async () => {
    const { host } = await seesaw();
    const page = new FakePage(host);
    const state = await page.ready();
    note("fallback", state.empty === null ? "node:sqlite" : state.empty.detail);
    if (state.empty === null) assert.ok(state.prompts.length > 0);
    else assert.match(state.empty.detail, /SQLite cannot be loaded here.*module version/);
    page.close();
  });
});
