import { existsSync, mkdirSync, renameSync } from "node:fs";
import { dirname } from "node:path";
import { setTimeout } from "node:timers/promises";
import type { RowProblem } from "../../domain/rows/readRow.ts";
import { AppError, messageOf } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";
import { migrate } from "./migrations.ts";
import { isNetworkDisk } from "./networkDisk.ts";
import { PagedRowIndex } from "./pagedRowIndex.ts";
import type { FileRecord, PageStore } from "./pageStore.ts";
import type { WorkerSetup } from "./workerPool.ts";
import type { RowIndex } from "./rowIndex.ts";
import { packPage, unpackPage } from "./packPage.ts";
import type { RowPage } from "./rowPages.ts";
import { sqliteTrouble, type SqliteDatabase, type SqliteDriver, type SqliteRow } from "../sqliteDriver.ts";

export interface SqliteRowIndexOptions {
  workers?: WorkerSetup | null;
  /** Told once about each thing a person should know: damaged index moved aside, index locked by another window. */
  onMessage?: (message: string) => void;
  /** How long writers wait for another window. Default 10 s. */
  lockMs?: number;
}

const schema = [
  `CREATE TABLE file(path TEXT PRIMARY KEY, revision INTEGER NOT NULL, record TEXT NOT NULL) WITHOUT ROWID;
   CREATE TABLE segment(id INTEGER PRIMARY KEY AUTOINCREMENT, created INTEGER NOT NULL, used INTEGER NOT NULL DEFAULT 0);
   CREATE TABLE page(segment INTEGER NOT NULL, idx INTEGER NOT NULL, rows INTEGER NOT NULL, columns BLOB NOT NULL, hashes BLOB NOT NULL, turns BLOB, PRIMARY KEY(segment, idx));
   CREATE TABLE problem(segment INTEGER NOT NULL, line INTEGER NOT NULL, record TEXT NOT NULL);
   CREATE INDEX problem_line ON problem(segment, line);`,
];

/**
 * A row index in an SQLite file, which belongs into the extension's own storage. A file that is damaged or no
 * database is moved aside and begun anew. Throws AppError("newer-schema" | "index-unusable").
 */
export function sqliteRowIndex(path: string, driver: SqliteDriver, options: SqliteRowIndexOptions = {}): RowIndex {
  return new PagedRowIndex(new SqlitePageStore(path, driver, options), options.workers ?? null);
}

class SqlitePageStore implements PageStore {
  private readonly path: string;
  private readonly driver: SqliteDriver;
  private readonly tell: (message: string) => void;
  private readonly lockMs: number;
  private database: SqliteDatabase;
  private waited = false;

  constructor(path: string, driver: SqliteDriver, options: SqliteRowIndexOptions) {
    this.path = path;
    this.driver = driver;
    this.tell = options.onMessage ?? (() => {});
    this.lockMs = options.lockMs ?? 10_000;
    this.database = this.open();
  }

  load(path: string): FileRecord | null {
    return this.guard((db) => {
      const row = db.prepare("SELECT record FROM file WHERE path = ?").get(path);
      return row === undefined ? null : (JSON.parse(String(row["record"])) as FileRecord);
    });
  }

  paths(): string[] {
    return this.guard((db) => db.prepare("SELECT path FROM file ORDER BY path").all().map((row) => String(row["path"])));
  }

  newSegment(): Promise<number> {
    return this.change((db) => db.prepare("INSERT INTO segment(created) VALUES (?)").run(Date.now()).lastInsertRowid);
  }

  write(segment: number, firstPage: number, pages: readonly RowPage[], problems: readonly RowProblem[]): Promise<void> {
    if (pages.length === 0 && problems.length === 0) return Promise.resolve();
    return this.change((db) =>
      db.transaction(() => {
        const page = db.prepare("INSERT INTO page(segment, idx, rows, columns, hashes, turns) VALUES (?, ?, ?, ?, ?, ?)");
        pages.forEach((item, i) => page.run(segment, firstPage + i, item.rows, packPage(item), item.hashes, item.turns));
        const problem = db.prepare("INSERT INTO problem(segment, line, record) VALUES (?, ?, ?)");
        for (const item of problems) problem.run(segment, item.line, JSON.stringify(item));
      }),
    );
  }

  commit(record: FileRecord, expectedRevision: number): Promise<boolean> {
    return this.change((db) =>
      db.transaction(() => {
        const current = db.prepare("SELECT revision FROM file WHERE path = ?").get(record.path);
        if (Number(current?.["revision"] ?? 0) !== expectedRevision) return false;
        db.prepare("INSERT OR REPLACE INTO file(path, revision, record) VALUES (?, ?, ?)").run(record.path, record.revision, JSON.stringify(record));
        const mark = db.prepare("UPDATE segment SET used = 1 WHERE id = ?");
        for (const { id } of [...record.segments, ...(record.tail ? [record.tail] : [])]) mark.run(id);
        return true;
      }),
    );
  }

  drop(segments: readonly number[]): Promise<void> {
    if (segments.length === 0) return Promise.resolve();
    return this.change((db) => db.transaction(() => dropSegments(db, segments)));
  }

  page(segment: number, index: number): RowPage | null {
    return this.guard((db) => {
      const row = db.prepare("SELECT rows, columns, hashes, turns FROM page WHERE segment = ? AND idx = ?").get(segment, index);
      return row === undefined ? null : unpackPage(Number(row["rows"]), bytesOf(row, "columns"), bytesOf(row, "hashes"), row["turns"] === null ? null : bytesOf(row, "turns"));
    });
  }

