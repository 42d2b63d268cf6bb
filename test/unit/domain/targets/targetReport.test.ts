import assert from "node:assert/strict";
import { test } from "node:test";
import { reportParts, reportSummary } from "../../../../src/domain/targets/targetReport.ts";
import { report, unreached } from "./reports.ts";

test("what a target has, in the order in which it matters", () => {
  const parts = reportParts(report);
  assert.deepEqual(parts.map(({ kind, label, text, level }) => [kind, label, text, level]), [
    ["problem", "n1 lacks peft.", "", "problem"],
    ["gpus", "GPUs", "2, 12 GB of 160 GB used", "plain"],
    ["queues", "Queue", "3 running, 5 waiting", "plain"],
    ["python", "Python 3.11.2", "/envs/trl/bin/python · 1 package missing", "warning"],
    ["disk", "Disk", "20 GB free of 1.0 TB", "warning"],
    ["versions", "Versions", "slurm 22.05.8", "plain"],
    ["round-trip", "Round trip", "42 ms", "plain"],
  ]);
  const [, gpus, queue, python] = parts;
  assert.deepEqual(gpus?.parts.map(({ label, text }) => [label, text]), [["0: NVIDIA H100", "12 GB of 80 GB used · 40 % busy"], ["1: NVIDIA H100", "0 B of 80 GB used · 0 % busy"]]);
  assert.deepEqual(queue?.parts.map(({ label, text, level }) => [label, text, level]), [["gpu", "up · 2 nodes · gpu:4 · 3 running, 5 waiting", "plain"], ["old", "down · 1 node · 0 running, 0 waiting", "warning"]]);
  assert.deepEqual(python?.parts.map(({ label, text, level }) => [label, text, level]), [["torch", "2.4.0", "plain"], ["peft", "missing", "warning"]]);
  assert.equal(parts[0]?.reason, "packages");
});

test("what could not be told is not there, and never 0", () => {
  assert.deepEqual(reportParts({ ...unreached, problems: [] }), []);
  const one = reportParts({ ...report, gpus: [{ name: "X", total: null, used: null, utilisation: null }], queue: [{ name: "q", state: "up", nodes: null, gpus: null, waiting: null, running: null }] });
  assert.deepEqual(one.filter(({ kind }) => kind === "gpus").map(({ text }) => text), ["1"]);
  assert.deepEqual(one.find(({ kind }) => kind === "gpus")?.parts.map(({ text }) => text), [""]);
  assert.deepEqual(one.find(({ kind }) => kind === "queues")?.parts.map(({ text }) => text), ["up"]);
  assert.equal(reportParts({ ...report, gpus: [] }).find(({ kind }) => kind === "gpus")?.text, "none seen here");
});

test("a target in one line", () => {
  assert.equal(reportSummary(report), "1 problem · 2 GPUs, 12 GB of 160 GB used · Python 3.11.2 · 42 ms");
  assert.equal(reportSummary({ ...report, problems: [], gpus: [], roundTrip: null }), "no GPU · Python 3.11.2");
  assert.equal(reportSummary(unreached), "cannot be reached");
});
