import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { commandIds, contextKeys, toolIds, walkthroughId, settingKeys, viewIds } from "../../src/ids.ts";

const root = join(dirname(fileURLToPath(import.meta.url)), "../..");
const read = (file: string): string => readFileSync(join(root, file), "utf8");

interface MenuItem {
  command: string;
  when?: string;
}
interface Manifest {
  icon: string;
  main: string;
  activationEvents: string[];
  capabilities: { untrustedWorkspaces: { supported: unknown; restrictedConfigurations: string[] } };
  contributes: {
    commands: { command: string; title: string; category: string; enablement?: string }[];
    views: Record<string, { id: string; when?: string }[]>;
    viewsContainers: { activitybar: { id: string; icon: string }[] };
    viewsWelcome: { view: string; contents: string; when?: string }[];
    menus: Record<string, MenuItem[]>;
    configuration: { properties: Record<string, { type: string; scope: string; default: unknown }> };
    colors: { id: string; defaults: Record<string, string> }[];
    yamlValidation: { url: string }[];
    walkthroughs: { id: string; steps: { id: string; media: { svg: string }; completionEvents: string[] }[] }[];
    languageModelTools: { name: string; modelDescription: string; userDescription: string; inputSchema: { properties: Record<string, { type: string; description: string }>; required?: string[] } }[];
  };
}
const text = read("package.json");
const manifest = JSON.parse(text) as Manifest;
const { contributes } = manifest;
const sorted = (values: Iterable<string>): string[] => [...values].sort();

test("commands: ids.ts and package.json agree both ways", () => {
  assert.deepEqual(sorted(contributes.commands.map(({ command }) => command)), sorted(commandIds));
  assert.ok(contributes.commands.every(({ category }) => category === "Seesaw"));
  const inMenus = Object.values(contributes.menus).flat().map(({ command }) => command);
  assert.deepEqual(inMenus.filter((id) => !(commandIds as readonly string[]).includes(id)), [], "a menu names an unknown command");
  const inTexts = [...read("package.nls.json").matchAll(/\(command:(seesaw\.[\w.]+)\)/g)].map(([, id]) => id ?? "");
  assert.ok(inTexts.length > 0);
  assert.deepEqual(inTexts.filter((id) => !(commandIds as readonly string[]).includes(id)), []);
});

test("views: ids.ts and package.json agree both ways", () => {
  assert.deepEqual(sorted(Object.values(contributes.views).flat().map(({ id }) => id)), sorted(viewIds));
  for (const { view } of contributes.viewsWelcome) assert.ok((viewIds as readonly string[]).includes(view));
  for (const container of Object.keys(contributes.views)) assert.ok(contributes.viewsContainers.activitybar.some(({ id }) => id === container));
});

test("settings: ids.ts and package.json agree both ways, and what names a program is restricted", () => {
  const { properties } = contributes.configuration;
  assert.deepEqual(sorted(Object.keys(properties)), sorted(Object.keys(settingKeys)));
  const programs = Object.keys(properties).filter((key) => /python|path|command|host|args|env/i.test(key));
  assert.deepEqual(sorted(manifest.capabilities.untrustedWorkspaces.restrictedConfigurations), sorted(programs));
  for (const key of programs) assert.match(properties[key]?.scope ?? "", /^machine/);
  assert.equal(manifest.capabilities.untrustedWorkspaces.supported, "limited");
});

test("context keys: every key of ids.ts is used in a when clause, and every clause uses known keys", () => {
  const clauses = [...text.matchAll(/"(?:when|enablement)": "((?:[^"\\]|\\.)*)"/g)].map(([, clause]) => clause ?? "");
  assert.ok(clauses.length > 10);
  const used = new Set(clauses.flatMap((clause) => [...clause.replaceAll("== seesaw.yaml", "").matchAll(/\bseesaw\.\w+/g)].map(([key]) => key)));
  const keys = [...used].filter((key) => !(viewIds as readonly string[]).includes(key));
  assert.deepEqual(sorted(keys), sorted(Object.keys(contextKeys)));
});

test("tree contexts of the menus are those the tree sets", () => {
  const contexts = ["pipeline", "stage", "stage.live", "stage.queued", "stage.paused", "run", "run.live", "run.resumable", "checkpoint", "checkpoint.remote", "note", "target", "target.ssh", "target.slurm", "target.ray", "problem.check", "problem.login", "problem.token", "problem.file"];
  const source = read("src/ids.ts");
  for (const context of contexts) assert.ok(source.includes(`"${context}"`), context);
  for (const { when } of contributes.menus["view/item/context"] ?? []) {
    const equal = /viewItem == ([\w.]+)/.exec(when ?? "")?.[1];
    const pattern = /viewItem =~ \/(.+?)\/(?: |$)/.exec(when ?? "")?.[1];
    assert.ok(equal === undefined ? contexts.some((context) => new RegExp(pattern ?? "$^").test(context)) : contexts.includes(equal), when);
  }
});

test("whatever starts or stops a program is hidden from menus of untrusted workspaces", () => {
  for (const [menu, items] of Object.entries(contributes.menus)) {
    if (menu === "commandPalette") continue; // there the command says why it does nothing
    for (const { command, when } of items) if (/runStage|rerunStage|stopRun|resumeRun|continueQueue/.test(command)) assert.match(when ?? "", /isWorkspaceTrusted/, `${menu}: ${command}`);
  }
});

