import assert from "node:assert/strict";
import { cpSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { note } from "../runSuite.ts";
import { FakePage, folder, seesaw, treeByPath, waitFor } from "../support.ts";

/** What happens to run folders behind the editor's back. */
describe("run folders that are changed from outside", function () {
  this.timeout(60_000);
  const runs = (): string => join(folder(), ".seesaw", "runs");
  const id = (index: number): string => `math-20250101T${String(index).padStart(6, "0")}-aaaa`;

  it("a run of a newer schema is shown with its sentence, and the others as ever", async () => {
    const { host } = await seesaw();
    const newer = join(runs(), "math-20990101T000000-beef");
    mkdirSync(newer);
    writeFileSync(join(newer, "run.json"), JSON.stringify({ schema: "2.0", id: "math-20990101T000000-beef" }));
    const item = await waitFor("the item", () => treeByPath(host).get("cliff/math-20990101T000000-beef"));
    assert.equal(item.description, "cannot be read");
    assert.match(item.tooltip, /2\.0.*([Uu]pdate|newer)/s);
    assert.match(treeByPath(host).get("cliff/math")?.description ?? "", /^done/);
    rmSync(newer, { recursive: true });
    await waitFor("its end", () => !treeByPath(host).has("cliff/math-20990101T000000-beef"));
  });

  it("200 runs are read and shown quickly", async () => {
    const { host } = await seesaw();
    const source = join(runs(), readdirSync(runs()).find((name) => name.startsWith("math-"))!);
    const journal = readFileSync(join(source, "journal.jsonl"), "utf8");
    const spec = JSON.parse(readFileSync(join(source, "run.json"), "utf8")) as Record<string, unknown>;
    for (let index = 0; index < 200; index++) {
      mkdirSync(join(runs(), id(index)));
      writeFileSync(join(runs(), id(index), "run.json"), JSON.stringify({ ...spec, id: id(index), created: 1_700_000_000 + index }));
      writeFileSync(join(runs(), id(index), "journal.jsonl"), journal);
    }
    const count = (): number => treeByPath(host).get("cliff/math")?.children.filter(({ context }) => context === "run").length ?? 0;
    await waitFor("the runs", () => count() === 201, 30_000);
    const times: number[] = [];
    for (let turn = 0; turn < 5; turn++) {
      const start = performance.now();
      await host.model.refresh();
      for (const node of host.tree.getChildren()) host.tree.getTreeItem(node);
      times.push(performance.now() - start);
    }
    const median = times.sort((a, b) => a - b)[2]!;
    note("refresh200Ms", median);
    assert.ok(median < 400, `a look at 200 runs takes ${median} ms`);
    const again = treeByPath(host).get("cliff/math")!;
    assert.equal(new Set(again.children.map((node) => node.id)).size, again.children.length);
    for (let index = 0; index < 200; index++) rmSync(join(runs(), id(index)), { recursive: true });
    await waitFor("their end", () => count() === 1, 30_000);
  });

  it("the whole .seesaw folder may go while it is open, and come back", async () => {
    const { host } = await seesaw();
    const page = new FakePage(host);
    assert.equal((await page.ready()).empty, null);
    const aside = `${folder()}-aside`;
    renameSync(join(folder(), ".seesaw"), aside);
    await waitFor("no runs", () => treeByPath(host).get("cliff/math")?.description === "not run yet");
    assert.equal((await page.select({ row: null })).empty?.title, "Nothing has been scored yet");
    cpSync(aside, join(folder(), ".seesaw"), { recursive: true });
    rmSync(aside, { recursive: true });
    await waitFor("the runs again", () => treeByPath(host).get("cliff/math")?.description.startsWith("done"));
    const again = await page.select({ row: null });
    assert.equal(again.empty, null);
    assert.equal(again.prompts.length, 64);
    page.close();
  });
});
