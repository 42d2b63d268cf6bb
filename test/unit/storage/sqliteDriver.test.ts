import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { loadSqlite, sqliteTrouble, type SqliteDriver } from "../../../src/storage/sqliteDriver.ts";
import { AppError } from "../../../src/util/errors.ts";

const dir = mkdtempSync(join(tmpdir(), "seesaw-driver-"));
after(() => rmSync(dir, { recursive: true }));

const broken = (): Promise<unknown> => Promise.reject(new Error("was compiled against a different Node.js version\nmore"));
const nodeOnly = (): Promise<SqliteDriver> => loadSqlite({ betterSqlite3: broken, nodeSqlite: () => import("node:sqlite") });

test("better-sqlite3 is the first choice", async () => assert.equal((await loadSqlite()).name, "better-sqlite3"));

for (const [name, load] of [["better-sqlite3", loadSqlite], ["node:sqlite", nodeOnly]] as const) {
  test(`${name}: values, transactions and readonly`, async () => {
    const driver = await load();
    assert.equal(driver.name, name);
    const path = join(dir, `${name.replace(":", "-")}.sqlite`);
    const db = driver.open(path);
    db.exec("CREATE TABLE t(id INTEGER PRIMARY KEY, x)");
    const insert = db.prepare("INSERT INTO t(x) VALUES (?)");
    assert.deepEqual(insert.run("a"), { changes: 1, lastInsertRowid: 1 });
    insert.run(Uint8Array.of(1, 2));
    insert.run(null);
    assert.throws(() => db.transaction(() => { insert.run("lost"); throw new Error("no"); }), /no/);
    assert.equal(db.transaction(() => insert.run(1.5).lastInsertRowid), 4);
    assert.deepEqual(db.prepare("SELECT x FROM t ORDER BY id").all().map((row) => (row["x"] instanceof Uint8Array ? [...row["x"]] : row["x"])), ["a", [1, 2], null, 1.5]);
    assert.equal([...db.prepare("SELECT x FROM t WHERE id > ?").iterate(2)].length, 2);
    assert.equal(db.prepare("SELECT x FROM t WHERE id = ?").get(99), undefined);
    const reader = driver.open(path, { readonly: true });
    assert.equal(sqliteTrouble(caught(() => reader.exec("DELETE FROM t"))), "readonly");
    db.exec("BEGIN EXCLUSIVE");
    assert.equal(sqliteTrouble(caught(() => driver.open(path, { busyMs: 1 }).exec("BEGIN IMMEDIATE"))), "busy");
    db.exec("COMMIT");
    reader.close();
    db.close();
    assert.equal(sqliteTrouble(caught(() => driver.open(join(dir, "no", "folder.sqlite")).exec("SELECT 1"))) === "damaged", false);
  });
}

test("neither library: one sentence that names the versions", async () => {
  await assert.rejects(loadSqlite({ betterSqlite3: broken, nodeSqlite: () => Promise.reject(new Error("No such built-in module: node:sqlite")) }), (error) => {
    assert.ok(AppError.is(error, "sqlite-missing"));
    assert.match(error.message, new RegExp(`module version ${process.versions.modules}`));
    assert.match(error.message, /compiled against a different Node.js version; node:sqlite: No such built-in/);
    return true;
  });
});

function caught(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    return error;
  }
  return assert.fail("nothing was thrown");
}
