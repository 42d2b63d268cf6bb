import { Mirror } from "../../../../src/targets/remote/mirror.ts";
import { localStation } from "../../../../src/targets/remote/station.ts";
import { StationRuns } from "../../../../src/targets/remote/stationRuns.ts";

// A process that copies a run folder until it is killed: RUNNER PYTHON THERE LOCAL.
const [runner = "", python = "", there = "", local = ""] = process.argv.slice(2);
const runs = new StationRuns(localStation(runner, python), runner);
const mirror = await Mirror.open(local, { everyMs: 5 });
console.log("copies");
await runs.follow({ dir: there, runner }, mirror.known(), (frame) => mirror.apply(frame), new AbortController().signal);
await mirror.close();
