import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { wordsOf } from "./wordsInSource.ts";

const root = join(dirname(fileURLToPath(import.meta.url)), "../..");
const bundle = JSON.parse(readFileSync(join(root, "l10n/bundle.l10n.zh-cn.json"), "utf8")) as Record<string, string>;

/** The command line is English: what only it says needs no translation. */
const sources = ["src", "webview"]
  .flatMap((folder) => readdirSync(join(root, folder), { recursive: true }).map((name) => `${folder}/${String(name)}`))
  .filter((name) => name.endsWith(".ts") && !/^src\/cli[./]/.test(name));
const read = (name: string): ReturnType<typeof wordsOf> => wordsOf(name, readFileSync(join(root, name), "utf8"));
const wanted = new Set(sources.flatMap((name) => read(name).wanted));

/** Where nothing may be said to a person that no translation sees. Texts for models (agents) and reports are English. */
const surfaces = /^(webview\/|src\/(extension|commands)\.ts|src\/host\/(?!agents\/)|src\/domain\/(format\.ts|drift\/|pipeline\/|run\/(flagText|reasonText|chain)\.ts|rows\/(membership|whyNotReplayed)\.ts))/;
/** What looks like English and is none: lists of classes, HTML, a command's link, and errors that nobody is shown. */
const noWords = /: (spark quiet|solid second|`flag flag-|`line:|`<!DOCTYPE html>|`<script |`extension:|`no answer within|the window is closing|`\*\*\$\{escapeMarkdown\(probeSetName|`\[\$\{escapeMarkdown\(reportCardLink)/;
/** A sentence of the report and the command line, and the one place that makes its key from a noun. */
const elsewhere = /flagText\.ts:\d+: (`1 in |`\$\{formatPercent\(alpha\)|`The limits are set)|format\.ts:\d+: a text that is no literal/;

test("every text of the editor and its pages has a Chinese one, and no Chinese one is left over", () => {
  assert.ok(wanted.size > 400, "the texts were found");
  assert.deepEqual([...wanted].filter((text) => !Object.hasOwn(bundle, text)), [], "without a Chinese text");
  assert.deepEqual(Object.keys(bundle).filter((text) => !wanted.has(text)), [], "left over");
});

test("nothing is said on a surface in English only", () => {
  const files = sources.filter((name) => surfaces.test(name));
  assert.ok(files.length > 80, `${files.length} files`);
  assert.deepEqual(files.flatMap((name) => read(name).bypassing).filter((found) => !noWords.test(found) && !elsewhere.test(found)), []);
});

test("the errors of the engine, which the editor shows as they are, go through a translation", () => {
  // What a worker thread computes stays English: it has no table. So do the messages of Python.
  const files = sources.filter((name) => /^src\/(targets|storage)\//.test(name));
  assert.ok(files.length > 50, `${files.length} files`);
  const bare = (text: string): string[] => [...text.matchAll(/new AppError\(\s*"[a-z-]+",\s*["`].{0,60}/g)].map(([found]) => found);
  assert.equal(bare('throw new AppError("bad-input", `${a} is no file.`);').length, 1);
  assert.deepEqual(files.flatMap((name) => bare(readFileSync(join(root, name), "utf8")).map((found) => `${name}: ${found}`)), []);
});

test("the reader of sources finds what bypasses a translation", () => {
  const found = (source: string): string[] => wordsOf("x.ts", source).bypassing;
  assert.equal(found('html`<p title="Open this row">${x}</p>`').length, 1);
  assert.equal(found("html`<p>not scored</p>`").length, 1);
  assert.equal(found("html`<p aria-label=${`line ${n}`}>${t(\"line {0}\", n)}</p>`").length, 1);
  assert.equal(found('item.tooltip = "Click to see the stages.";').length, 1);
  assert.equal(found("item.text = `${n} queued`;").length, 1);
  assert.equal(found("t(words);").length, 1);
  assert.deepEqual(found('log.info(`${n} rows were read`); import { a } from "the file"; html`<p class="one two">JSON</p>`; css`.a { color: red blue }`;'), []);
  assert.deepEqual(wordsOf("x.ts", 'log.warn(vscode.l10n.t("Seen {0}", t("in a log"))); formatPlural(f(n), "entry", "entries");').wanted, ["Seen {0}", "in a log", "{0} entry", "{0} entries"]);
});

test("a translation keeps every placeholder and is Chinese", () => {
  /** Units and symbols that are written the same. */
  const same = new Set(["{0} nats", "log p {0}"]);
  const places = (text: string): string[] => [...text.matchAll(/\{\d+\}/g)].map(([place]) => place).sort();
  for (const [english, chinese] of Object.entries(bundle)) {
    assert.deepEqual(places(chinese), places(english), english);
    const signs = /[\p{Script=Han}\u3000-\u303f\uff00-\uffef]/u;
    if (!same.has(english)) assert.match(chinese, signs, english);
  }
});

test("the manifest names the folder of the bundle", () => {
  assert.equal((JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { l10n: string }).l10n, "./l10n");
});
