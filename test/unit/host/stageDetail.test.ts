import assert from "node:assert/strict";
import { test } from "node:test";
import { stageDetail, commandText, seedLines, type StagePreview } from "../../../src/host/stageDetail.ts";
import { makeView } from "./views.ts";

const [math] = makeView().pipeline!.stages;
const preview: StagePreview = {
  stage: math!, start: "M0, the base model", upToDate: null, steps: { steps: 80, from: null }, cost: [], data: "math.jsonl", stale: [], runs: 0,
  argv: ["/my envs/bin/python", "-m", "seesaw_runner.recipes.sft", ".seesaw/runs/math-<time>"], folder: ".seesaw/runs/math-<time>", label: "seesaw.yaml", python: "3.11.2 from .venv", ahead: [],
};

test("the question names start, steps, folder, command and Python", () => {
  const text = stageDetail(preview);
  for (const part of ["Starts from M0, the base model.", "80 steps of sft on math.jsonl.", "Nothing is overwritten.", "'/my envs/bin/python' -m seesaw_runner.recipes.sft .seesaw/runs/math-<time>", "Python 3.11.2 from .venv."]) assert.ok(text.includes(part), `${part} is missing in\n${text}`);
  assert.doesNotMatch(text, /stale|Runs now|Up to date/);
});

test("what it will need stands below the steps, and nothing where that cannot be told", () => {
  const lines = stageDetail({ ...preview, cost: ["Memory: 13 GB.", "Work: 80 steps."] }).split("\n");
  assert.deepEqual(lines.slice(1, 4), ["80 steps of sft on math.jsonl.", "Memory: 13 GB.", "Work: 80 steps."]);
  assert.doesNotMatch(stageDetail(preview), /Memory|Work:/);
});

test("estimated steps say where they come from; unknown ones are not invented", () => {
  const steps = { steps: 150, from: { rows: 4800, epochs: 3, batch: 96 } };
  assert.match(stageDetail({ ...preview, steps }), /About 150 steps of sft on math\.jsonl \(4,800 rows × 3 epochs ÷ 96 rows a step\)\./);
  assert.match(stageDetail({ ...preview, steps: null }), /Steps as the data and arguments give of sft/);
  assert.match(stageDetail({ ...preview, stage: { ...math!, replay: { buffer: "main", ratio: 0.1 } } }), /80 steps of sft on math\.jsonl, 10 % replay from main\./);
});

test("what becomes stale, what stays, and what is waited for", () => {
  const text = stageDetail({ ...preview, stale: ["search", "tool"], runs: 2, ahead: ["tool, step 3 of 80"], upToDate: "math-1" });
  assert.match(text, /When it is done, search and tool are stale until run again: they were trained from the present checkpoint of math\./);
  assert.match(text, /Nothing is overwritten: the 2 runs of math that are there already stay\./);
  assert.match(text, /^Runs now: tool, step 3 of 80\. math starts when that is done; if it fails or is stopped, the queue pauses\. All windows of this workspace share the queue/);
  assert.match(text, /Up to date: math-1 has the same inputs/);
});

test("a command is quoted as a shell would need it", () => {
  assert.equal(commandText(["a b", "it's", "x=1", "$HOME"]), `'a b' 'it'\\''s' x=1 '$HOME'`);
});

test("a command of the person's own is shown as it is written, with where it runs", () => {
  const words = stageDetail({ ...preview, stage: { ...math!, recipe: "command", data: null, options: { run: ["python", "my train.py", "{start}"] } } });
  assert.match(words, /That runs your own command in the folder of seesaw\.yaml:\npython 'my train\.py' \{start\}\n/);
  assert.match(words, /Its checkpoints are scored where it writes them/);
  const line = stageDetail({ ...preview, stage: { ...math!, recipe: "command", options: { run: "bash run.sh && echo $HOME", cwd: "/elsewhere" } } });
  assert.match(line, /That runs your own shell line in \/elsewhere:\nbash run\.sh && echo \$HOME\n/);
  assert.doesNotMatch(stageDetail(preview), /your own/);
});

test("several seeds: which get a run, which do not and why, and that they stand beside the chain", () => {
  const seeds = { run: [1, 2, 3, 9], limit: 2, upToDate: [{ seed: 0, id: "math-0" }], running: [{ seed: 4, id: "math-4" }], fileSeed: 0 };
  const text = stageDetail({ ...preview, seeds, place: { target: "cluster", address: "login1 (Slurm)", dir: "~/seesaw" } });
  assert.deepEqual(text.split("\n").slice(0, 8), [
    "One job array of 4 tasks, for each seed a run of its own: 1–3, 9. At most 2 at once.",
    "Seed 0 is up to date (math-0): it is not run again.",
    "Seed 4 runs already (math-4).",
    "Runs with another seed than the file's (0) stand beside the chain: the next stage does not start from them.",
    "",
    "What follows holds for each run.",
    "",
    "Runs on cluster: login1 (Slurm).",
  ]);
  assert.deepEqual(seedLines({ run: [0], limit: null, upToDate: [], running: [], fileSeed: 0 }), ["One run, with seed 0."]);
  assert.doesNotMatch(seedLines({ ...seeds, limit: 9 }).join(), /At most/);
  assert.deepEqual(seedLines({ ...seeds, run: [] }).length, 2, "only why there is nothing to start");
});

test("on another machine the question says where, what is copied there, and what comes back", () => {
  const text = stageDetail({ ...preview, place: { target: "box", address: "gpu-box", dir: "~/seesaw" }, python: "from target `box` in seesaw.yaml" });
  assert.match(text, /^Runs on box: gpu-box\.\nStarts from M0/);
  assert.match(text, /Copies the runner, the data and the start checkpoint to ~\/seesaw where they are not there yet\. Checkpoints stay there; journal, traces and log come back/);
  assert.match(text, /The run goes on there when this window is closed and when the connection is cut\.$/);
  assert.doesNotMatch(text, /next to seesaw\.yaml/);
});
