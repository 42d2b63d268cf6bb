import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import type { BufferRow, LedgerLine, ReplayRecord } from "../../domain/rows/membership.ts";
import { LineSplitter, decodeUtf8 } from "../../util/lines.ts";

/** A run folder to look into. */
export interface RunFolder {
  dir: string;
  run: string;
  stage: string;
}

export interface LedgerReading {
  records: ReplayRecord[];
  /** Sentences about folders whose replay files cannot be read. */
  problems: string[];
}

interface Cached {
  stamp: string;
  record: ReplayRecord | null;
  problem: string | null;
}

/** Reads `buffer.json` and `ledger.jsonl` of run folders; what has not changed is not read again. */
export class LedgerReader {
  private readonly cache = new Map<string, Cached>();

  async read(folders: readonly RunFolder[]): Promise<LedgerReading> {
    const found = await Promise.all(folders.map((folder) => this.readOne(folder)));
    return {
      records: found.flatMap(({ record }) => (record === null ? [] : [record])),
      problems: found.flatMap(({ problem }) => (problem === null ? [] : [problem])),
    };
  }

  private async readOne(folder: RunFolder): Promise<Cached> {
    const stamp = `${await stampOf(join(folder.dir, "buffer.json"))} ${await stampOf(join(folder.dir, "ledger.jsonl"))}`;
    const cached = this.cache.get(folder.dir);
    if (cached?.stamp === stamp) return cached;
    const fresh = { stamp, ...(await readFolder(folder)) };
    this.cache.set(folder.dir, fresh);
    return fresh;
  }
}

async function readFolder({ dir, run, stage }: RunFolder): Promise<{ record: ReplayRecord | null; problem: string | null }> {
  const path = join(dir, "buffer.json");
  const data = await readIfThere(path);
  if (data === null) return { record: null, problem: null };
  const file = parse(decodeUtf8(data));
  if (!isObject(file)) return { record: null, problem: `${path} is not readable; the run's replay rows are not shown.` };
  if (typeof file["v"] === "number" && file["v"] > 1) return { record: null, problem: `${path} has version ${file["v"]}, this Seesaw reads version 1; update Seesaw to see its rows.` };
  const rows = Array.isArray(file["rows"]) ? file["rows"].flatMap(toBufferRow) : [];
  const ledger = await readLedger(join(dir, "ledger.jsonl"));
  return { record: { run, stage, buffer: String(file["buffer"] ?? ""), rows, ledger, ...toCounts(file) }, problem: null };
}

function toCounts({ dropped, sources, coverage, nearness }: Record<string, unknown>): Pick<ReplayRecord, "dropped" | "sources" | "coverage" | "nearness"> {
  const count = (object: Record<string, unknown>, key: string): number => (typeof object[key] === "number" ? object[key] : 0);
  const spread = (value: unknown): { mean: number; max: number } => (isObject(value) ? { mean: count(value, "mean"), max: count(value, "max") } : { mean: 0, max: 0 });
  return {
    ...(isObject(dropped) ? { dropped: { quality: count(dropped, "quality"), duplicate: count(dropped, "duplicate"), probe: count(dropped, "probe") } } : {}),
    ...(Array.isArray(sources) ? { sources: sources.filter(isObject).map((one) => ({ stage: String(one["stage"]), rows: count(one, "rows"), kept: count(one, "kept"), taken: count(one, "taken"), ...(typeof one["quota"] === "number" && { quota: one["quota"] }) })) } : {}),
    ...(Array.isArray(coverage) ? { coverage: coverage.filter(isObject).map((one) => ({ stage: String(one["stage"]), method: String(one["method"]), features: String(one["features"]), mean: count(one, "mean"), max: count(one, "max"), random: spread(one["random"]) })) } : {}),
    ...(Array.isArray(nearness) ? { nearness: nearness.filter(isObject).map((one) => ({ stage: String(one["stage"]), rows: count(one, "rows"), mean: count(one, "mean"), random: { mean: spread(one["random"]).mean } })) } : {}),
  };
}

/** Lines that can be read, in order; a torn one (the process was killed while writing) is left out. */
async function readLedger(path: string): Promise<LedgerLine[]> {
  const data = await readIfThere(path);
  if (data === null) return [];
  const splitter = new LineSplitter();
  const lines = splitter.push(data);
  const tail = splitter.end();
  return [...lines, ...(tail === null ? [] : [tail])].flatMap(({ bytes }) => toLedgerLine(parse(decodeUtf8(bytes))));
}

function toLedgerLine(value: unknown): LedgerLine[] {
  if (!isObject(value) || typeof value["seq"] !== "number") return [];
  if ("resumed_from" in value) return [{ resumed_from: typeof value["resumed_from"] === "number" ? value["resumed_from"] : null }];
  const { step, draws, buffer } = value;
  if (typeof step !== "number" || !Array.isArray(draws)) return [];
  const pairs = draws.filter((pair): pair is [string, number] => Array.isArray(pair) && typeof pair[0] === "string" && typeof pair[1] === "number");
  return [{ step, draws: pairs, buffer: String(buffer ?? "") }];
}

function toBufferRow(value: unknown): BufferRow[] {
  if (!isObject(value) || typeof value["hash"] !== "string") return [];
  const text = (key: string): string | null => (typeof value[key] === "string" ? value[key] : null);
  return [{ hash: value["hash"], prompt_hash: text("prompt_hash"), answer_hash: text("answer_hash"), source: text("source") ?? "", line: Number(value["line"] ?? 0), since: text("since") ?? "?", ...(typeof value["near"] === "number" && { near: value["near"] }) }];
}

async function stampOf(path: string): Promise<string> {
  try {
    const { size, mtimeMs } = await stat(path);
    return `${size}@${mtimeMs}`;
  } catch {
    return "-";
  }
}

async function readIfThere(path: string): Promise<Uint8Array | null> {
  try {
    return await readFile(path);
  } catch {
    return null;
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
