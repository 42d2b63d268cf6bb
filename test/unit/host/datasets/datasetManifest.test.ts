import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { datasetEditorIds } from "../../../../src/ids.ts";

const root = join(dirname(fileURLToPath(import.meta.url)), "../../../..");
const read = (file: string): string => readFileSync(join(root, file), "utf8");
const { contributes } = JSON.parse(read("package.json")) as { contributes: { customEditors: { viewType: string; priority: string; selector: { filenamePattern: string }[] }[]; menus: Record<string, { command: string; when: string }[]> } };

test("dataset editors: ids.ts and package.json agree; only what the text editor cannot show is opened without being asked", () => {
  assert.deepEqual(contributes.customEditors.map(({ viewType }) => viewType), [...datasetEditorIds]);
  const byPriority = Object.fromEntries(contributes.customEditors.map(({ priority, selector }) => [priority, selector.map(({ filenamePattern }) => filenamePattern)]));
  assert.deepEqual(byPriority, { default: ["*.jsonl.gz", "*.jsonl.zst", "*.parquet"], option: ["*.jsonl"] });
});

test("the explorer offers the dataset editor for its endings alone", () => {
  const clause = contributes.menus["explorer/context"]?.find(({ command }) => command === "seesaw.openDataset")?.when ?? "";
  const pattern = new RegExp(/=~ \/(.+)\/i/.exec(clause)?.[1] ?? "$^", "i");
  for (const name of ["a.jsonl", "a.jsonl.gz", "a.JSONL.zst", "a.parquet"]) assert.match(name, pattern);
  for (const name of ["a.json", "a.gz", "a.jsonl.bz2", "jsonl", "a.parquet.txt"]) assert.doesNotMatch(name, pattern);
});

test("both bundles of the dataset editor are built and shipped", () => {
  for (const file of ["dist/datasets.cjs", "dist/datasets.js"]) {
    assert.ok(read(".config/esbuild.mjs").includes(`outfile: "${file}"`), file);
    assert.ok(read(".config/scripts/package.mjs").includes(`"${file}"`), file);
    assert.ok(read(".vscodeignore").includes(`!${file}\n`), file);
  }
});
