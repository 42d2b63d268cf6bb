// From the battery's raw runs to its results: `media/battery/bank-<A|B>.json`, `card.json`, `curves.svg` and `REPORT_CARD.md`.
//   node .config/scripts/battery-report.mjs [--bank A|B|C] [--raw .cache/battery/raw] [--out media/battery] [--report REPORT_CARD.md] [--jobs 2]
// Bank A tunes every candidate; the others take their settings from bank-A.json and tune nothing. The card is that of A and B, and made again without --bank, too.
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { Worker, isMainThread, parentPort, workerData } from "node:worker_threads";
import { readRuns } from "./battery-runs.mjs";
import { SetupError, done, failWith, say } from "./progress.mjs";
import { root } from "./setup.mjs";

const battery = (name) => import(`../../src/domain/battery/${name}.ts`);

/** One candidate after the other, on every core: a worker asks for the next when it is done. */
async function evaluateAll(folder, tasks, jobs) {
  const results = [];
  let next = 0;
  await Promise.all(Array.from({ length: Math.min(jobs, tasks.length) }, () => new Promise((fulfil, reject) => {
    const worker = new Worker(fileURLToPath(import.meta.url), { workerData: { folder } });
    const give = () => (next < tasks.length ? worker.postMessage(tasks[next++]) : worker.postMessage(null));
    worker.on("message", (result) => {
      if (result !== "ready") {
        results.push(result);
        say(`${results.length} of ${tasks.length}: ${result.id}`);
      }
      give();
    });
    worker.on("error", reject);
    worker.on("exit", (code) => (code === 0 ? fulfil() : reject(new Error(`A worker ended with code ${code}.`))));
  })));
  return results;
}

async function work() {
  const { evaluate, truthOf } = await battery("bank");
  const { amocOf } = await battery("amoc");
  const { candidateById } = await battery("candidates");
  const { runs } = await readRuns(workerData.folder);
  parentPort.on("message", (task) => {
    if (task === null) return parentPort.close();
    const candidate = candidateById(task.id);
    parentPort.postMessage(task.amoc ? amocOf(candidate, runs, truthOf) : evaluate(candidate, runs, task.knob));
  });
  parentPort.postMessage("ready");
}

async function bankResults(bank, { raw, out, jobs }) {
  const { bankFile } = await battery("bank");
  const { allCandidates, candidateById, variantsOf } = await battery("candidates");
  const { ranking, bestOfFamilies } = await battery("choose");
  const folder = join(raw, bank);
  const { runs, leftOut } = await readRuns(folder);
  if (runs.length === 0) throw new SetupError(`${folder} holds no whole run. Run the battery first: npm run battery.`);
  say(`bank ${bank}: ${runs.length} runs, ${leftOut.length} left out`);
  let tuned = null;
  if (bank !== "A") {
    const path = join(out, "bank-A.json");
    if (!existsSync(path)) throw new SetupError(`${path} is missing: settings are fixed on bank A before bank ${bank} is opened. Run this with --bank A first.`);
    tuned = JSON.parse(readFileSync(path, "utf8"));
  }
  const knobs = new Map(tuned?.candidates.map(({ id, knob }) => [id, knob]));
  let candidates = tuned === null ? allCandidates() : tuned.candidates.map(({ id }) => candidateById(id));
  const evaluated = await evaluateAll(folder, candidates.map(({ id }) => ({ id, knob: tuned === null ? undefined : knobs.get(id) })), jobs);
  if (tuned === null) {
    const second = bestOfFamilies(bankFile(bank, runs, candidates, evaluated, leftOut, [])).flatMap((id) => variantsOf(id));
    evaluated.push(...(await evaluateAll(folder, second.map(({ id }) => ({ id })), jobs)));
    candidates = [...candidates, ...second];
  }
  const chosen = ranking(tuned ?? bankFile(bank, runs, candidates, evaluated, leftOut, []))[0]?.id;
  const curves = [...(chosen === undefined ? [] : [chosen]), ...candidates.filter(({ id }) => /^(drop-n|nll-mean|kl$|benchmark-tuned|random)/.test(id)).map(({ id }) => id)];
  const amoc = await evaluateAll(folder, curves.map((id) => ({ id, amoc: true })), jobs);
  amoc.sort((a, b) => curves.indexOf(a.id) - curves.indexOf(b.id));
  const file = { ...bankFile(bank, runs, candidates, evaluated, leftOut, amoc), protocol: protocolHash(bank) };
  mkdirSync(out, { recursive: true });
  const path = join(out, `bank-${bank}.json`);
  writeFileSync(path, `${JSON.stringify(file)}\n`);
  say(`${relative(root, path)}: ${(statSync(path).size / 1000).toFixed(0)} kB`);
}

