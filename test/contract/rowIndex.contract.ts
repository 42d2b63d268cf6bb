import assert from "node:assert/strict";
import { appendFileSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { gzipSync } from "node:zlib";
import { rowHashes } from "../../src/domain/rows/canonical.ts";
import { parseJson } from "../../src/domain/rows/jsonText.ts";
import type { WorkerSetup } from "../../src/storage/rows/workerPool.ts";
import type { RowIndex } from "../../src/storage/rows/rowIndex.ts";
import { sha256Hex } from "../../src/storage/rows/sha256.ts";
import { AppError } from "../../src/util/errors.ts";

interface FileFixture {
  name: string;
  base64: string;
  form: "lines" | "array";
  notes: string[];
  rows: { line: number; offset: number; full: string | null; error: { line: number; column: number } | null; warnings: string[] }[];
}

/** What every implementation of the row index must do. */
export function rowIndexContract(name: string, create: (dir: string, workers: WorkerSetup | null) => RowIndex | Promise<RowIndex>): void {
  describe(`row index: ${name}`, () => {
    const dir = mkdtempSync(join(tmpdir(), "seesaw-rows-"));
    after(() => rmSync(dir, { recursive: true }));
    let files = 0;
    const save = (content: string | Uint8Array): string => {
      const path = join(dir, `data-${files++}.jsonl`);
      writeFileSync(path, content);
      return path;
    };
    const withIndex = async (run: (index: RowIndex) => Promise<void>, workers: WorkerSetup | null = null): Promise<void> => {
      const index = await create(mkdtempSync(join(dir, "index-")), workers);
      try {
        await run(index);
      } finally {
        index.dispose();
      }
    };
    const fixtures = JSON.parse(readFileSync(new URL("../fixtures/protocol/row-files.json", import.meta.url), "utf8")) as FileFixture[];

    for (const fixture of fixtures) {
      test(`both languages read it alike: ${fixture.name}`, () =>
        withIndex(async (index) => {
          const path = save(Buffer.from(fixture.base64, "base64"));
          const summary = await index.update(path);
          const foreign = summary.notes.find(({ code }) => code === "foreign-form");
          assert.deepEqual(summary.notes.filter((note) => note !== foreign).map(({ code }) => code), fixture.notes);
          assert.equal(summary.shape, fixture.form);
          if (foreign !== undefined) return assert.ok(fixture.rows[0]?.error);
          const problems = index.problems(path);
          const rows = index.rows(path, 1, 1e9).map(({ line, offset, length, full }) => {
            const own = problems.filter((problem) => problem.offset >= offset && problem.offset <= offset + length);
            const failed = own.some(({ severity }) => severity === "error");
            return { line, offset, full: failed ? null : full, failed, warnings: own.filter(({ severity }) => severity === "warning").map(({ code }) => code) };
          });
          assert.deepEqual(rows, fixture.rows.map(({ line, offset, full, error, warnings }) => ({ line, offset, full, failed: error !== null, warnings })));
        }));
    }

    test("hashes and formats are those of the slow reader, with prompt and answer", () =>
      withIndex(async (index) => {
        const rows = (JSON.parse(readFileSync(new URL("../fixtures/protocol/rows.json", import.meta.url), "utf8")) as { line: string; format: string }[]).map(({ line, format }) => ({ line: line.replace(/\r$/, ""), format }));
        const path = save(`${rows.map(({ line }) => line).join("\n")}\n`);
        const summary = await index.update(path, { turns: true });
        assert.equal(summary.rows, rows.length);
        const indexed = index.rows(path, 1, rows.length);
        for (const [i, { line, format }] of rows.entries()) {
          const result = parseJson(line);
          assert.ok(result.ok);
          const { full, prompt, answer } = indexed[i] ?? assert.fail();
          assert.deepEqual({ full, prompt, answer }, rowHashes(result.value, sha256Hex), line.slice(0, 200));
          assert.equal(indexed[i]?.format, format);
        }
        const first = indexed[0] ?? assert.fail();
        assert.equal(readFileSync(path).subarray(first.offset, first.offset + first.length).toString(), rows[0]?.line);
      }));

    test("what was appended is indexed, nothing else; a last line without LF is replaced", () =>
      withIndex(async (index) => {
        const path = save('\n{"text":"a"}\n{"text":"b"}\n{"text":"op');
        const first = await index.update(path);
        assert.deepEqual([first.how, first.rows, first.unreadable, first.openEnd], ["rebuilt", 3, 1, true]);
        assert.match(index.problems(path)[0]?.message ?? "", /may still be being written/);
        assert.equal((await index.update(path)).how, "unchanged");
        appendFileSync(path, 'en"}\n{"text":"a"}');
        const second = await index.update(path);
        assert.deepEqual([second.how, second.rows, second.unreadable, second.openEnd, second.lines], ["appended", 4, 0, true, 5]);
        assert.deepEqual(index.problems(path), []);
        appendFileSync(path, "\n");
        const third = await index.update(path);
        assert.deepEqual([third.how, third.rows, third.openEnd], ["appended", 4, false]);
        assert.deepEqual(index.rows(path, 1, 99).map(({ line, offset }) => [line, offset]), [[2, 1], [3, 14], [4, 27], [5, 43]]);
      }));

    test("a file that was written anew is indexed anew", () =>
      withIndex(async (index) => {
        const path = save('{"text":"a"}\n{"text":"b"}\n');
        await index.update(path);
        writeFileSync(path, '{"text":"x"}\n{"text":"y"}\n{"text":"z"}\n');
        assert.deepEqual((({ how, rows }) => [how, rows])(await index.update(path)), ["rebuilt", 3]);
        writeFileSync(path, '{"text":"x"}\n');
        assert.deepEqual((({ how, rows }) => [how, rows])(await index.update(path)), ["rebuilt", 1]);
        utimesSync(path, 1, 1);
        assert.equal((await index.update(path)).how, "rebuilt");
        assert.deepEqual((await index.update(path, { turns: true })).hasTurns, true);
        assert.equal((await index.update(path)).hasTurns, true);
      }));

    test("places of a hash in all files; rows of a range; forgetting", () =>
      withIndex(async (index) => {
        const [one, two] = [save('{"text":"a"}\n{"text":"b"}\n{ "text" : "a" }\n'), save('{"x":1}\n\n{"text":"\\u0061"}\n')];
        await index.update(one, { turns: true });
        await index.update(two, { turns: true });
        const { full, answer } = index.row(one, 1) ?? assert.fail();
        assert.ok(full !== null && typeof answer === "string");
        const where = (map: ReturnType<RowIndex["places"]>, hash: string): string[] => (map.get(hash) ?? []).map(({ path, line }) => `${path === one ? 1 : 2}:${line}`);
        assert.deepEqual(where(index.places([full]), full), ["1:1", "1:3", "2:3"]);
        assert.deepEqual(where(index.places([full], "full", two), full), ["2:3"]);
        assert.deepEqual(where(index.places([answer], "answer"), answer), ["1:1", "1:3", "2:3"]);
        assert.deepEqual(index.places(["0".repeat(64)], "prompt").get("0".repeat(64)), []);
        assert.deepEqual(index.rows(one, 2, 3).map(({ line }) => line), [2, 3]);
        assert.equal(index.row(two, 2), null);
        assert.deepEqual(index.paths(), [one, two].sort());
        await index.forget(one);
        assert.deepEqual([index.summary(one), index.paths(), index.rows(one, 1, 9)], [null, [two], []]);
      }));

    test("many rows over several pages, with progress", () =>
      withIndex(async (index) => {
        const path = save(Array.from({ length: 20_000 }, (_, i) => (i % 5000 === 4999 ? '{"bad":\n' : `{"messages": [{"role": "user", "content": "question ${i}"}, {"role": "assistant", "content": "answer"}]}\n`)).join(""));
        const seen: number[] = [];
        const summary = await index.update(path, { onProgress: ({ bytes }) => void seen.push(bytes) });
        assert.deepEqual([summary.rows, summary.unreadable, summary.problems.error, summary.formats.messages], [20_000, 4, 4, 19_996]);
        assert.equal(seen.at(-1), summary.bytes);
        assert.deepEqual(index.rows(path, 8190, 8195).map(({ line }) => line), [8190, 8191, 8192, 8193, 8194, 8195]);
        assert.deepEqual(index.problems(path, 5001, 10_000).map(({ line, column }) => [line, column]), [[10_000, 8]]);
      }));

    test("a row of 12 MB in a packed file, neighbours unaffected", () =>
      withIndex(async (index) => {
        const path = save(gzipSync(`{"prompt":"a","completion":"b"}\n{"prompt":"${"x".repeat(12_000_000)}","completion":"b"}\n{"prompt":"c","completion":"d"}\n`));
        const summary = await index.update(path);
        assert.deepEqual([summary.rows, summary.packed, summary.problems.error], [3, "gzip", 0]);
        assert.deepEqual(index.rows(path, 1, 9).map(({ line, length }) => [line, length]), [[1, 31], [2, 12_000_030], [3, 31]]);
      }));

    test("cancelling leaves the index as it was", () =>
      withIndex(async (index) => {
        const path = save('{"text":"a"}\n');
        await index.update(path);
        const before = index.rows(path, 1, 9);
        writeFileSync(path, '{"text":"b"}\n'.repeat(300_000));
        const controller = new AbortController();
        setTimeout(() => controller.abort(), 5);
        await assert.rejects(index.update(path, { signal: controller.signal }), (error) => AppError.is(error, "cancelled"));
        assert.deepEqual(index.rows(path, 1, 9), before);
        assert.equal((await index.update(path)).rows, 300_000);
      }));

    test("a file that is not there", () => withIndex(async (index) => assert.rejects(index.update(join(dir, "none.jsonl")), (error) => AppError.is(error, "not-found"))));

    test("worker threads find the same as this thread", () =>
      withIndex(async (parallel) => {
        const line = (i: number): string => (i % 701 === 700 ? '{"bad":1,}\n' : i % 1000 === 7 ? "\n" : `{"prompt": "question number ${i} ${"é".repeat(i % 300)}", "completion": "answer\\n${i}"}\n`);
        let text = "\ufeff";
        for (let i = 0; text.length < 1_500_000; i++) text += line(i);
        const path = save(`${text}{"prompt":"last","completion":"open"}`);
        const summary = await parallel.update(path);
        await withIndex(async (serial) => {
          const expected = await serial.update(path);
          assert.deepEqual(summary, expected);
          assert.deepEqual(parallel.problems(path), serial.problems(path));
          assert.deepEqual(parallel.rows(path, 1, 1e9), serial.rows(path, 1, 1e9));
        });
        const controller = new AbortController();
        appendFileSync(path, "\n");
        utimesSync(path, 1, 1);
        setTimeout(() => controller.abort(), 1);
        await assert.rejects(parallel.update(path, { turns: true, signal: controller.signal }), (error) => AppError.is(error, "cancelled"));
        assert.equal(parallel.summary(path)?.rows, summary.rows);
      }, { url: new URL("../../src/storage/rows/rowIndexWorker.ts", import.meta.url), threads: 2, minBytes: 0, partBytes: 100_000 }));
  });
}
