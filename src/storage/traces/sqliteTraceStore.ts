import { existsSync } from "node:fs";
import type { ProbeColumns } from "../../domain/drift/traceData.ts";
import { sqliteTrouble, type SqliteDatabase, type SqliteDriver, type SqliteRow, type SqliteStatement, type SqliteValue } from "../sqliteDriver.ts";
import type { TraceReader, TraceStore } from "./traceStore.ts";
import type { ProbeRow, TokenScores, TraceMeta, TraceSummaryRow } from "../../protocol/trace.ts";
import { schemaVersion } from "../../protocol/runSpec.ts";
import { AppError, messageOf } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";
import { bytesOf, readFloats, readUints } from "./traceBlobs.ts";

/** Opens the trace files that the runner writes. */
export class SqliteTraceStore implements TraceStore {
  private readonly driver: SqliteDriver;

  constructor(driver: SqliteDriver) {
    this.driver = driver;
  }

  /** Throws AppError("trace-unreadable" | "newer-schema"). */
  open(path: string): TraceReader {
    if (!existsSync(path)) throw new AppError("trace-unreadable", t("There is no trace at {0}: it was deleted, or these probes were not scored at this step. Run the stage again to score them.", path));
    let database: SqliteDatabase | undefined;
    try {
      database = this.driver.open(path, { readonly: true });
      // Single rows are read, from many files that are open at the same time: pages of them are not worth keeping.
      database.exec("PRAGMA cache_size = -2000");
      const meta = readMeta(database, path);
      const segments = database.prepare("SELECT idx, name FROM segment ORDER BY idx").all();
      const names: string[] = [];
      for (const row of segments) names[Number(row["idx"])] = String(row["name"]);
      return new SqliteTraceReader(database, path, meta, names);
    } catch (error) {
      database?.close();
      throw unreadable(path, error);
    }
  }
}

function readMeta(database: SqliteDatabase, path: string): TraceMeta {
  const meta: Record<string, unknown> = {};
  for (const row of database.prepare("SELECT key, value FROM meta").all()) meta[String(row["key"])] = JSON.parse(String(row["value"])) as unknown;
  const major = Number(/^(\d+)/.exec(String(meta["schema"]))?.[1] ?? NaN);
  if (major > Number(schemaVersion.split(".")[0])) {
    throw new AppError("newer-schema", t("The trace {0} has format {1}; this Seesaw reads format {2}. Update Seesaw to see it.", path, String(meta["schema"]), schemaVersion));
  }
  for (const key of ["schema", "run", "stage", "step", "skill", "split", "tokenizer_hash", "probe_set_hash"]) {
    if (meta[key] === undefined || Number.isNaN(major)) throw new AppError("trace-unreadable", t("The trace {0} has no \"{1}\": it was not written by Seesaw. Delete it and score the checkpoint again.", path, key));
  }
  return meta as unknown as TraceMeta;
}

function unreadable(path: string, error: unknown): AppError {
  if (AppError.is(error)) return error;
  // Not damaged: whoever has locked it (a copy, a backup, a database browser) lets go of it again.
  if (sqliteTrouble(error) === "busy") return new AppError("trace-unreadable", t("The trace {0} is locked by another program. Nothing is lost: close that program, then refresh.", path), { cause: error });
  return new AppError("trace-unreadable", t("The trace {0} is damaged ({1}). Delete it and run the stage again to score these probes.", path, messageOf(error)), { cause: error });
}

/** Probes whose numbers are read without a pause. */
const probesAtOnce = 10_000;

class SqliteTraceReader implements TraceReader {
  readonly path: string;
  readonly meta: TraceMeta;
  readonly segments: readonly string[];
  private readonly database: SqliteDatabase;
  private probeRows: ProbeRow[] | undefined;
  private numbers: ProbeColumns | undefined;
  private textBytes = 0;
  private readonly statements = new Map<string, SqliteStatement>();
  private readonly vocabulary = new Map<number, Uint8Array | null>();

  constructor(database: SqliteDatabase, path: string, meta: TraceMeta, segments: readonly string[]) {
    [this.database, this.path, this.meta, this.segments] = [database, path, meta, segments];
  }

  probes(): ProbeRow[] {
    if (this.probeRows !== undefined) return this.probeRows;
    this.probeRows = this.query("SELECT * FROM probe ORDER BY row").map((row) => this.guarded(() => probeRow(row)));
    for (const { prompt, reference, generated } of this.probeRows) this.textBytes += 400 + prompt.length + reference.length + (generated?.length ?? 0);
    return this.probeRows;
  }

  columns(): ProbeColumns {
    return (this.numbers ??= joined([this.part(-1, -1)]));
  }

  async readAhead(pause: () => Promise<void>): Promise<void> {
    const parts: ProbeColumns[] = [];
    while (this.numbers === undefined) {
      const part = this.part(parts.at(-1)?.rows.at(-1) ?? -1, probesAtOnce);
      parts.push(part);
      if (part.rows.length < probesAtOnce) this.numbers = joined(parts);
      await pause();
    }
  }

  /** The probes behind a row; -1: as many as there are. */
  private part(after: number, limit: number): ProbeColumns {
    const found = this.query("SELECT row, line, nll, coalesce(correct <> 0, -1) AS correct, status IS NOT 'skipped' AS scored FROM probe WHERE row > ? ORDER BY row LIMIT ?", after, limit);
    const columns = emptyColumns(found.length);
    for (const [place, row] of found.entries()) {
      columns.rows[place] = Number(row["row"]);
      columns.lines[place] = Number(row["line"]);
      columns.nll[place] = numberOf(row["nll"]);
      columns.correct[place] = Number(row["correct"]);
      columns.scored[place] = Number(row["scored"]);
    }
    return columns;
  }

