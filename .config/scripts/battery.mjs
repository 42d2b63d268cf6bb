// `npm run battery -- --bank A|B|C [--jobs 2] [--first n] [--only ids] [--list]`: makes the bank's runs that are not there yet
// (hours; interrupt it and start it again), then its results and the report card. `-- --report` makes only the card anew,
// `-- --own` explores limits from a project's own healthy runs, `-- --trend` makes the comparisons of bank C's protocol.
import { spawn } from "node:child_process";
import { join } from "node:path";
import { SetupError, failWith } from "./progress.mjs";
import { root, setup } from "./setup.mjs";

const given = process.argv.slice(2);

/** Runs a program in this terminal to its end. */
function carryOut(command, args, cwd) {
  const child = spawn(command, args, { cwd, stdio: "inherit", env: { ...process.env, HF_HUB_OFFLINE: "1", TOKENIZERS_PARALLELISM: "false" } });
  const wait = () => {}; // Ctrl-C reaches the child too, and its end is the one that counts
  process.on("SIGINT", wait);
  return new Promise((fulfil, reject) => {
    child.on("error", reject);
    child.on("close", (code, signal) => {
      process.removeListener("SIGINT", wait);
      fulfil(signal ? 130 : code);
    });
  });
}

async function main() {
  const tools = await setup({ python: "run" });
  const script = (name, more = []) => carryOut(tools.node, [join(root, ".config", "scripts", name), ...more], root);
  if (given.length === 1 && given[0] === "--report") return process.exit(await script("battery-report.mjs"));
  for (const name of ["own", "trend"]) if (given.length === 1 && given[0] === `--${name}`) return process.exit(await script(`battery-${name}.mjs`));
  const bank = given[given.indexOf("--bank") + 1];
  if (!given.includes("--bank") || !["A", "B", "C"].includes(bank)) {
    throw new SetupError("Say which bank: `npm run battery -- --bank A` chooses thresholds, `--bank B` and `--bank C` test them once; `-- --report` makes the report card anew.");
  }
  const code = await carryOut(tools.python, ["-m", "battery", ...given], join(root, "runner"));
  if (code !== 0 || given.includes("--list")) process.exit(code);
  process.exit(await script("battery-report.mjs", ["--bank", bank]));
}

main().catch(failWith);
