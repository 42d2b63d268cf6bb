import { join } from "node:path";
import { memoryRowIndex } from "../../src/storage/rows/memoryRowIndex.ts";
import { loadSqlite } from "../../src/storage/sqliteDriver.ts";
import { sqliteRowIndex } from "../../src/storage/rows/sqliteRowIndex.ts";
import { rowIndexContract } from "./rowIndex.contract.ts";

const betterSqlite3 = await loadSqlite();
const nodeSqlite = await loadSqlite({ betterSqlite3: () => Promise.reject(new Error("not asked for")), nodeSqlite: () => import("node:sqlite") });

rowIndexContract("memory", (_, workers) => memoryRowIndex(workers));
rowIndexContract("better-sqlite3", (dir, workers) => sqliteRowIndex(join(dir, "rows.sqlite"), betterSqlite3, { workers }));
rowIndexContract("node:sqlite", (dir, workers) => sqliteRowIndex(join(dir, "rows.sqlite"), nodeSqlite, { workers }));
