// Makes the workspaces that the tests open, in .cache. Needs Node 24: it runs the project's TypeScript as it is.
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { recordRuns } from "./recordRuns.ts";
import { answeringHost, closedHost, makeStandInSsh } from "./standInSsh.ts";
import { root } from "../../.config/scripts/setup.mjs";

const sample = join(root, "media", "sample");
const copySample = (to) => cpSync(sample, to, { recursive: true, filter: (source) => !source.includes(".seesaw") });

/** The sample with recorded runs of its first three stages, the second with a failed run before it; the variant with replay too. */
export function recordedWorkspace(dir, stages = ["math", "search", "tool"]) {
  fresh(dir);
  copySample(dir);
  recordRuns({ root: dir, stages, failedFirst: ["search"] });
  recordRuns({ root: join(dir, "replay"), stages });
  return dir;
}

/** Case V03: rows full of what HTML, templates and shells would take for code, in a folder with an odd name. */
export const hostileText = "<img src=x onerror=\"document.title='pwned'\"><script>alert(1)</script> ${7*7} `q` {{x}} &amp;";

export function hostileWorkspace(dir) {
  fresh(dir);
  copySample(dir);
  for (const name of ["slope", "replay"]) rmSync(join(dir, name), { recursive: true, force: true });
  const file = join(dir, "data", "math.probe.jsonl");
  const rows = readFileSync(file, "utf8").split("\n");
  rows[0] = JSON.stringify({ messages: [{ role: "user", content: hostileText }, { role: "assistant", content: hostileText }] });
  writeFileSync(file, rows.join("\n"));
  recordRuns({ root: dir, stages: ["math", "search"] });
  return dir;
}

/** Recorded runs of the sample and of its variant with replay; the flag of `search` was raised after a look that was calm, with a checkpoint of it. */
export function flagsWorkspace(dir) {
  recordedWorkspace(dir);
  rmSync(join(dir, "slope"), { recursive: true, force: true });
  const runs = join(dir, ".seesaw", "runs");
  const run = readdirSync(runs).filter((name) => name.startsWith("search-")).sort().at(-1);
  const journal = join(runs, run, "journal.jsonl");
  const events = readFileSync(journal, "utf8").trim().split("\n").map((line) => JSON.parse(line)).filter(({ type, step }) => !(type.startsWith("flag.") && step === 15));
  const at = events.findLastIndex(({ step }) => step === 15);
  events.splice(at + 1, 0, { ...events[at], type: "checkpoint.saved", step: 15, path: "checkpoints/step-000015", kind: "full", final: false, weights_hash: "15", bytes: 1_638_400 });
  writeFileSync(journal, `${events.map((event, index) => JSON.stringify({ ...event, seq: index + 1 })).join("\n")}\n`);
  return dir;
}

/** A report card for an installation, made up: of a detector that is borne out, for what the recorded runs say. */
export function putReportCard(extension) {
  const share = (hits, of, low, high) => ({ hits, of, share: hits / of, low, high });
  const lead = { events: 66, q1: -2, median: 5, q3: 11, median_low: 1, median_high: 9, ahead: share(40, 66, 0.48, 0.72) };
  const panel = { rows: 64, false_alarms: share(6, 72, 0.031, 0.171), precision: share(60, 66, 0.81, 0.97), recall: share(66, 70, 0.86, 0.98), lead, lead_benchmark: lead };
  const card = {
    v: 1, detector: { id: "soft", family: "soft", parameters: {}, alpha: 0.1 }, bank: "B", tested: true, runs: { all: 150, healthy: 72, forgetting: 66, mixed: 12, left_out: 0, bases: ["a", "b"], steps: 300 }, nominal: 0.1,
    panels: [panel], by_kind: {}, copies: share(0, 4, 0, 0.6), prevalence: share(66, 240, 0.2, 0.3), by_speed: { abrupt: lead, gradual: lead }, ships: "alarm", early: true, watch_hidden: false,
  };
  mkdirSync(join(extension, "media", "battery"), { recursive: true });
  writeFileSync(join(extension, "media", "battery", "card.json"), JSON.stringify(card));
}

