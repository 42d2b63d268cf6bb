import { AppError, messageOf } from "../util/errors.ts";
import { t } from "../util/l10n.ts";

export type SqliteValue = null | number | bigint | string | Uint8Array;
export type SqliteRow = Record<string, SqliteValue>;

export interface SqliteStatement {
  run(...values: SqliteValue[]): { changes: number; lastInsertRowid: number };
  get(...values: SqliteValue[]): SqliteRow | undefined;
  all(...values: SqliteValue[]): SqliteRow[];
  iterate(...values: SqliteValue[]): IterableIterator<SqliteRow>;
}

/** One open database; the same for both libraries behind it. */
export interface SqliteDatabase {
  readonly path: string;
  exec(sql: string): void;
  prepare(sql: string): SqliteStatement;
  /** Runs `body` in an immediate transaction: all of it happens, or nothing. */
  transaction<T>(body: () => T): T;
  close(): void;
}

export interface SqliteOpenOptions {
  readonly?: boolean;
  /** How long one statement waits for another process's lock. Default 100 ms: longer waits belong to the caller. */
  busyMs?: number;
}

/** A loaded SQLite library. */
export interface SqliteDriver {
  readonly name: "better-sqlite3" | "node:sqlite";
  open(path: string, options?: SqliteOpenOptions): SqliteDatabase;
}

export type SqliteTrouble = "busy" | "damaged" | "full" | "readonly" | "other";

/** How a library is loaded; tests give their own. */
export interface SqliteLoaders {
  betterSqlite3(): Promise<unknown>;
  nodeSqlite(): Promise<unknown>;
}

const defaultLoaders: SqliteLoaders = {
  betterSqlite3: () => import("better-sqlite3"),
  nodeSqlite: () => import("node:sqlite"),
};

/**
 * Loads better-sqlite3, or else the SQLite of Node itself. Nothing native is loaded before the first call.
 * Throws AppError("sqlite-missing") that names both reasons.
 */
export async function loadSqlite(loaders: SqliteLoaders = defaultLoaders): Promise<SqliteDriver> {
  let first: unknown;
  try {
    const library = defaultOf(await loaders.betterSqlite3()) as BetterSqlite3;
    // The native part is loaded by the first database, not by the import.
    new library(":memory:").close();
    return betterDriver(library);
  } catch (error) {
    first = error;
  }
  try {
    return nodeDriver(((await loaders.nodeSqlite()) as { DatabaseSync: NodeSqlite }).DatabaseSync);
  } catch (error) {
    throw new AppError(
      "sqlite-missing",
      t("SQLite cannot be loaded here, so nothing is kept between sessions. better-sqlite3 for {0}-{1}, Node {2} (module version {3}): {4}; node:sqlite: {5}. Reinstall the extension for this platform.", process.platform, process.arch, process.versions.node, process.versions.modules, firstLine(first), firstLine(error)),
      { cause: first },
    );
  }
}

/** What kind of trouble an error of either library is. */
export function sqliteTrouble(error: unknown): SqliteTrouble {
  const { code, errcode } = (error ?? {}) as { code?: unknown; errcode?: unknown };
  const name = typeof code === "string" ? code : "";
  const number = typeof errcode === "number" ? errcode & 0xff : 0;
  if (/^SQLITE_(BUSY|LOCKED)/.test(name) || number === 5 || number === 6) return "busy";
  if (/^SQLITE_(CORRUPT|NOTADB)/.test(name) || number === 11 || number === 26) return "damaged";
  if (name.startsWith("SQLITE_FULL") || number === 13) return "full";
  if (/^SQLITE_(READONLY|CANTOPEN|PERM)/.test(name) || number === 8 || number === 14 || number === 3) return "readonly";
  return "other";
}

interface RawStatement {
  run(...values: SqliteValue[]): { changes: number | bigint; lastInsertRowid: number | bigint };
  get(...values: SqliteValue[]): unknown;
  all(...values: SqliteValue[]): unknown[];
  iterate?(...values: SqliteValue[]): IterableIterator<unknown>;
}

interface RawDatabase {
  exec(sql: string): unknown;
  prepare(sql: string): RawStatement;
  close(): void;
}

type BetterSqlite3 = new (path: string, options?: { readonly?: boolean; timeout?: number; fileMustExist?: boolean }) => RawDatabase;
type NodeSqlite = new (path: string, options?: { readOnly?: boolean }) => RawDatabase;

function betterDriver(library: BetterSqlite3): SqliteDriver {
  return {
    name: "better-sqlite3",
    open: (path, { readonly = false, busyMs = 100 } = {}) => wrap(path, new library(path, { readonly, timeout: busyMs, fileMustExist: readonly })),
  };
}

function nodeDriver(library: NodeSqlite): SqliteDriver {
  return {
    name: "node:sqlite",
    open(path, { readonly = false, busyMs = 100 } = {}) {
      const database = new library(path, { readOnly: readonly });
      database.exec(`PRAGMA busy_timeout = ${Math.round(busyMs)}`);
      return wrap(path, database);
    },
  };
}

function wrap(path: string, raw: RawDatabase): SqliteDatabase {
  return {
    path,
    exec: (sql) => void raw.exec(sql),
    prepare: (sql) => wrapStatement(raw.prepare(sql)),
    transaction(body) {
      raw.exec("BEGIN IMMEDIATE");
      try {
        const result = body();
        raw.exec("COMMIT");
        return result;
      } catch (error) {
        rollback(raw);
        throw error;
      }
    },
    close: () => raw.close(),
  };
}

function wrapStatement(raw: RawStatement): SqliteStatement {
  return {
    run(...values) {
      const { changes, lastInsertRowid } = raw.run(...values);
      return { changes: Number(changes), lastInsertRowid: Number(lastInsertRowid) };
    },
    get: (...values) => raw.get(...values) as SqliteRow | undefined,
    all: (...values) => raw.all(...values) as SqliteRow[],
    iterate: (...values) => (raw.iterate === undefined ? raw.all(...values).values() : raw.iterate(...values)) as IterableIterator<SqliteRow>,
  };
}

function rollback(raw: RawDatabase): void {
  try {
    raw.exec("ROLLBACK");
  } catch {
    // SQLite has already rolled back (disk full, damage): the first error is the one to tell.
  }
}

function defaultOf(module: unknown): unknown {
  return (module as { default?: unknown }).default ?? module;
}

function firstLine(error: unknown): string {
  return messageOf(error).split("\n", 1)[0] ?? "";
}