/** Of the protocol as it was when the bank was judged, so that a reader can see whether it was changed since. */
function protocolHash(bank) {
  const path = join(root, ".github", bank === "C" ? "battery-protocol-C.md" : "battery-protocol.md");
  return existsSync(path) ? createHash("sha256").update(readFileSync(path)).digest("hex") : null;
}

/** Bytes of a kept trace for each scored token, over the sample's traces; null where `npm start` has made none. */
async function traceBytes() {
  const runs = join(root, "media", "sample", ".seesaw", "runs");
  if (!existsSync(runs)) return null;
  const { DatabaseSync } = await import("node:sqlite");
  let [bytes, tokens] = [0, 0];
  for (const path of readdirSync(runs, { recursive: true }).filter((name) => name.endsWith(".trace")).sort().map((name) => join(runs, name))) {
    const trace = new DatabaseSync(path, { readOnly: true });
    tokens += trace.prepare("SELECT COALESCE(SUM(LENGTH(ids) / 4), 0) AS n FROM tokens").get().n;
    bytes += statSync(path).size;
    trace.close();
  }
  return tokens === 0 ? null : bytes / tokens;
}

async function card({ out, report }) {
  const read = (bank) => (existsSync(join(out, `bank-${bank}.json`)) ? JSON.parse(readFileSync(join(out, `bank-${bank}.json`), "utf8")) : null);
  const [a, b] = [read("A"), read("B")];
  if (a === null) throw new SetupError(`${join(out, "bank-A.json")} is missing: run this with --bank A first.`);
  const { reportCard } = await battery("card");
  const { cardMarkdown } = await battery("cardMarkdown");
  const path = join(out, "card.json");
  // The sample's traces are not in the repository: without them the figure of the last card stays.
  const known = existsSync(path) ? JSON.parse(readFileSync(path, "utf8")).cost?.bytes_per_token ?? null : null;
  const result = reportCard(a, b, (await traceBytes()) ?? known);
  writeFileSync(path, `${JSON.stringify(result, null, 1)}\n`);
  writeFileSync(report, cardMarkdown(result, a, b));
  const { curvesPicture } = await battery("curvesPicture");
  const { amoc, candidates } = b ?? a;
  writeFileSync(join(out, "curves.svg"), curvesPicture(amoc.map((curve) => ({ curve, label: candidates.find(({ id }) => id === curve.id)?.label ?? curve.id }))));
  done(`${relative(root, path)} and ${relative(root, report)}: ${result.detector.id}, ships ${result.ships}, early ${result.early}, watch hidden ${result.watch_hidden}`);
}

async function main() {
  const args = process.argv.slice(2);
  const value = (name, fallback) => (args.includes(name) ? args[args.indexOf(name) + 1] : fallback);
  const unknown = args.find((arg, index) => arg.startsWith("--") ? !["--bank", "--raw", "--out", "--report", "--jobs"].includes(arg) : !args[index - 1]?.startsWith("--"));
  if (unknown !== undefined) throw new SetupError(`"${unknown}" is no option: use --bank A|B|C, --raw, --out, --report and --jobs.`);
  const options = {
    raw: resolve(root, value("--raw", ".cache/battery/raw")),
    out: resolve(root, value("--out", "media/battery")),
    report: resolve(root, value("--report", "REPORT_CARD.md")),
    jobs: Number(value("--jobs", availableParallelism())),
  };
  const bank = value("--bank", null);
  const { banks } = await battery("rawRun");
  if (bank !== null && !banks.includes(bank)) throw new SetupError(`There is no bank "${bank}": use ${banks.join(", ")}.`);
  if (!Number.isInteger(options.jobs) || options.jobs < 1) throw new SetupError("--jobs needs a whole number of at least 1.");
  if (bank !== null) await bankResults(bank, options);
  await card(options);
}

if (isMainThread) main().catch(failWith);
else work().catch((error) => { throw error; });
