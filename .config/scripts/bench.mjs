// `npm run bench`: figures, never tests. Prints a table and writes `.cache/bench.json`. Ratios are measured in one run, since
// machines are shared and noisy. `npm run bench -- --only index,scoring`; parts: index, datasets, drift, rows, live, targets, scoring, activation, probes, watch.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { join } from "node:path";
import { SetupError, done, failWith, say } from "./progress.mjs";
import { root, setup } from "./setup.mjs";

const run = (argv, options = {}) => execFileSync(argv[0], argv.slice(1), { cwd: root, encoding: "utf8", maxBuffer: 1 << 26, stdio: ["ignore", "pipe", "inherit"], ...options });
const lastJson = (text) => JSON.parse(text.trim().split("\n").at(-1));

const parts = {
  /** Indexing MB/s against a plain SHA-256 pass over the same file. */
  index: ({ node }) => lastJson(run([node, "-e", 'import("./test/bench/rowIndex.bench.ts").then(async (m) => console.log(JSON.stringify(await m.bench())))'])),
  /** First rows, index, search and memory of the dataset editor's reader on a file of 1 GB. */
  datasets: ({ node, python }) => [
    ...lastJson(run([node, "-e", 'import("./test/bench/datasets.bench.ts").then(async (m) => console.log(JSON.stringify(await m.bench())))'])),
    ...lastJson(run([node, "-e", 'import("./test/bench/parquet.bench.ts").then(async (m) => console.log(JSON.stringify(await m.bench(process.argv[1]))))', python])),
  ],
  /** Token Drift on 100,000 probes under eight checkpoints. */
  drift: ({ node }) => lastJson(run([node, "-e", 'import("./test/bench/drift.bench.ts").then(async (m) => console.log(JSON.stringify(await m.bench())))'])),
  /** Lenses and marks of one screen of a 50 MB dataset file. */
  rows: ({ node }) => lastJson(run([node, "-e", 'import("./test/bench/rows.bench.ts").then(async (m) => console.log(JSON.stringify(await m.bench())))'])),
  /** One prompt under five checkpoints, without Python. */
  live: ({ node }) => lastJson(run([node, "-e", 'import("./test/bench/liveScoring.bench.ts").then(async (m) => console.log(JSON.stringify(await m.bench())))'])),
  /** Runs on other machines: how late a line is seen, how a log of 1 GB is copied and resumed, what a window with 220 runs costs. */
  targets: ({ node, python }) => lastJson(run([node, "-e", 'import("./test/bench/targets.bench.ts").then(async (m) => console.log(JSON.stringify(await m.bench(process.argv[1]))))', python])),
  /** Scoring tokens/s against a plain transformers loop and against lm-eval, on the same rows. */
  scoring: ({ python }) => lastJson(run([python, "test/bench/scoring.py"])),
  /** Our own part of the activation, in the real extension host, with the packaged VSIX. */
  activation({ node }) {
    const text = run([node, "test/vscode/run.mjs", "recorded"]);
    const ms = /activationMs ([\d.]+)/.exec(text)?.[1];
    if (ms === undefined) throw new SetupError("The VS Code scenario \"recorded\" reported no activation time; run `node test/vscode/run.mjs recorded` and read its output.");
    return [{ name: "activation, our own time", value: Number(ms), unit: "ms", target: "≤ 60" }];
  },
  /** The probes' share of each stage's time, from the sample chain's own journals (`npm start` makes them). */
  probes() {
    const runs = join(root, "media", "sample", ".seesaw", "runs");
    // The newest run of each stage: ids end in the time they were made.
    const newest = new Map((existsSync(runs) ? readdirSync(runs).sort() : []).map((name) => [name.replace(/-[^-]+-[^-]+$/, ""), join(runs, name, "journal.jsonl")]));
    const rows = [...newest].flatMap(([stage, journal]) => {
      if (stage.startsWith(".") || !existsSync(journal)) return [];
      const events = readFileSync(journal, "utf8").split("\n").filter((line) => line.startsWith("{") && line.endsWith("}")).map((line) => JSON.parse(line));
      const cost = events.findLast((event) => event.type === "probe.cost");
      return cost ? [{ name: `probes' share of stage ${stage}`, value: Number((cost.share * 100).toFixed(1)), unit: "%", target: "≤ 15" }] : [];
    });
    if (rows.length === 0) say("no sample chain yet: run `npm start` first for the probes' share");
    return rows;
  },
  /** The early warning's share of a stage of usual length, with everything as it is by default. */
  watch: ({ node, python }) => lastJson(run([node, "-e", 'import("./test/bench/watch.bench.ts").then((m) => console.log(JSON.stringify(m.bench(process.argv[1]))))', python])),
};

async function main() {
  const args = process.argv.slice(2);
  const names = args.includes("--only") ? args[args.indexOf("--only") + 1].split(",") : Object.keys(parts);
  for (const name of names) if (!(name in parts)) throw new SetupError(`There is no part "${name}": use ${Object.keys(parts).join(", ")}.`);
  const tools = await setup({ python: names.includes("scoring") ? "dev" : false, browser: names.includes("activation") });
  const results = [];
  for (const name of names) {
    say(`measuring ${name}`);
    results.push(...parts[name](tools));
  }
  const report = { t: new Date().toISOString(), cpu: cpus()[0]?.model, cores: cpus().length, load: loadavg()[0], results };
  mkdirSync(join(root, ".cache"), { recursive: true });
  writeFileSync(join(root, ".cache", "bench.json"), `${JSON.stringify(report, null, 2)}\n`);
  const width = Math.max(...results.map(({ name }) => name.length));
  for (const { name, value, unit, ratio, target } of results) {
    console.log(`${name.padEnd(width)}  ${String(value).padStart(9)} ${unit.padEnd(9)}${ratio === undefined ? "" : ` ${ratio} × the plain pass`}${target ? `   target ${target}` : ""}`);
  }
  console.log(JSON.stringify(report));
  done("written to .cache/bench.json");
}

main().catch(failWith);
