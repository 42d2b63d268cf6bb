// Runs a mocha suite inside the real extension host of a code-server of its own, and decides whether it passed.
//
// The workbench's own exit code is not believed: when the extension host dies it says 0. A scenario has passed only if the
// suite left its result file, that file holds as many passed tests as the sources declare, and the server's log
// tells of no host that died.
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { format } from "node:util";
import { root } from "../../.config/scripts/setup.mjs";
import { startBrowser, startServer } from "../../.config/scripts/vscode-server.mjs";

const here = join(root, "test", "vscode");

/** Test files of a scenario: by glob, never by a list. */
export function testFiles(scenario) {
  return readdirSync(join(here, "suite", scenario)).filter((name) => name.endsWith(".test.ts")).sort();
}

/** How many tests the sources of a scenario declare. */
export function declaredTests(scenario) {
  return testFiles(scenario).reduce((sum, name) => sum + (readFileSync(join(here, "suite", scenario, name), "utf8").match(/^\s*it\(/gm)?.length ?? 0), 0);
}

/** Bundles the tests of a scenario into one CommonJS file that VS Code can load. */
export async function bundleSuite(scenario, outdir) {
  const files = testFiles(scenario);
  if (files.length === 0) throw new Error(`There are no tests in test/vscode/suite/${scenario}.`);
  const { build } = await import("esbuild");
  const outfile = join(outdir, `${scenario}.cjs`);
  const load = files.map((name) => `require("./${scenario}/${name}");`).join(" ");
  const contents = `import { runSuite } from "./runSuite.ts";\nexport const run = () => runSuite(${JSON.stringify(scenario)}, () => { ${load} });\n`;
  await build({
    stdin: { contents, resolveDir: join(here, "suite"), sourcefile: "entry.ts", loader: "ts" },
    outfile,
    bundle: true,
    platform: "node",
    target: "node22",
    format: "cjs",
    sourcemap: "inline",
    external: ["vscode", "mocha"],
    logLevel: "warning",
  });
  return outfile;
}

/**
 * Runs one scenario in `dir` on `folder`. Returns `{ ok, problems, result, died, ms }`; it never throws for what the
 * suite did. `quiet` hides the tests' own output.
 */
export async function runScenario({ scenario, dir, folder, suite, trust = "all", settings = {}, env = {}, timeout = 240_000, quiet = false, onPage }) {
  const began = Date.now();
  mkdirSync(dir, { recursive: true });
  const resultFile = join(dir, `result-${scenario}.json`);
  rmSync(resultFile, { force: true });
  const server = await startServer({ dir, trust, settings, env: { SEESAW_TEST_RESULT: resultFile, ...env }, smokeTest: true });
  const problems = [];
  let browser;
  try {
    const opened = await startBrowser();
    browser = opened.browser;
    const code = await runInPage(opened.page, server, { folder, suite, timeout, quiet, onPage });
    if (code !== 0) problems.push(`the workbench reported exit code ${code}`);
  } catch (error) {
    problems.push(error.message);
  } finally {
    await new Promise((done) => setTimeout(done, 500)); // the server logs the host's end a little later
    await browser?.close().catch(() => {});
    await server.stop();
  }
  const died = /Extension Host Process exited with code: (?!0\b)[^\n]*/.exec(server.log())?.[0] ?? null;
  if (died !== null) problems.push(`the extension host died: ${died}`);
  const result = existsSync(resultFile) ? JSON.parse(readFileSync(resultFile, "utf8")) : null;
  problems.push(...judge(result, declaredTests(scenario)));
  return { ok: problems.length === 0, problems, result, died, ms: Date.now() - began };
}

/** What is wrong with a result file. */
export function judge(result, declared) {
  if (result === null) return ["the suite left no result file: it never ran, or not to its end"];
  const problems = [];
  const count = (state) => result.tests.filter((test) => test.state === state).length;
  for (const test of result.tests) if (test.state === "failed") problems.push(`${test.title}: ${test.error?.split("\n")[0]}`);
  if (count("pending") > 0) problems.push(`${count("pending")} tests were skipped`);
  if (declared === 0) problems.push("no test is declared");
  if (count("passed") !== declared) problems.push(`${count("passed")} of ${declared} declared tests passed`);
  return problems;
}

const noise = /^(Ignoring fetching additional builtin|Resolv(ing|ed) connection token|Creating a socket|\[reconnection-grace-time\]|\[Service Worker\]|\[AgentHost|\[AccountPolicyGate\]|Updating additional builtin|Creation of workbench contribution|Timed out waiting for authentication provider|\[LEAKED DISPOSABLE\]|%c)/;

async function runInPage(page, server, { folder, suite, timeout, quiet, onPage }) {
  const uri = (path) => `vscode-remote://${server.host}${resolve(path)}`;
  const payload = [
    ["extensionDevelopmentPath", uri(join(here, "harness"))],
    ["extensionTestsPath", uri(suite)],
    ["skipWelcome", "true"],
    ["skipReleaseNotes", "true"],
  ];
  const ended = new Promise((done, fail) => {
    void page.exposeFunction("codeAutomationExit", (code) => done(code));
    void page.exposeFunction("codeAutomationLog", (type, args) => {
      const line = format(...args);
      if (!quiet && !noise.test(line)) console.log(["log", "info"].includes(type) ? `  ${line}` : `  [${type}] ${line.split("\n")[0]}`);
    });
    page.on("crash", () => fail(new Error("the page crashed")));
    setTimeout(() => fail(new Error(`no end within ${timeout / 1000} s`)), timeout).unref();
  });
  await page.goto(`${server.origin}/?folder=${encodeURIComponent(resolve(folder))}&payload=${encodeURIComponent(JSON.stringify(payload))}`);
  void onPage?.(page).catch(() => {}); // the page closes under it at the end
  return ended;
}
