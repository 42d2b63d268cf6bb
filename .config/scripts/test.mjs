// `npm test`: set-up, then every part in order. A part that finds fewer tests than it should is red: a test that
// is not discovered proves nothing. `npm test -- --only unit,runner` runs some parts, `--list` names them.
import { spawn } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { SetupError, done, failWith, say, seconds } from "./progress.mjs";
import { root, setup } from "./setup.mjs";

/** The fewest tests each part must have passed; raise them when tests are added. */
const fewest = { unit: 1250, runner: 1050, vscode: 100, targets: 90 };

const bin = (name) => join(root, "node_modules", ".bin", process.platform === "win32" ? `${name}.cmd` : name);

/** Every `*.test.ts` below these folders of test/, by name. */
function testFiles(...folders) {
  return folders
    .map((folder) => join("test", folder))
    .filter((folder) => existsSync(join(root, folder)))
    .flatMap((folder) => readdirSync(join(root, folder), { recursive: true }).map((file) => join(folder, String(file))))
    .filter((file) => file.endsWith(".test.ts"))
    .sort();
}

/** Runs a program with its output shown, and returns the output. */
function run(argv, env = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(argv[0], argv.slice(1), {
      cwd: root,
      stdio: ["ignore", "pipe", "inherit"],
      env: { ...process.env, ...env },
    });
    let text = "";
    child.stdout.setEncoding("utf8").on("data", (chunk) => {
      text += chunk;
      process.stdout.write(chunk);
    });
    child.on("error", reject);
    child.on("close", (code, signal) => {
      if (code === 0) resolve(text);
      else reject(new SetupError(`\`${argv.slice(0, 4).join(" ")} …\` ended with ${code ?? signal}; what failed is printed above.`));
    });
  });
}

function count(part, text, pattern) {
  const n = [...text.matchAll(pattern)].reduce((sum, match) => sum + Number(match[1]), 0);
  if (n < fewest[part]) {
    throw new SetupError(`The part "${part}" ran ${n} tests, but at least ${fewest[part]} are expected: some were not discovered.`);
  }
  return `${n} tests`;
}

const parts = {
  async check({ node, python }) {
    await run([node, bin("tsc"), "--noEmit"]);
    await run([node, bin("tsc"), "--noEmit", "-p", "webview"]);
    await run([node, bin("eslint"), "-c", ".config/eslint.config.mjs", "."]);
    await run([python, "-m", "ruff", "check", "--config", "runner/pyproject.toml", "runner", "test/runner", "test/fixtures"]);
    return "types and lint";
  },
  async unit({ node }) {
    const files = testFiles("unit", "contract", "e2e");
    const text = await run([node, "--test", "--test-reporter=spec", ...files]);
    return `${count("unit", text, /^ℹ pass (\d+)$/gm)} in ${files.length} files`;
  },
  async runner({ python }) {
    const text = await run([python, "-m", "pytest", "-c", "runner/pyproject.toml", "--rootdir", ".", "-q", "--durations=5", "test/runner"], {
      OMP_WAIT_POLICY: "passive",
      OMP_NUM_THREADS: "2",
      TOKENIZERS_PARALLELISM: "false",
      HF_HUB_OFFLINE: "1",
    });
    return count("runner", text, /(\d+) passed/g);
  },
  async vscode({ node }) {
    const text = (await run([node, "test/vscode/run.mjs"])) + (await run([node, "test/vscode/ui.mjs", "--check", "--no-build"]));
    return count("vscode", text, /(\d+) passed/g);
  },
  async targets({ node }) {
    const text = await run([node, ".config/scripts/test-targets.mjs"]);
    const left = Number(/^targets: \d+ passed, (\d+) left out$/m.exec(text)?.[1] ?? 0);
    // What this machine cannot do (no root, no Debian, no namespaces) has been said above, each with its reason.
    return left > 0 ? `${left} LEFT OUT on this machine` : count("targets", text, /^targets: (\d+) passed/gm);
  },
};

async function main() {
  const args = process.argv.slice(2);
  if (args.includes("--list") || args.includes("--help")) {
    console.log(`npm test [-- --only ${Object.keys(parts).join(",")}]`);
    return;
  }
  const only = args[args.indexOf("--only") + 1]?.split(",") ?? [];
  const names = args.includes("--only") ? only : Object.keys(parts);
  for (const name of names) {
    if (!(name in parts)) throw new SetupError(`There is no part "${name}": use ${Object.keys(parts).join(", ")}.`);
  }
  const started = Date.now();
  const tools = await setup({ python: "dev", browser: names.includes("vscode") });
  if (names.includes("vscode")) {
    const { installCodeServer } = await import("./vscode-install.mjs");
    await installCodeServer();
  }
  // Everything from here on runs under the repository's Node 24, whatever Node started this script.
  process.env.PATH = `${join(root, "node_modules", ".bin")}${process.platform === "win32" ? ";" : ":"}${process.env.PATH}`;
  await run([tools.node, ".config/esbuild.mjs"]);
  const results = [];
  for (const name of names) {
    say(`── ${name}`);
    const since = Date.now();
    results.push(`${name}: ${await parts[name](tools)}, ${seconds(since)}`);
  }
  for (const line of results) done(line);
  done(`all green in ${seconds(started)}`);
}

main().catch(failWith);