/** 2,000 prompts, one reference of 10,000 tokens, text of every kind; and a second root with a pipeline of its own. */
export function bigWorkspace(dir) {
  fresh(dir);
  const big = join(dir, "big");
  copySample(big);
  for (const name of ["slope", "replay"]) rmSync(join(big, name), { recursive: true, force: true });
  const row = (user, assistant) => JSON.stringify({ messages: [{ role: "user", content: user }, { role: "assistant", content: assistant }] });
  const longText = "Recite the first ten thousand numbers";
  const odd = ["👩‍👩‍👧‍👦🏳️‍🌈 family?", "ما هو مجموع 2 + 3؟", "bell and escape", "e\u0301 combined"];
  const rows = [row(`${longText} ${"and then some ".repeat(2000)}`, "1 ".repeat(5000)), ...odd.map((text, index) => row(text, ["👩‍👩‍👧‍👦 are 4; so 4", "الجواب هو 5", "\u0007\u001b[31m so 1", "e\u0301 so 2"][index]))];
  while (rows.length < 2000) rows.push(row(`What is ${rows.length} + ${rows.length % 97}?`, `${rows.length % 10}+${rows.length % 7}=${rows.length}; so ${rows.length + (rows.length % 97)}`));
  writeFileSync(join(big, "data", "math.probe.jsonl"), `${rows.join("\n")}\n`);
  writeFileSync(join(big, "seesaw.yaml"), readFileSync(join(big, "seesaw.yaml"), "utf8").replace("name: cliff", "name: big"));
  recordRuns({ root: big, stages: ["math", "search"] });
  const second = join(dir, "second");
  copySample(second);
  for (const name of ["slope", "replay"]) rmSync(join(second, name), { recursive: true, force: true });
  writeFileSync(join(second, "seesaw.yaml"), readFileSync(join(second, "seesaw.yaml"), "utf8").replace("name: cliff", "name: second"));
  const workspace = join(dir, "two.code-workspace");
  writeFileSync(workspace, JSON.stringify({ folders: [{ path: "big" }, { path: "second" }] }));
  return { workspace, longText, odd };
}

/** The workspace that a scenario of the mocha suite opens. */
export function makeWorkspace(scenario, folder, python) {
  switch (scenario) {
    case "recorded":
      return recordedWorkspace(folder);
    case "nonative":
      return recordedWorkspace(folder, ["math"]);
    case "untrusted":
      return untrustedWorkspace(folder);
    case "targets":
      return targetsWorkspace(folder, python);
    case "run":
    case "killed":
      return tinyWorkspace(folder, python);
    default:
      return bareWorkspace(folder);
  }
}

/**
 * Recorded runs, the last of them on a machine at which nobody answers, and two targets: that one, and one that answers. The
 * `ssh` that reaches them is in the folder beside: standInEnv.
 */
export function targetsWorkspace(dir, python = "python3") {
  recordedWorkspace(dir);
  for (const name of ["slope", "replay", "arena"]) rmSync(join(dir, name), { recursive: true, force: true });
  makeStandInSsh(standInFolder(dir));
  const there = join(standInFolder(dir), "there");
  const file = join(dir, "seesaw.yaml");
  writeFileSync(file, `${readFileSync(file, "utf8").trimEnd()}\ntargets:\n  near: { kind: ssh, host: ${answeringHost}, python: ${python}, dir: ${there} }\n  far: { kind: ssh, host: ${closedHost}, dir: ~/seesaw }\n`);
  mkdirSync(join(dir, ".vscode"), { recursive: true });
  writeFileSync(join(dir, ".vscode", "settings.json"), JSON.stringify({ "seesaw.python.path": python }));
  const runs = join(dir, ".seesaw", "runs");
  const run = readdirSync(runs).find((name) => name.startsWith("tool-"));
  const journal = join(runs, run, "journal.jsonl");
  const lines = readFileSync(journal, "utf8").split("\n");
  const last = lines.findLastIndex((line) => line.includes('"stage.progress"'));
  writeFileSync(journal, `${lines.slice(0, last).join("\n")}\n`);
  const heard = Date.now() / 1000 - 300;
  const write = (name, value) => writeFileSync(join(runs, run, name), JSON.stringify(value));
  const settings = { id: "far", kind: "ssh", host: closedHost, python: "python3", dir: "~/seesaw" };
  const spec = JSON.parse(readFileSync(join(runs, run, "run.json"), "utf8"));
  write("run.json", { ...spec, target: { id: "far", kind: "ssh", python: "python3" } });
  write("remote.json", { v: 1, target: "far", kind: "ssh", address: closedHost, dir: `/root/seesaw/runs/${run}`, runner: "/root/seesaw/runner/0", python: "python3", settings, attempts: [{ attempt: 1, nonce: "00", state: "submitted", job: { id: "1", nonce: "00" }, asked: heard }] });
  const probe = { state: "running", now: heard, boot: "b", beat_age: 0.5, started: null, exit: null };
  write("mirror.json", { v: 1, files: { "journal.jsonl": { size: statSync(journal).size, mark: "0" } }, probe, attempt: 1, heard, word: null, unreachable: { since: heard + 60, reason: "no-route", message: `${closedHost} does not answer.` }, complete: false });
  return dir;
}

