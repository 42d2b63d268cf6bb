// `npm start`: set-up, build, the sample chain through the command line, and what came out of it. The second time
// everything is up to date and only the results are shown; `npm start -- --fresh` runs the chain again.
import { spawn } from "node:child_process";
import { join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { done, failWith, say, seconds, SetupError } from "./progress.mjs";
import { setup } from "./setup.mjs";

const fresh = process.argv.includes("--fresh");
const unknown = process.argv.slice(2).filter((argument) => argument !== "--fresh");

/** Runs one command of the command line as a person would, with this terminal. */
function seesaw({ node, root, python }, args) {
  const child = spawn(node, [join(root, "dist", "cli.js"), ...args], { cwd: root, stdio: "inherit", env: { ...process.env, SEESAW_PYTHON: python } });
  // Ctrl-C reaches the child too, and its answer is the one that counts.
  const wait = () => {};
  process.on("SIGINT", wait);
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code, signal) => {
      process.removeListener("SIGINT", wait);
      resolve(signal ? 1 : code);
    });
  });
}

function heading(text) {
  const bold = process.stdout.isTTY && !process.env.NO_COLOR;
  console.log(`\n${bold ? `\u001b[1;36m${text}\u001b[0m` : text}`);
}

async function main() {
  if (unknown.length > 0) throw new SetupError(`\`npm start\` takes only -- --fresh, not ${unknown.join(" ")}.`);
  const tools = await setup({ python: "run" });
  const building = Date.now();
  const { build } = await import("../esbuild.mjs");
  const bundles = await build();
  done(`built ${bundles.join(", ")} (${seconds(building)})`);

  const sample = join(tools.root, "media", "sample");
  const at = ["--file", sample];
  heading("The sample chain: math → search → tool → format, on this machine's CPU");
  const start = Date.now();
  const code = await seesaw(tools, ["run", "--all", ...(fresh ? ["--force"] : []), ...at]);
  if (code !== 0) process.exit(code);
  done(`chain finished (${seconds(start)})`);

  const report = join(sample, ".seesaw", "report.html");
  for (const [title, args] of [
    ["Skills × checkpoints", ["checkpoints"]],
    ["Early warnings, in time order", ["flags"]],
    ["The prompt that drifted most, token by token", ["tokens"]],
  ]) {
    heading(title);
    const shown = await seesaw(tools, [...args, ...at]);
    if (shown !== 0) process.exit(shown);
  }
  heading("The whole story");
  const written = await seesaw(tools, ["report", "--output", report, ...at]);
  if (written !== 0) process.exit(written);

  const here = relative(process.cwd(), sample) || ".";
  say(`open ${pathToFileURL(report)} in a browser (it needs no network)`);
  say("npm run vscode                          the same runs in VS Code, in the browser");
  say(`npm run seesaw -- drift -f ${here}       all prompts, most drifted first (also: tokens, status, logs, replay)`);
  say(`npm run seesaw -- run --all -f ${here}/replay   the same chain with a replay buffer`);
  say("npm run seesaw -- --help                every command; `npm start -- --fresh` runs the chain again");
}

main().catch(failWith);
