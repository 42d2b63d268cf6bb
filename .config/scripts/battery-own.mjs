// `npm run battery -- --own`: what limits from a project's own healthy runs would do, on the raw runs of the banks that are there
// (.cache/battery/raw). Exploration (decision 0019): it chooses nothing and ships nothing.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { readRuns } from "./battery-runs.mjs";
import { SetupError, failWith, say } from "./progress.mjs";
import { root } from "./setup.mjs";

const [draws, seed, sizes] = [400, 20261130, [9, 19, 29]];

async function main() {
  const battery = (name) => import(`../../src/domain/battery/${name}.ts`);
  const [{ ScoredBank }, { limitCandidate }, { tunedDrop }, { explored }, { allowedRate, lowestThreshold }] = await Promise.all(["ownLimits", "limitCandidate", "baselines/accuracy", "baselines/explored", "tune"].map(battery));
  const banks = {};
  for (const bank of ["A", "B", "C"]) {
    // Its protocol forbids to open it before it is judged.
    if (bank === "C" && !existsSync(join(root, "media", "battery", "bank-C.json"))) continue;
    const { runs } = await readRuns(join(root, ".cache", "battery", "raw", bank));
    if (runs.length > 0) banks[bank] = runs;
    else throw new SetupError(`There are no raw runs of bank ${bank}: make them with \`npm run battery -- --bank ${bank}\`.`);
  }
  const percent = (share) => `${Math.round(100 * share)} %`;
  say(`own limits: mean of ${draws} draws (seed ${seed}) of so many healthy runs of the same bank, meant for ${percent(allowedRate)}; false alarms on the healthy runs not drawn, in brackets the first and ninth tenth`);
  for (const candidate of [64, 128, 256].flatMap((rows) => [limitCandidate(rows, true), tunedDrop(rows), ...explored(rows)])) {
    console.log(`\n${candidate.label}`);
    const scored = Object.fromEntries(Object.entries(banks).map(([bank, runs]) => [bank, new ScoredBank(candidate, runs)]));
    for (const [bank, other] of [["A", "B"], ["B", "A"], ["C", "A"]].filter(([bank]) => bank in banks)) {
      const lines = [[`limit of bank ${other}`, scored[bank].at(lowestThreshold(scored[other].healthy, allowedRate))], ...sizes.map((n) => [`own, ${n} runs`, scored[bank].byOwn(n, draws, seed)])];
      // Where a bank has fewer healthy runs than are to be drawn there is no figure.
      for (const [what, { falseAlarms, falseAlarmsSpread: [low, high], ahead, median }] of lines.filter(([, figures]) => figures !== null)) {
        const spread = low === high ? "" : ` (${Math.round(100 * low)}–${Math.round(100 * high)})`;
        console.log(`  ${bank}  ${what.padEnd(16)} false alarms ${`${percent(falseAlarms)}${spread}`.padEnd(14)} before the crossing ${percent(ahead).padStart(5)}   median lead ${median.toFixed(1)} steps`);
      }
    }
  }
}

main().catch(failWith);
