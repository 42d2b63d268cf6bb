import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "../..");
const sources = readdirSync(join(root, "src"), { recursive: true }).map(String).filter((name) => name.endsWith(".ts"));
const bundle = JSON.parse(readFileSync(join(root, "l10n/bundle.l10n.zh-cn.json"), "utf8")) as Record<string, string>;

/** The texts a source asks a translation of. Only literals can be looked up, so only literals are allowed. */
function texts(source: string): string[] {
  const calls = [...source.matchAll(/\bl10n\.t\(/g)].length;
  const literals = [...source.matchAll(/\bl10n\.t\(\s*("(?:[^"\\\n]|\\.)*")/g)].map(([, text]) => JSON.parse(text ?? "") as string);
  assert.equal(literals.length, calls, `every l10n.t takes a text in double quotes: ${source.slice(0, 80)}`);
  return literals;
}

const wanted = new Set(sources.flatMap((name) => texts(readFileSync(join(root, "src", name), "utf8"))));

test("every text of the host has a Chinese one, and no Chinese one is left over", () => {
  assert.ok(wanted.size > 40, "the texts were found");
  assert.deepEqual(Object.keys(bundle).sort(), [...wanted].sort());
});

test("a translation keeps every placeholder and is Chinese", () => {
  const places = (text: string): string[] => [...text.matchAll(/\{\d+\}/g)].map(([place]) => place).sort();
  for (const [english, chinese] of Object.entries(bundle)) {
    assert.deepEqual(places(chinese), places(english), english);
    assert.match(chinese, /\p{Script=Han}/u, english);
  }
});

test("the manifest names the folder of the bundle", () => {
  assert.equal((JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { l10n: string }).l10n, "./l10n");
});