/** A stage that is not done before it is stopped, however fast this machine is, on the machine that answers. */
export function remoteWorkspace(dir, python) {
  tinyWorkspace(dir, python, { steps: 4000 });
  makeStandInSsh(standInFolder(dir));
  const file = join(dir, "seesaw.yaml");
  const text = readFileSync(file, "utf8").replace("recipe: sft,", "recipe: sft, on: near,");
  writeFileSync(file, `${text.trimEnd()}\ntargets:\n  near: { kind: ssh, host: ${answeringHost}, python: ${python}, dir: ${join(standInFolder(dir), "there")} }\n`);
  return dir;
}

/** The run on the machine at which nobody answers, as it was when it waited in a queue there. */
export function queuedWorkspace(dir) {
  targetsWorkspace(dir);
  const runs = join(dir, ".seesaw", "runs");
  const run = join(runs, readdirSync(runs).find((name) => name.startsWith("tool-")));
  rmSync(join(run, "journal.jsonl"));
  const remote = JSON.parse(readFileSync(join(run, "remote.json"), "utf8"));
  writeFileSync(join(run, "remote.json"), JSON.stringify({ ...remote, kind: "slurm", settings: { ...remote.settings, kind: "slurm", resources: {} } }));
  const word = { state: "queued", reason: "Priority", nodes: null };
  writeFileSync(join(run, "mirror.json"), JSON.stringify({ v: 1, files: {}, probe: null, attempt: 1, heard: Date.now() / 1000, word, unreachable: null, complete: false }));
  return dir;
}

/** Ends what the stand-in started and still lives, as a cut would. */
export function endStandIns(dir) {
  const file = join(standInFolder(dir), "pids");
  for (const pid of readFileSync(file, "utf8").trim().split("\n")) {
    try {
      // A number is given again: only what still is a station of ours.
      if (readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("sys.stdin.buffer")) process.kill(Number(pid));
    } catch {
      // ended by itself
    }
  }
  rmSync(file);
}

export const standInFolder = (dir) => `${dir.replace(/[^\w/.-]/g, "_")}.ssh`;

/** So that `ssh` is the stand-in's, and tests find what it was called with. */
export function standInEnv(dir) {
  return { PATH: [join(standInFolder(dir), "bin"), process.env.PATH].join(delimiter), SEESAW_TEST_CALLS: join(standInFolder(dir), "calls") };
}

/** A folder in which there is nothing for us. */
export function bareWorkspace(dir) {
  fresh(dir);
  writeFileSync(join(dir, "notes.md"), "# Nothing to see\n");
  return dir;
}

/** Recorded runs, and everything case V07 would have us start. */
export function untrustedWorkspace(dir) {
  recordedWorkspace(dir, ["math", "search"]);
  rmSync(join(dir, "slope"), { recursive: true, force: true });
  rmSync(join(dir, "replay"), { recursive: true, force: true });
  writeFileSync(join(dir, "evil.sh"), '#!/bin/sh\ntouch "$(dirname "$0")/TRUST_CANARY"\n', { mode: 0o755 });
  mkdirSync(join(dir, ".vscode"));
  const evil = join(dir, "evil.sh");
  writeFileSync(join(dir, ".vscode", "settings.json"), JSON.stringify({ "seesaw.python.path": evil, "python.defaultInterpreterPath": evil }));
  mkdirSync(join(dir, ".venv", "bin"), { recursive: true });
  cpSync(evil, join(dir, ".venv", "bin", "python"));
  return dir;
}

/**
 * The sample after its four stages really ran: a copy of the runs of `npm start` where there are such, else made once (about
 * 90 s) and kept as long as the sample stays the same. Pictures show what is true.
 */
