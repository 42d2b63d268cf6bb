import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { ESLint } from "eslint";
import ts from "typescript";
import { entryFiles, refusal, roomOf, rooms } from "../../.config/rooms.mjs";

const root = join(dirname(fileURLToPath(import.meta.url)), "../..");

function files(folder: string, ending: string): string[] {
  return readdirSync(join(root, folder), { recursive: true })
    .map((name) => `${folder}/${String(name).replaceAll("\\", "/")}`)
    .filter((name) => name.endsWith(ending) && !/\/(node_modules|\.[^/]+|__pycache__)\//.test(name))
    .sort();
}

const read = (file: string): string => readFileSync(join(root, file), "utf8");
const lines = (file: string): number => read(file).split("\n").length - 1;

/** Everything a source imports, found by the compiler's own scanner: not by the lint rule that this checks. */
function imports(file: string): { specifier: string; target: string }[] {
  const found = ts.preProcessFile(read(file), true, true).importedFiles.map(({ fileName }) => fileName);
  return found.map((specifier) => ({ specifier, target: specifier.startsWith(".") ? posix.join(posix.dirname(file), specifier) : "" }));
}

/**
 * The linter with the project's own rules. Planted text has no place in a tsconfig, so the rules that need types are off,
 * except where a text is planted into a real file.
 */
function linter(typed = false): ESLint {
  const untyped = {
    files: ["**/*.ts"],
    languageOptions: { parserOptions: { project: null } },
    rules: Object.fromEntries(["no-floating-promises", "no-misused-promises", "switch-exhaustiveness-check", "only-throw-error"].map((rule) => [`@typescript-eslint/${rule}`, "off" as const])),
  };
  // Where CI=true is set, the parser takes the text of a real file from the disk and never sees what is planted.
  const fromText = { files: ["**/*.ts"], languageOptions: { parserOptions: { disallowAutomaticSingleRunInference: true } } };
  return new ESLint({ cwd: root, overrideConfigFile: join(root, ".config/eslint.config.mjs"), overrideConfig: [typed ? fromText : untyped] });
}

async function findings(file: string, text: string, typed = false): Promise<{ rule: string | null; message: string }[]> {
  const [result] = await linter(typed).lintText(text, { filePath: join(root, file) });
  return (result?.messages ?? []).map(({ ruleId, message }) => ({ rule: ruleId, message }));
}

test("no source imports what its room may not", () => {
  const sources = [...files("src", ".ts"), ...files("webview", ".ts")];
  assert.ok(sources.length > 80, `only ${sources.length} sources were found`);
  const edges = sources.flatMap((file) => imports(file).map((edge) => ({ file, ...edge })));
  assert.ok(edges.length > 200, `only ${edges.length} imports were found`);
  const bad = edges.flatMap(({ file, specifier, target }) => refusal(file, specifier, target) ?? []);
  assert.deepEqual(bad, []);
});

test("every source is in a room or is an entry point", () => {
  const homeless = [...files("src", ".ts"), ...files("webview", ".ts")].filter((file) => roomOf(file) === null && !entryFiles.includes(file));
  assert.deepEqual(homeless, []);
});

/** One bad import per forbidden thing and room, written out by hand: the table must refuse each, and the linter too. */
const planted: [file: string, specifier: string][] = [
  ["src/util/x.ts", "../protocol/journal.ts"],
  ["src/util/x.ts", "node:fs"],
  ["src/util/x.ts", "yaml"],
  ["src/protocol/x.ts", "../domain/drift.ts"],
  ["src/protocol/x.ts", "node:path"],
  ["src/protocol/x.ts", "vscode"],
  ["src/domain/x.ts", "../storage/runs/runStore.ts"],
  ["src/domain/x.ts", "../targets/launcher.ts"],
  ["src/domain/x.ts", "../host/stageNodes.ts"],
  ["src/domain/x.ts", "node:fs"],
  ["src/domain/x.ts", "vscode"],
  ["src/domain/x.ts", "lit"],
  ["src/storage/x.ts", "better-sqlite3"],
  ["src/storage/x.ts", "node:sqlite"],
  ["src/storage/x.ts", "../targets/local.ts"],
  ["src/storage/x.ts", "../host/runWords.ts"],
  ["src/storage/x.ts", "vscode"],
  ["src/storage/x.ts", "node:child_process"],
  ["src/inference/x.ts", "onnxruntime-node"],
  ["src/inference/x.ts", "../storage/traceStore.ts"],
  ["src/targets/x.ts", "node:child_process"],
  ["src/targets/x.ts", "../storage/folderRunStore.ts"],
  ["src/targets/x.ts", "vscode"],
  ["src/host/x.ts", "../storage/sqliteTraceStore.ts"],
  ["src/host/x.ts", "../storage/folderRunStore.ts"],
  ["src/host/x.ts", "../targets/local.ts"],
  ["src/host/x.ts", "../targets/spawn.ts"],
  ["src/host/x.ts", "../services.ts"],
  ["src/host/x.ts", "node:child_process"],
  ["src/host/x.ts", "better-sqlite3"],
  ["src/host/drift/x.ts", "../../cli/output.ts"],
  ["src/cli/x.ts", "vscode"],
  ["src/cli/x.ts", "../host/runWords.ts"],
  ["src/services.ts", "node:child_process"],
  ["src/services.ts", "../test/vscode/recordRuns.ts"],
  ["webview/x.ts", "node:fs"],
  ["webview/x.ts", "vscode"],
  ["webview/x.ts", "../src/host/stageNodes.ts"],
  ["webview/x.ts", "../src/storage/runs/runStore.ts"],
  ["webview/components/x.ts", "../../src/targets/launcher.ts"],
  ["webview/components/x.ts", "chart.js"],
];

test("planted imports are refused by the table and by the linter, in every form of import", async () => {
  const covered = new Set(planted.map(([file]) => roomOf(file)));
  assert.deepEqual(Object.keys(rooms).filter((room) => !covered.has(room)), [], "a room without a planted violation");
  const lint = linter();
  for (const [file, specifier] of planted) {
    const target = specifier.startsWith(".") ? posix.join(posix.dirname(file), specifier) : "";
    assert.notEqual(refusal(file, specifier, target), null, `the table lets ${file} import ${specifier}`);
    for (const text of [`import * as x from "${specifier}";\nvoid x;\n`, `import type { X } from "${specifier}";\nexport type Y = X;\n`, `export { x } from "${specifier}";\n`, `void import("${specifier}");\n`, `void require("${specifier}");\n`]) {
      const [result] = await lint.lintText(text, { filePath: join(root, file) });
      const found = result?.messages.find(({ ruleId }) => ruleId === "seesaw/fence");
      assert.ok(found, `the linter lets ${file} do: ${text}`);
      assert.match(found.message, /\. .{20,}/, "a fence without advice");
    }
  }
});

test("what the table allows, the linter allows", async () => {
  const allowed: [string, string][] = [["src/host/x.ts", "vscode"], ["src/domain/x.ts", "../protocol/journal.ts"], ["src/storage/sqliteDriver.ts", "better-sqlite3"], ["src/targets/spawn.ts", "node:child_process"], ["webview/x.ts", "lit"], ["src/host/x.ts", "../storage/runs/runStore.ts"], ["src/services.ts", "./storage/folderRunStore.ts"]];
  const lint = linter();
  for (const [file, specifier] of allowed) {
    const [result] = await lint.lintText(`import * as x from "${specifier}";\nvoid x;\n`, { filePath: join(root, file) });
    assert.deepEqual(result?.messages.map(({ message }) => message), [], `${file} may import ${specifier}`);
  }
});

test("the other rules catch what is planted", async () => {
  const long = "// x\n".repeat(401);
  const cases: [file: string, text: string, rule: string][] = [
    ["src/domain/x.ts", long, "max-lines"],
    ["src/domain/x.ts", "export default 1;\n", "no-restricted-syntax"],
    ["src/domain/x.ts", 'export * from "./drift.ts";\n', "no-restricted-syntax"],
    ["src/domain/x.ts", "export interface IThing { a: 1 }\n", "no-restricted-syntax"],
    ["src/domain/x.ts", 'console.log("x");\n', "no-console"],
    ["src/host/x.ts", 'import * as vscode from "vscode";\nvscode.commands.registerCommand("seesaw.x", () => {});\n', "no-restricted-syntax"],
    ["src/host/x.ts", 'import * as vscode from "vscode";\nvscode.workspace.getConfiguration("seesaw");\n', "no-restricted-syntax"],
    ["webview/x.ts", "acquireVsCodeApi();\n", "no-restricted-syntax"],
    ["webview/x.ts", "document.body.innerHTML = location.hash;\n", "no-restricted-syntax"],
    ["src/domain/x.ts", "export const x = (a: number, b: unknown) => a == b;\n", "eqeqeq"],
    ["src/domain/x.ts", "export const x = (y: any) => y;\n", "@typescript-eslint/no-explicit-any"],
  ];
  for (const [file, text, rule] of cases) {
    const found = await findings(file, text);
    assert.ok(found.some((one) => one.rule === rule), `${rule} was not reported for ${file}: ${JSON.stringify(found)}`);
  }
  // Typed rules: planted into the place of a real file.
  const floating = await findings("src/util/log.ts", "export async function f(): Promise<void> {}\nexport function g(): void {\n  f();\n}\n", true);
  assert.ok(floating.some(({ rule }) => rule === "@typescript-eslint/no-floating-promises"), JSON.stringify(floating));
  assert.deepEqual(await findings("src/cli/x.ts", 'console.log("x");\n'), []);
});

/** Longest a Python file may be, and why some may be longer. */
const pythonCaps: [pattern: RegExp, max: number][] = [
  [/^runner\/seesaw_runner\/agent\.py$/, 870], // one file on purpose: a target receives it by copy
  [/^runner\/seesaw_runner\/station\.py$/, 1200], // one file on purpose: it is sent with every question
  [/^runner\/seesaw_runner\/recipes\//, 600], // a recipe reads from top to bottom
  [/^test\//, 600],
  [/./, 400],
];
const capOf = (file: string): number => pythonCaps.find(([pattern]) => pattern.test(file))?.[1] ?? 400;

test("no file is longer than its cap", () => {
  const python = [...files("runner", ".py"), ...files("test", ".py")];
  const typescript = [...files("src", ".ts"), ...files("webview", ".ts")];
  assert.ok(python.length > 30 && typescript.length > 80);
  const tooLong = [...python.filter((file) => lines(file) > capOf(file)), ...typescript.filter((file) => lines(file) > 400)];
  assert.deepEqual(tooLong.map((file) => `${file}: ${lines(file)} lines`), []);
  assert.equal(capOf("runner/seesaw_runner/recipes/dpo.py"), 600);
  assert.equal(capOf("runner/seesaw_runner/flags.py"), 400);
});

test("activate() stays short", () => {
  const source = ts.createSourceFile("extension.ts", read("src/extension.ts"), ts.ScriptTarget.Latest, true);
  const activate = source.statements.find((one): one is ts.FunctionDeclaration => ts.isFunctionDeclaration(one) && one.name?.text === "activate");
  assert.ok(activate);
  const from = source.getLineAndCharacterOfPosition(activate.getStart()).line;
  const to = source.getLineAndCharacterOfPosition(activate.end).line;
  assert.ok(to - from + 1 <= 40, `activate() has ${to - from + 1} lines`);
});
