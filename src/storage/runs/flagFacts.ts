import { readFile, stat } from "node:fs/promises";
import { join, relative } from "node:path";
import { validDraws, type BufferRow, type ReplayRecord } from "../../domain/rows/membership.ts";
import { parseJson } from "../../domain/rows/jsonText.ts";
import { nearestRows } from "../../domain/rows/nearestRows.ts";
import { splitTurns } from "../../domain/rows/turns.ts";
import { probeAt } from "../../domain/drift/traceData.ts";
import { promptText } from "../../domain/drift/promptText.ts";
import type { ChainRun } from "../../domain/run/chain.ts";
import { unreadReplay, type FlagFacts, type ReplayFact } from "../../domain/run/flagCard.ts";
import type { FlagRecord } from "../../domain/run/runState.ts";
import { parseReportCard, type ReportCard } from "../../protocol/reportCard.ts";
import { LineSplitter, decodeUtf8 } from "../../util/lines.ts";
import type { TraceStore } from "../traces/traceStore.ts";
import { LedgerReader } from "./ledgers.ts";

/** A source file that is larger is not read for a remark about its rows. */
const mostBytes = 64 * 1024 * 1024;
const mostRows = 3;

/** The report card of an installation; null where it has none that can be read. */
export async function readReportCard(installation: string): Promise<ReportCard | null> {
  try {
    return parseReportCard(await readFile(join(installation, "media", "battery", "card.json"), "utf8"));
  } catch {
    return null;
  }
}

/** What is known of the raised flags of these runs besides their journals: the report card, and the replay rows nearest to what moved. */
export async function readFlagFacts(installation: string, runs: readonly ChainRun[], traces: () => Promise<TraceStore>): Promise<FlagFacts> {
  const replay = new Map<string, ReplayFact>();
  for (const run of runs) {
    const flags = run.state.flags.filter(({ state, moved }) => (state === "drifting" || state === "confirmed") && moved !== undefined && moved.length > 0);
    if (run.spec.replay == null || flags.length === 0) continue;
    // A remark is left out rather than that the flag cannot be shown.
    const facts = await nearest(run, flags, await traces()).catch(() => []);
    for (const [id, fact] of facts) replay.set(`${run.id} ${id}`, fact);
  }
  return { card: await readReportCard(installation), replay: (run, flag) => replay.get(`${run.id} ${flag.id}`) ?? unreadReplay(run) };
}

async function nearest(run: ChainRun, flags: readonly FlagRecord[], traces: TraceStore): Promise<[string, ReplayFact][]> {
  const { records } = await new LedgerReader().read([{ dir: run.dir, run: run.id, stage: run.stage }]);
  const [record] = records;
  const spec = run.spec.replay;
  if (record === undefined || spec === null) return [];
  const { root } = run.spec.pipeline;
  const rows = await bufferTexts(record, ({ since, source }) => spec.from.find(({ stage }) => stage === since)?.data ?? join(root, source));
  // A run on another machine names the files as they lie there.
  const nameOf = (row: BufferRow): string => (run.state.remote === null ? row.source : relative(root, spec.from.find(({ stage }) => stage === row.since)?.data ?? row.source));
  return flags.map((flag) => {
    const found = nearestRows(movedPrompts(run, flag, traces), rows, mostRows);
    const hashes = new Set(found.map(({ row }) => row.hash));
    const drawn = validDraws(record.ledger).filter(({ step }) => step <= flag.step).flatMap(({ draws }) => draws).reduce((sum, [hash, count]) => (hashes.has(hash) ? sum + count : sum), 0);
    return [flag.id, { kind: "rows", buffer: record.buffer, ratio: spec.ratio, rows: found.map(({ row, similarity }) => ({ source: nameOf(row), line: row.line, similarity })), drawn: record.ledger.length === 0 ? null : drawn }];
  });
}

/** The prompts of the rows that a flag names, from the trace of its step. */
function movedPrompts(run: ChainRun, flag: FlagRecord, traces: TraceStore): string[] {
  const point = run.state.probes.find(({ step, skill, split }) => step === flag.step && skill === flag.skill && split === flag.split);
  if (point === undefined) return [];
  const trace = traces.open(join(run.dir, point.trace));
  try {
    return (flag.moved ?? []).flatMap(({ row }) => {
      const probe = probeAt(trace, row);
      return probe === null ? [] : [promptText(probe.prompt)];
    });
  } finally {
    trace.close();
  }
}

/** The prompts of a buffer's rows, from the files they came from; `fileOf` says where those are here. */
async function bufferTexts({ rows }: ReplayRecord, fileOf: (row: BufferRow) => string): Promise<{ row: BufferRow; text: string }[]> {
  const bySource = new Map<string, Map<number, BufferRow>>();
  for (const row of rows) bySource.set(fileOf(row), (bySource.get(fileOf(row)) ?? new Map<number, BufferRow>()).set(row.line, row));
  const found: { row: BufferRow; text: string }[] = [];
  for (const [source, byLine] of bySource) {
    if ((await stat(source)).size > mostBytes) continue;
    const splitter = new LineSplitter();
    const lines = splitter.push(await readFile(source));
    const tail = splitter.end();
    for (const { number, bytes } of tail === null ? lines : [...lines, tail]) {
      const row = byLine.get(number);
      const parsed = row === undefined ? null : parseJson(decodeUtf8(bytes));
      if (row === undefined || parsed === null || !parsed.ok) continue;
      found.push({ row, text: splitTurns(parsed.value).prompt.map(({ text }) => (typeof text === "string" ? text : "")).join(" ") });
    }
  }
  return found;
}