export async function trainedWorkspace(dir, python, cache) {
  const key = createHash("sha256").update(readFileSync(join(sample, "seesaw.yaml"))).update(readFileSync(join(sample, "models", "m0", "model.safetensors"))).digest("hex");
  const stamp = join(cache, "key");
  const source = isTrained(sample) ? sample : cache;
  if (source === cache && (!existsSync(stamp) || readFileSync(stamp, "utf8") !== key)) {
    fresh(cache);
    copySample(cache);
    await train(cache, stages, python);
    writeFileSync(stamp, key);
  }
  fresh(dir);
  cpSync(source, dir, { recursive: true });
  for (const name of ["slope", "replay", "key"]) rmSync(join(dir, name), { recursive: true, force: true });
  // A copied run names the folder it was made in; the stage that follows must find its start here.
  for (const run of readdirSync(join(dir, ".seesaw", "runs"))) {
    const file = join(dir, ".seesaw", "runs", run, "run.json");
    if (existsSync(file)) writeFileSync(file, readFileSync(file, "utf8").replaceAll(source, dir));
  }
  // As the README's tour has it: another learning rate for the last stage, so that it is not up to date.
  const file = join(dir, "seesaw.yaml");
  const text = readFileSync(file, "utf8");
  const at = text.indexOf("learning_rate", text.indexOf("- id: format"));
  writeFileSync(file, text.slice(0, at) + text.slice(at).replace(/learning_rate: *\S+/, "learning_rate: 2.0e-4"));
  mkdirSync(join(dir, ".vscode"), { recursive: true });
  writeFileSync(join(dir, ".vscode", "settings.json"), JSON.stringify({ "seesaw.python.path": python }));
  return dir;
}

const stages = ["math", "search", "tool", "format"];

/** True when every stage has a run that ended done. */
function isTrained(dir) {
  const runs = join(dir, ".seesaw", "runs");
  const names = existsSync(runs) ? readdirSync(runs) : [];
  const isDone = (name) => existsSync(join(runs, name, "journal.jsonl")) && /"run\.finished".*"kind": ?"done"/.test(readFileSync(join(runs, name, "journal.jsonl"), "utf8").trim().split("\n").at(-1));
  return stages.every((stage) => names.some((name) => name.startsWith(`${stage}-`) && isDone(name)));
}

/** Runs stages to their end with the same code as the command line. */
async function train(dir, stages, python) {
  const { createServices } = await import("../../src/services.ts");
  const { loadPipeline, requirePipeline } = await import("../../src/targets/pipelineFile.ts");
  const { runChain } = await import("../../src/targets/chainRunner.ts");
  const loaded = await loadPipeline(join(dir, "seesaw.yaml"));
  const services = createServices({ log: { debug() {}, info() {}, warn: console.warn, error: console.error }, extensionDir: root, storageDir: join(dir, ".seesaw", "cache") });
  try {
    const { failed } = await runChain(services, requirePipeline(loaded), loaded.diagnostics, {
      stages,
      trusted: true,
      python: { explicit: { command: python, setting: "the tests" } },
      onEvent: (event) => {
        if (event.type === "started" || event.type === "finished") console.log(`  ${event.stage} ${event.type}`);
      },
    });
    if (failed !== null) throw new Error(`${failed.id} did not finish: ${JSON.stringify(failed.state.reason)}`);
  } finally {
    services.dispose();
  }
}

/** One stage of four steps (or more) and one skill of sixteen prompts on the sample's model: real, and over in seconds. */
export function tinyWorkspace(dir, python, { steps = 4 } = {}) {
  fresh(dir);
  for (const name of ["models", "data"]) cpSync(join(sample, name), join(dir, name), { recursive: true });
  for (const split of ["probe", "ood"]) {
    const file = join(dir, "data", `math.${split}.jsonl`);
    writeFileSync(file, `${readFileSync(file, "utf8").split("\n").slice(0, 16).join("\n")}\n`);
  }
  const pipeline = `seesaw: 1
name: tiny
base: models/m0
skills:
  math: { probes: data/math.probe.jsonl, ood: data/math.ood.jsonl, check: { kind: number-after, marker: so } }
probe: { every: ${Math.ceil(steps / 2)}, eval_every: ${steps}, max_new_tokens: 24 }
stages:
  - { id: math, recipe: sft, data: data/math.train.jsonl, save_every: 20, args: { max_steps: ${steps}, learning_rate: 1.0e-3, per_device_train_batch_size: 8, logging_steps: 1 } }
`;
  writeFileSync(join(dir, "seesaw.yaml"), pipeline);
  mkdirSync(join(dir, ".vscode"), { recursive: true });
  writeFileSync(join(dir, ".vscode", "settings.json"), JSON.stringify({ "seesaw.python.path": python }));
  return dir;
}

function fresh(dir) {
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(dir, { recursive: true });
}
