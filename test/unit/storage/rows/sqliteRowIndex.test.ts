import assert from "node:assert/strict";
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { isNetworkDisk } from "../../../../src/storage/rows/networkDisk.ts";
import { loadSqlite } from "../../../../src/storage/sqliteDriver.ts";
import { sqliteRowIndex } from "../../../../src/storage/rows/sqliteRowIndex.ts";
import { AppError } from "../../../../src/util/errors.ts";

const dir = mkdtempSync(join(tmpdir(), "seesaw-index-"));
after(() => rmSync(dir, { recursive: true }));
const driver = await loadSqlite();
const data = join(dir, "data.jsonl");
writeFileSync(data, '{"text":"a"}\n{"text":"b"}\n');

test("a file that is no database, or cut off, is moved aside with a message and built anew", async () => {
  const good = join(dir, "good.sqlite");
  const index = sqliteRowIndex(good, driver);
  await index.update(data);
  index.dispose();
  const text = join(dir, "text.sqlite");
  writeFileSync(text, "this is no database at all, only text that someone saved here\n".repeat(20));
  const cut = join(dir, "cut.sqlite");
  copyFileSync(good, cut);
  truncateSync(cut, Math.floor(readFileSync(cut).length / 2 / 512) * 512);
  for (const path of [text, cut]) {
    const before = readFileSync(path);
    const messages: string[] = [];
    const again = sqliteRowIndex(path, driver, { onMessage: (message) => messages.push(message) });
    assert.equal((await again.update(data)).rows, 2);
    assert.equal(again.rows(data, 1, 9).length, 2);
    again.dispose();
    assert.equal(messages.length, 1, path);
    assert.match(messages[0] ?? "", /was damaged .* moved to .*\.damaged-.* built anew; no dataset or run was touched/);
    const aside = readdirSync(dir).find((name) => join(dir, name).startsWith(`${path}.damaged-`) && !/-(wal|shm)$/.test(name));
    assert.deepEqual(readFileSync(join(dir, aside ?? "")), before);
  }
});

test("damage that shows only later is healed as well", async () => {
  const path = join(dir, "later.sqlite");
  const messages: string[] = [];
  const index = sqliteRowIndex(path, driver, { onMessage: (message) => messages.push(message) });
  await index.update(data);
  index.dispose();
  const bytes = readFileSync(path);
  bytes.fill(0xee, 4096); // everything but the first page, which holds the schema
  writeFileSync(path, bytes);
  const again = sqliteRowIndex(path, driver, { onMessage: (message) => messages.push(message) });
  assert.equal((await again.update(data)).rows, 2);
  assert.equal(messages.length, 1);
  again.dispose();
});

test("a database of a newer release is refused with what to do, and left alone", () => {
  const path = join(dir, "newer.sqlite");
  const db = driver.open(path);
  db.exec("CREATE TABLE other(x); PRAGMA user_version = 7");
  db.close();
  assert.throws(() => sqliteRowIndex(path, driver), (error) => AppError.is(error, "newer-schema") && /schema version 7; this Seesaw knows up to 1\. Update Seesaw/.test(error.message));
  assert.equal(driver.open(path).prepare("SELECT count(*) AS n FROM other").get()?.["n"], 0);
});

test("a lock is waited for, told once, and given up with one clear error", async () => {
  const path = join(dir, "locked.sqlite");
  const messages: string[] = [];
  const index = sqliteRowIndex(path, driver, { lockMs: 400, onMessage: (message) => messages.push(message) });
  const other = driver.open(path);
  other.exec("BEGIN IMMEDIATE");
  await assert.rejects(index.update(data), (error) => AppError.is(error, "index-unusable") && /stayed locked by another program/.test(error.message));
  assert.equal(messages.length, 1);
  assert.match(messages[0] ?? "", /in use by another window/);
  other.exec("COMMIT");
  assert.equal((await index.update(data)).rows, 2);
  other.close();
  index.dispose();
});

test("two windows on one index: both end with the same rows", async () => {
  const path = join(dir, "shared.sqlite");
  const file = join(dir, "growing.jsonl");
  writeFileSync(file, "");
  const [one, two] = [sqliteRowIndex(path, driver), sqliteRowIndex(path, driver)];
  let text = "";
  for (let i = 0; i < 20; i++) {
    text += `{"text":"${i}"}\n`;
    writeFileSync(file, text);
    await Promise.all([one.update(file), two.update(file)]);
  }
  assert.deepEqual(one.rows(file, 1, 99), two.rows(file, 1, 99));
  assert.deepEqual(one.rows(file, 1, 99).map(({ line }) => line), Array.from({ length: 20 }, (_, i) => i + 1));
  one.dispose();
  two.dispose();
});

test("the index is there after a restart", async () => {
  const path = join(dir, "kept.sqlite");
  const first = sqliteRowIndex(path, driver);
  await first.update(data, { turns: true });
  const rows = first.rows(data, 1, 9);
  first.dispose();
  const second = sqliteRowIndex(path, driver);
  assert.deepEqual(second.rows(data, 1, 9), rows);
  assert.equal((await second.update(data)).how, "unchanged");
  second.dispose();
});

test("a local folder is no network disk, and an unknown one counts as local", () => {
  assert.equal(isNetworkDisk(dir), false);
  assert.equal(isNetworkDisk(join(dir, "missing")), false);
});
