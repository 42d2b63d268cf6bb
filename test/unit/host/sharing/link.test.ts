import assert from "node:assert/strict";
import { test } from "node:test";
import { formatLink, parseLink, type DriftLink } from "../../../../src/host/sharing/link.ts";
import { resolveLink } from "../../../../src/host/sharing/resolveLink.ts";
import type { TraceReader, TraceStore } from "../../../../src/storage/traces/traceStore.ts";
import { makeTrace } from "../../domain/makeTrace.ts";
import { file, makeRun, makeView } from "../views.ts";

/** As VS Code does: one layer of percent signs is taken off before an extension sees the query. */
function asHandedOver(link: string): { path: string; query: string } {
  const url = /^[a-z-]+:\/\/[^/]+(\/[^?]*)\?(.*)$/.exec(link);
  assert.ok(url);
  return { path: url[1] ?? "", query: decodeURIComponent(url[2] ?? "") };
}

const whole: DriftLink = { pipeline: "a folder+&=%41#ü/seesaw.yaml", run: "math-20260101T000000-aaaa", checkpoint: "M1", skill: "math", split: "ood", row: 3 };

test("a link says again what it was made of, odd folders included", () => {
  assert.deepEqual(parseLink(asHandedOver(formatLink("vscode", "seesaw.seesaw", whole))), whole);
  assert.equal(formatLink("vscode", "seesaw.seesaw", { pipeline: "slope/seesaw.yaml", row: 0 }), "vscode://seesaw.seesaw/open?pipeline=slope/seesaw.yaml&row=0");
});

test("a link that is none of ours is refused with a sentence that names what is wrong", () => {
  const refused = (query: string, pattern: RegExp, path = "/open"): void => void assert.throws(() => parseLink({ path, query }), { reason: "usage", message: pattern });
  refused("pipeline=a", /begin with \/open/, "/run");
  refused("", /names no pipeline/);
  refused("pipeline=a&stage=x", /"stage".*knows pipeline, run/);
  refused("pipeline=a&pipeline=b", /pipeline twice/);
  refused("pipeline=a&split=both", /split is id or ood/);
  refused("pipeline=a&row=-1", /whole number from 0/);
  refused("pipeline=a&row=1e3", /whole number from 0/);
  refused("pipeline=a&checkpoint=../x", /checkpoint/);
  refused(`pipeline=${"a".repeat(2000)}`, /too long/);
  refused("pipeline=a%00b", /control characters/);
});

const run = makeRun("math", { status: "done" });
const views = [makeView({ runs: [run], traces: { M0: { "math.id": "t0" }, M1: { "math.id": "t1" } } })];
const folders = [{ name: "w", path: "/w" }];
const trace = makeTrace([{ hash: "a", logprob: [-0.1] }, { hash: "b", logprob: [-1], reason: "it is too long." }]);
const store: TraceStore = { open: (path) => ({ ...trace, path, close: () => {} }) as TraceReader };
const resolve = (link: Partial<DriftLink>, among = views): ReturnType<typeof resolveLink> => resolveLink({ pipeline: "seesaw.yaml", ...link }, among, folders, () => Promise.resolve(store));

test("a link leads to its place, named from the folder, with the folder's name or as a whole path", async () => {
  for (const pipeline of ["seesaw.yaml", "w/seesaw.yaml", "/w/seesaw.yaml", "./sub/../seesaw.yaml"]) {
    const { selection, notes } = await resolve({ pipeline, run: run.id, checkpoint: "M0", skill: "math", split: "id", row: 0 });
    assert.deepEqual(selection, { pipeline: file, skill: "math", split: "id", reference: "M0", row: 0, token: null });
    assert.deepEqual(notes, []);
  }
});

test("what lies outside of the workspace, or does not exist, is a sentence", async () => {
  for (const pipeline of ["../seesaw.yaml", "/etc/seesaw.yaml", "/w/../etc/seesaw.yaml", "/wide/seesaw.yaml"]) await assert.rejects(resolve({ pipeline }), { message: /outside of this workspace/ });
  await assert.rejects(resolve({ pipeline: "other/seesaw.yaml" }), { message: /no pipeline "other\/seesaw.yaml".*it has seesaw.yaml/ });
  await assert.rejects(resolve({ run: "math-20260101T000000-bbbb" }), { message: /no run "math-20260101T000000-bbbb"/ });
  await assert.rejects(resolve({ skill: "maths" }), { message: /no skill `maths`.*Did you mean "math"/s });
  await assert.rejects(resolve({ skill: "search", split: "ood" }), { message: /no ood probes/ });
  await assert.rejects(resolve({ skill: "math", checkpoint: "M2" }), { message: /M2 has not been scored on math.id: M0, M1 have/ });
  await assert.rejects(resolve({ skill: "math", row: 7 }), { message: /no row 7: it has 2 rows/ });
  await assert.rejects(resolve({ skill: "math", row: 1 }), { message: /Row 1 .* was not scored: it is too long/ });
  await assert.rejects(resolve({ skill: "search", row: 0 }), { message: /No checkpoint has scored search.id/ });
  await assert.rejects(resolve({}, [makeView({ text: "seesaw: 1\n" })]), { message: /has errors/ });
});

test("a run that is not what the chain shows now is noted, not hidden", async () => {
  const newer = makeRun("math", { status: "done" }, "math-20260202T000000-cccc");
  const { notes } = await resolve({ run: run.id }, [makeView({ runs: [newer, run], traces: { M1: { "math.id": "t1" } } })]);
  assert.match(notes[0] ?? "", /math-20260101T000000-aaaa is not what M1 stands for now: that is math-20260202T000000-cccc/);
});