  hashes(segment: number, index: number, kind: "full" | "turns"): Uint8Array | null {
    const column = kind === "full" ? "hashes" : "turns";
    return this.guard((db) => {
      const row = db.prepare(`SELECT ${column} FROM page WHERE segment = ? AND idx = ?`).get(segment, index);
      return row === undefined || row[column] === null ? null : bytesOf(row, column);
    });
  }

  problems(segment: number, first: number, last: number, limit: number): RowProblem[] {
    return this.guard((db) =>
      db
        .prepare("SELECT record FROM problem WHERE segment = ? AND line BETWEEN ? AND ? ORDER BY line, rowid LIMIT ?")
        .all(segment, first, last, limit)
        .map((row) => JSON.parse(String(row["record"])) as RowProblem),
    );
  }

  async forget(path: string): Promise<void> {
    const record = this.load(path);
    if (record === null) return;
    await this.change((db) =>
      db.transaction(() => {
        db.prepare("DELETE FROM file WHERE path = ?").run(path);
        dropSegments(db, [...record.segments, ...(record.tail ? [record.tail] : [])].map(({ id }) => id));
      }),
    );
  }

  dispose(): void {
    this.database.close();
  }

  /** A change: waits for other writers without holding up the event loop. */
  private async change<T>(work: (database: SqliteDatabase) => T): Promise<T> {
    const deadline = Date.now() + this.lockMs;
    for (;;) {
      try {
        return this.healing(work);
      } catch (error) {
        if (error instanceof AppError || sqliteTrouble(error) !== "busy" || Date.now() >= deadline) throw this.unusable(error);
        this.tellWaiting();
        await setTimeout(50);
      }
    }
  }

  /** A look: readers do not wait for writers, except on network disks. */
  private guard<T>(work: (database: SqliteDatabase) => T): T {
    try {
      return this.healing(work);
    } catch (error) {
      throw this.unusable(error);
    }
  }

  /** Begins a damaged file anew; then the work runs on the empty one. */
  private healing<T>(work: (database: SqliteDatabase) => T): T {
    try {
      return work(this.database);
    } catch (error) {
      if (sqliteTrouble(error) !== "damaged") throw error;
      this.database.close();
      this.moveAside(error);
      this.database = this.open();
      return work(this.database);
    }
  }

  private open(): SqliteDatabase {
    const deadline = Date.now() + Math.min(this.lockMs, 2000);
    mkdirSync(dirname(this.path), { recursive: true });
    for (let rebuilt = false; ; ) {
      let database: SqliteDatabase | undefined;
      try {
        database = this.driver.open(this.path, { busyMs: 100 });
        database.exec(isNetworkDisk(dirname(this.path)) ? "PRAGMA journal_mode = DELETE" : "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL");
        migrate(database, schema, t("The row index"));
        dropOrphans(database);
        return database;
      } catch (error) {
        database?.close();
        const trouble = sqliteTrouble(error);
        if (trouble === "damaged" && !rebuilt) {
          rebuilt = true;
          this.moveAside(error);
        } else if (trouble === "busy" && Date.now() < deadline) this.tellWaiting();
        else throw this.unusable(error);
      }
    }
  }

  private tellWaiting(): void {
    if (!this.waited) this.tell(t("The row index {0} is in use by another window or program; waiting for it.", this.path));
    this.waited = true;
  }

  private moveAside(error: unknown): void {
    const aside = `${this.path}.damaged-${new Date().toISOString().replace(/[:.]/g, "-")}`;
    for (const end of ["", "-wal", "-shm", "-journal"]) if (existsSync(this.path + end)) renameSync(this.path + end, aside + end);
    this.tell(t("The row index was damaged ({0}). It was moved to {1} and is built anew; no dataset or run was touched.", messageOf(error), aside));
  }

  private unusable(error: unknown): AppError {
    if (error instanceof AppError) return error;
    const trouble = sqliteTrouble(error);
    if (trouble === "full") return new AppError("disk-full", t("The disk of the row index {0} is full; free some space and try again.", this.path), { cause: error });
    const why = trouble === "busy" ? t("The row index {0} stayed locked by another program; close the other window, or delete the file: it is rebuilt.", this.path) : t("The row index {0} cannot be used ({1}); check the folder's permissions, or delete the file: it is rebuilt.", this.path, messageOf(error));
    return new AppError("index-unusable", why, { cause: error });
  }
}

function bytesOf(row: SqliteRow, column: string): Uint8Array {
  return row[column] as Uint8Array;
}

function dropSegments(database: SqliteDatabase, segments: readonly number[]): void {
  for (const table of ["page", "problem"]) {
    const statement = database.prepare(`DELETE FROM ${table} WHERE segment = ?`);
    for (const id of segments) statement.run(id);
  }
  const statement = database.prepare("DELETE FROM segment WHERE id = ?");
  for (const id of segments) statement.run(id);
}

/** Segments that a killed process began and never committed; those of the last day may still be in the making. */
function dropOrphans(database: SqliteDatabase): void {
  const old = database.prepare("SELECT id FROM segment WHERE used = 0 AND created < ?").all(Date.now() - 24 * 60 * 60 * 1000);
  if (old.length > 0) database.transaction(() => dropSegments(database, old.map((row) => Number(row["id"]))));
}