  probe(row: number): ProbeRow | null {
    const found = this.query("SELECT * FROM probe WHERE row = ?", row)[0];
    return found === undefined ? null : this.guarded(() => probeRow(found));
  }

  prompts(rows: readonly number[]): ReadonlyMap<number, string> {
    // One statement, which goes through the file from its beginning: thousands of single ones take several times as long.
    const found = this.query("SELECT row, prompt FROM probe WHERE row IN (SELECT value FROM json_each(?))", JSON.stringify(rows));
    return new Map(found.map((row) => [Number(row["row"]), String(row["prompt"])]));
  }

  get heldBytes(): number {
    return this.textBytes + (this.numbers?.rows.length ?? 0) * 18;
  }

  tokens(row: number): TokenScores | null {
    const found = this.query("SELECT * FROM tokens WHERE row = ?", row)[0];
    return found === undefined ? null : this.guarded(() => tokenScores(found));
  }

  tokenBytes(id: number): Uint8Array | null {
    const known = this.vocabulary.get(id);
    if (known !== undefined) return known;
    const value = this.query("SELECT text FROM vocab WHERE id = ?", id)[0]?.["text"];
    const bytes = value === undefined || value === null ? null : Uint8Array.from(bytesOf(value));
    this.vocabulary.set(id, bytes);
    return bytes;
  }

  summary(): TraceSummaryRow[] {
    return this.query("SELECT * FROM summary").map((row): TraceSummaryRow => ({
      kind: row["kind"] as TraceSummaryRow["kind"],
      name: String(row["name"]),
      rows: Number(row["rows"]),
      tokens: Number(row["tokens"]),
      nll: numberOf(row["nll"]),
      perplexity: numberOf(row["perplexity"]),
      mean_entropy: numberOf(row["mean_entropy"]),
      kl_start: optionalNumber(row["kl_start"]),
      kl_base: optionalNumber(row["kl_base"]),
      correct: optionalNumber(row["correct"]),
      checked: Number(row["checked"]),
    }));
  }

  close(): void {
    this.database.close();
  }

  private query(sql: string, ...values: SqliteValue[]): SqliteRow[] {
    return this.guarded(() => {
      const statement = this.statements.get(sql) ?? this.database.prepare(sql);
      this.statements.set(sql, statement);
      return statement.all(...values);
    });
  }

  private guarded<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      throw unreadable(this.path, error);
    }
  }
}

function emptyColumns(count: number): ProbeColumns {
  return { rows: new Uint32Array(count), lines: new Uint32Array(count), nll: new Float64Array(count), correct: new Int8Array(count), scored: new Uint8Array(count) };
}

function joined(parts: readonly ProbeColumns[]): ProbeColumns {
  const [only] = parts;
  if (parts.length === 1 && only !== undefined) return only;
  const all = emptyColumns(parts.reduce((sum, { rows }) => sum + rows.length, 0));
  let at = 0;
  for (const part of parts) {
    for (const name of ["rows", "lines", "nll", "correct", "scored"] as const) all[name].set(part[name], at);
    at += part.rows.length;
  }
  return all;
}

/** SQLite has no NaN: Python's NaN is stored as NULL. */
function numberOf(value: SqliteValue | undefined): number {
  return value === null || value === undefined ? NaN : Number(value);
}

function optionalNumber(value: SqliteValue | undefined): number | null {
  return value === null || value === undefined ? null : Number(value);
}

function optionalText(value: SqliteValue | undefined): string | null {
  return value === null || value === undefined ? null : String(value);
}

function probeRow(row: SqliteRow): ProbeRow {
  const correct = optionalNumber(row["correct"]);
  return {
    row: Number(row["row"]),
    line: Number(row["line"]),
    hash: String(row["hash"]),
    prompt: String(row["prompt"]),
    reference: String(row["reference"]),
    tags: JSON.parse(optionalText(row["tags"]) ?? "[]") as string[],
    status: row["status"] === "skipped" ? "skipped" : "ok",
    reason: optionalText(row["reason"]),
    tokens: Number(row["tokens"]),
    nll: numberOf(row["nll"]),
    mean_entropy: numberOf(row["mean_entropy"]),
    kl_start: optionalNumber(row["kl_start"]),
    kl_base: optionalNumber(row["kl_base"]),
    worst: optionalNumber(row["worst"]),
    correct: correct === null ? null : correct !== 0,
    generated: optionalText(row["generated"]),
    finish: optionalText(row["finish"]) as ProbeRow["finish"],
  };
}

function tokenScores(row: SqliteRow): TokenScores {
  const ids = readUints(row["ids"], "ids");
  const n = ids.length;
  const topkIds = readUints(row["topk_ids"], "topk_ids");
  if (topkIds.length % Math.max(1, n) !== 0) throw new RangeError(`row ${String(row["row"])}: topk_ids does not fit ${n} tokens`);
  const segment = bytesOf(row["segment"]);
  if (segment.length !== n) throw new RangeError(`row ${String(row["row"])}: segment does not fit ${n} tokens`);
  return {
    ids,
    ends: readUints(row["ends"], "ends", n),
    logprob: readFloats(row["logprob"], "logprob", n),
    entropy: readFloats(row["entropy"], "entropy", n),
    rank: readUints(row["rank"], "rank", n),
    topkIds,
    topkLogprob: readFloats(row["topk_logprob"], "topk_logprob", topkIds.length),
    segment: Uint8Array.from(segment),
    klStart: row["kl_start"] === null ? null : readFloats(row["kl_start"], "kl_start", n),
    klBase: row["kl_base"] === null ? null : readFloats(row["kl_base"], "kl_base", n),
  };
}
