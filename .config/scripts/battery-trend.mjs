// `npm run battery -- --trend`: the comparisons of bank C's protocol (.github/battery-protocol-C.md) on its raw runs: the trend of
// expected accuracy against accuracy as often and against the limit that ships, with bank A's settings and with limits set anew.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { SetupError, failWith, say } from "./progress.mjs";
import { root } from "./setup.mjs";
import { readRuns } from "./battery-runs.mjs";

const trend = "explored-trend-n64";
const compared = [trend, "explored-trend-n256", "limit-all-s1-n64", "limit-all-s1-n128", "limit-all-s1-n256", "drop-n64", "drop-n128", "drop-n256"];

async function main() {
  const battery = (name) => import(`../../src/domain/battery/${name}.ts`);
  const [{ bankFile, evaluate }, { candidateById }, { figuresOf, pairedOf }, { limitCandidate }, { choiceRows }] = await Promise.all(["bank", "candidates", "figures", "limitCandidate", "choose"].map(battery));
  const { benchmark } = await battery("baselines/accuracy");
  const { runs, leftOut } = await readRuns(join(root, ".cache", "battery", "raw", "C"));
  if (runs.length === 0) throw new SetupError("There are no raw runs of bank C: make them with `npm run battery -- --bank C`.");
  const knobs = new Map(JSON.parse(readFileSync(join(root, "media", "battery", "bank-A.json"), "utf8")).candidates.map(({ id, knob }) => [id, knob]));
  // The shipped limit has a fixed knob on its other panels; set anew, it is free there, too.
  const free = (id) => (id.startsWith("limit-") ? { ...limitCandidate(candidateById(id).rows ?? choiceRows, true), id } : candidateById(id));
  const candidates = [...compared.map(candidateById), benchmark];
  const settings = {
    "bank A's settings": bankFile("C", runs, candidates, candidates.map((one) => evaluate(one, runs, knobs.get(one.id))), leftOut, []),
    "limits set anew on bank C": bankFile("C", runs, candidates, [...compared.map((id) => evaluate(free(id), runs, undefined)), evaluate(benchmark, runs, undefined)], leftOut, []),
  };
  const percent = (share) => `${Math.round(100 * share)} %`;
  const interval = ({ share, low, high }) => `${percent(share)} (${Math.round(100 * low)}–${Math.round(100 * high)})`;
  const of = (kind) => Object.values(settings)[0].runs.filter((run) => run.class === kind).length;
  say(`bank C: ${runs.length} runs, ${of("healthy")} healthy, ${of("forgetting")} forgetting, ${of("mixed")} mixed; ${leftOut.length} left out`);
  for (const [what, bank] of Object.entries(settings)) {
    console.log(`\n${what}`);
    for (const id of compared) {
      const { falseAlarms, recall, truth, benchmark: before, precision, copies } = figuresOf(bank, id);
      const { knob } = bank.candidates.find((one) => one.id === id);
      console.log(`  ${id.padEnd(20)} ${String(Number(knob).toFixed(4)).padStart(8)}   false alarms ${falseAlarms.hits}/${falseAlarms.of} (${Math.round(100 * falseAlarms.low)}–${Math.round(100 * falseAlarms.high)} %)   found ${percent(recall.share)}   right ${percent(precision.share)}   before the crossing ${interval(truth.ahead)}   median lead ${truth.median.toFixed(1)} (${truth.medianInterval.low.toFixed(1)} … ${truth.medianInterval.high.toFixed(1)})   before the benchmark ${before.median.toFixed(1)}   copies ${copies.hits}/${copies.of}`);
    }
    for (const other of ["drop-n64", "limit-all-s1-n64"]) {
      const { ahead, events } = pairedOf(bank, trend, other);
      console.log(`  ${trend} − ${other}: ${(100 * ahead.difference).toFixed(1)} points of ${events} losses (${(100 * ahead.low).toFixed(1)} … ${(100 * ahead.high).toFixed(1)}), ${ahead.low > 0 ? "a clear margin" : "no clear margin"}`);
    }
  }
}

main().catch(failWith);
