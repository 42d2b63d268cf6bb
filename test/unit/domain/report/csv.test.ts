import assert from "node:assert/strict";
import { test } from "node:test";
import { csvLine } from "../../../../src/domain/report/csv.ts";
import { driftCsv } from "../../../../src/domain/report/driftCsv.ts";
import { openProbeSet, type ClosableTrace } from "../../../../src/domain/drift/driftSelection.ts";
import { makeView } from "../../host/views.ts";
import { makeTrace } from "../makeTrace.ts";

test("CSV is RFC 4180, and no text is a formula", () => {
  assert.equal(csvLine(["a", 'say "x"', "b,c", "d\ne", null, -1.5]), 'a,"say ""x""","b,c","d\ne",,-1.5\r\n');
  assert.equal(csvLine(["=1+1", "+1", "-1", "@x", "\tx", "＝1", "x=1"]), "'=1+1,'+1,'-1,'@x,'\tx,'＝1,x=1\r\n");
  assert.equal(csvLine(["=a,b", "\rx"]), '"\'=a,b","\'\rx"\r\n');
  assert.equal(csvLine([Number.NaN, Infinity]), "NaN,Infinity\r\n");
});

function lines(traces: Record<string, ClosableTrace>): string[][] {
  const { pipeline, chain } = makeView({ traces: { M0: { "math.id": "t0" }, M1: { "math.id": "t1" }, M2: { "math.id": "t2" } } });
  assert.ok(pipeline !== null && chain !== null);
  const { opened, close } = openProbeSet(chain, { skill: "math", split: "id" }, (path) => {
    const trace = traces[path];
    if (trace === undefined) throw new Error(`${path} is damaged.`);
    return trace;
  });
  try {
    return [...driftCsv(pipeline, opened, "M1")].map((line) => line.trimEnd().split(","));
  } finally {
    close();
  }
}

const trace = (...args: Parameters<typeof makeTrace>): ClosableTrace => ({ ...makeTrace(...args), close() {} });

test("tokens as CSV: one line per probe, checkpoint and token, with the change against the reference", () => {
  const all = lines({ t0: trace([{ hash: "a", logprob: [-3, -3] }]), t1: trace([{ hash: "a", logprob: [-0.5, -0.5], correct: true }, { hash: "b", logprob: [-1], reason: "too long" }]), t2: trace([{ hash: "a", logprob: [-0.5, -4.5], rank: [0, 7], correct: false }]) });
  const [header = [], ...rows] = all;
  const column = (row: string[] | undefined, name: string): string | undefined => row?.[header.indexOf(name)];
  assert.equal(rows.length, 2 + 3 + 2);
  assert.ok(rows.every((row) => row.length === header.length));
  const fallen = rows.find((row) => column(row, "checkpoint") === "M2" && column(row, "token_index") === "1");
  assert.deepEqual(["token", "logprob", "logprob_change", "rank", "class", "beyond_noise", "answer_delta_nll", "check_passed"].map((name) => column(fallen, name)), ["b", "-4.5", "-4", "8", "lost", "true", "4", "false"]);
  assert.equal(column(rows.find((row) => column(row, "row_hash") === "b"), "note"), "too long");
});

test("tokens as CSV: unlike settings have no change, and a trace that cannot be read is said", () => {
  const [header = [], ...rows] = lines({ t0: trace([{ hash: "a", logprob: [-3] }], { dtype: "bfloat16" }), t1: trace([{ hash: "a", logprob: [-0.5] }]) });
  const of = (label: string, name: string): string | undefined => rows.find((row) => row[2] === label)?.[header.indexOf(name)];
  assert.equal(of("M0", "logprob_change"), "");
  assert.match(of("M0", "note") ?? "", /Not comparable/);
  assert.equal(of("M2", "note"), "t2 is damaged.");
});