test("colours: one dot in the id (VS Code makes CSS variables of such only), all four kinds of theme, used by the page", () => {
  const styles = readdirSync(join(root, "webview"), { recursive: true }).map(String).filter((name) => name.endsWith(".ts")).map((name) => read(`webview/${name}`)).join("\n");
  for (const { id, defaults } of contributes.colors) {
    assert.match(id, /^seesaw\.\w+$/);
    assert.deepEqual(sorted(Object.keys(defaults)), ["dark", "highContrast", "highContrastLight", "light"]);
    assert.ok(styles.includes(`--vscode-${id.replace(".", "-")}`), `${id} is not used`);
  }
  const wanted = new Set([...styles.matchAll(/--vscode-(seesaw-\w+)/g)].map(([, name]) => name?.replace("-", ".")));
  assert.deepEqual(sorted([...wanted].map(String)), sorted(contributes.colors.map(({ id }) => id)));
});

test("the page has no colours of its own", () => {
  for (const name of readdirSync(join(root, "webview"), { recursive: true }).map(String).filter((file) => file.endsWith(".ts"))) {
    const source = read(`webview/${name}`);
    assert.doesNotMatch(source, /#[0-9a-f]{3,8}\b(?=[;\s,)])/i, name);
    assert.doesNotMatch(source, /\b(rgb|hsl)a?\(/, name);
    assert.doesNotMatch(source, / style="/, `${name}: an inline style is against the page's policy`);
    assert.doesNotMatch(source, /unsafeHTML|innerHTML/, name);
  }
});

test("texts: every %key% is in both languages, and no text is left over", () => {
  const keys = sorted(new Set([...text.matchAll(/%([\w.]+)%/g)].map(([, key]) => key ?? "")));
  for (const file of ["package.nls.json", "package.nls.zh-cn.json"]) {
    const texts = JSON.parse(read(file)) as Record<string, string>;
    assert.deepEqual(sorted(Object.keys(texts)), keys, file);
    assert.ok(Object.values(texts).every((value) => value.trim() !== ""));
  }
});

test("tools: ids.ts and package.json agree both ways, and each says what it reads of an input", () => {
  const tools = contributes.languageModelTools;
  assert.deepEqual(sorted(tools.map(({ name }) => name)), sorted(toolIds));
  for (const { name, modelDescription, inputSchema } of tools) {
    assert.match(modelDescription, name === "seesaw_runStage" ? /always asked first/ : /Read only\./, name);
    // What a model may send is what the code reads, and the other way round.
    const source = read(`src/host/agents/${name.replace("seesaw_", "")}${name === "seesaw_runStage" ? "Tool" : ""}.ts`);
    const fields = [...(/fields = \{(.*?)\} as const/s.exec(source) ?? /readInput\(input, \{(.*?)\}\)/s.exec(source) ?? [])[1]?.matchAll(/(\w+): "(text|count|row)"/g) ?? []].map(([, field]) => field ?? "");
    assert.deepEqual(sorted(fields), sorted(Object.keys(inputSchema.properties)), name);
    for (const required of inputSchema.required ?? []) assert.ok(required in inputSchema.properties);
  }
});

test("walkthrough: its pictures are there, and what completes a step exists", () => {
  const [walkthrough] = contributes.walkthroughs;
  assert.equal(walkthrough?.id, walkthroughId);
  const welcome = read("package.nls.json") + read("package.nls.zh-cn.json");
  assert.equal(welcome.split(`openWalkthrough?%22seesaw.seesaw%23${walkthroughId}%22`).length - 1, 4, "both empty states link to it, in both languages");
  for (const { id, media, completionEvents } of walkthrough?.steps ?? []) {
    assert.ok(existsSync(join(root, media.svg)), id);
    assert.doesNotMatch(read(media.svg), /<script|href=|https?:(?!\/\/www\.w3\.org\/2000\/svg)/, id);
    for (const event of completionEvents) {
      const [kind, name] = event.split(":");
      const known: Record<string, readonly string[]> = { onCommand: commandIds, onView: viewIds, onContext: Object.keys(contextKeys) };
      assert.ok(known[kind ?? ""]?.includes(name ?? ""), `${id}: ${event}`);
    }
  }
});

test("files the manifest names are there", () => {
  const names = [manifest.icon, ...contributes.viewsContainers.activitybar.map(({ icon }) => icon), ...contributes.yamlValidation.map(({ url }) => url)];
  for (const name of names) assert.ok(existsSync(join(root, name)), name);
  const png = readFileSync(join(root, manifest.icon));
  assert.deepEqual([png.readUInt32BE(16), png.readUInt32BE(20)], [128, 128], "the icon is 128 × 128");
  assert.match(manifest.activationEvents.join(), /^workspaceContains:\*\*\/seesaw\.yaml,onUri$/);
});

test("the page's policy is strict", () => {
  const html = read("src/host/panelHtml.ts");
  assert.match(html, /default-src 'none'/);
  assert.match(html, /script-src 'nonce-/);
  assert.doesNotMatch(html, /unsafe-(eval|inline)|https?:\/\/|vscode-resource|file:/);
  const sources = readdirSync(join(root, "src/host"), { recursive: true }).map(String).filter((file) => file.endsWith(".ts") && !file.endsWith("panelHtml.ts"));
  for (const file of sources) assert.doesNotMatch(read(`src/host/${file}`), /<html|<!doctype|<script/i, `${file}: panelHtml.ts is the only place for HTML`);
  for (const file of sources) assert.doesNotMatch(read(`src/host/${file}`), /retainContextWhenHidden/, file);
});
