import assert from "node:assert/strict";
import { mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { TraceCache } from "../../../../src/host/drift/traceCache.ts";
import type { TraceReader, TraceStore } from "../../../../src/storage/traces/traceStore.ts";
import { makeTrace } from "../../domain/makeTrace.ts";

let dir = "";
before(() => (dir = mkdtempSync(join(tmpdir(), "seesaw-cache-"))));
after(() => rmSync(dir, { recursive: true, force: true }));

/** A store that counts, over files that exist. */
class Counting implements TraceStore {
  opened: string[] = [];
  closed: string[] = [];
  summaries = 0;

  open(path: string): TraceReader {
    this.opened.push(path);
    const trace = makeTrace([{ hash: "a", logprob: [-0.1] }]);
    const summary = (): ReturnType<typeof trace.summary> => (this.summaries++, trace.summary());
    return { ...trace, path, heldBytes: 2, summary, close: () => void this.closed.push(path) };
  }
}

function file(name: string, text = "x"): string {
  writeFileSync(join(dir, name), text);
  return join(dir, name);
}

test("a trace is opened once and kept; its summary is read once", () => {
  const [store, cache, path] = [new Counting(), new TraceCache(), file("once")];
  const cached = cache.over(store);
  for (let i = 0; i < 5; i++) {
    const reader = cached.open(path);
    assert.equal(reader.probes().length, 1);
    reader.summary();
    reader.close();
    reader.close();
  }
  assert.deepEqual([store.opened.length, store.closed.length, store.summaries], [1, 0, 1]);
  cache.dispose();
  assert.deepEqual(store.closed, [path]);
});

test("a file that was written anew is opened anew, and the old one closed", () => {
  const [store, cache, path] = [new Counting(), new TraceCache(), file("anew", "one")];
  const cached = cache.over(store);
  cached.open(path).close();
  file("anew", "three");
  cached.open(path).close();
  assert.deepEqual([store.opened.length, store.closed.length], [2, 1]);
  utimesSync(path, 1, 1);
  cached.open(path).close();
  assert.deepEqual([store.opened.length, store.closed.length], [3, 2]);
  cache.dispose();
});

test("no more are kept than the limits say, those used last; one in use is closed when it is given back", () => {
  const [store, cache] = [new Counting(), new TraceCache({ traces: 2 })];
  const cached = cache.over(store);
  const [a, b, c] = [file("a"), file("b"), file("c")];
  cached.open(a).close();
  cached.open(b).close();
  cached.open(a).close();
  cached.open(c).close();
  assert.deepEqual(store.closed, [b], "a was used after b");
  const used = cached.open(a);
  cache.dispose();
  assert.deepEqual(store.closed, [b, c]);
  used.close();
  assert.deepEqual(store.closed, [b, c, a]);
  const small = new TraceCache({ bytes: 3 });
  const big = new Counting();
  for (const name of ["d", "e"]) small.over(big).open(file(name, "xx")).close();
  assert.deepEqual(big.closed, [join(dir, "d")]);
  small.dispose();
});

test("what nobody looks at is let go; a missing file is the store's to explain", async () => {
  const [store, cache, path] = [new Counting(), new TraceCache({ idleMs: 5 }), file("idle")];
  const cached = cache.over(store);
  cached.open(path).close();
  await new Promise((resolve) => setTimeout(resolve, 40));
  assert.deepEqual(store.closed, [path]);
  const missing = cached.open(join(dir, "missing"));
  missing.close();
  assert.deepEqual([store.opened.length, store.closed.length], [2, 2], "nothing of it is kept");
  cache.dispose();
});
