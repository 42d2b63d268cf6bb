import { validDraws } from "../../domain/rows/membership.ts";
import type { ReplayReading } from "../../domain/report/reportInput.ts";
import type { ReplaySummary } from "../../domain/report/reportModel.ts";
import type { Chain, ChainRun } from "../../domain/run/chain.ts";
import { replayRuns } from "../../domain/run/replayRuns.ts";
import { LedgerReader, type LedgerReading } from "./ledgers.ts";

/** A chain and the runs it was built from. */
export interface ChainRuns {
  chain: Chain;
  runs: readonly ChainRun[];
}

/** The replay records of the runs that stand for the chain's stages now. */
export async function replayRecords({ chain }: Pick<ChainRuns, "chain">): Promise<LedgerReading> {
  return new LedgerReader().read(replayRuns(chain).map(({ dir, id, stage }) => ({ dir, run: id, stage })));
}

/** What each stage replayed: its frozen buffer and its ledger of draws. */
export async function replaySummaries(data: ChainRuns): Promise<ReplayReading> {
  const { records, problems } = await replayRecords(data);
  const summaries: ReplaySummary[] = [];
  for (const { run: id, stage, buffer, rows, ledger, dropped, coverage, nearness } of records) {
    const run = data.runs.find((candidate) => candidate.id === id);
    if (!run) continue;
    const sources = new Map<string, number>();
    for (const { since } of rows) sources.set(since, (sources.get(since) ?? 0) + 1);
    const drawn = new Map<string, number>();
    for (const { draws } of validDraws(ledger)) for (const [hash, count] of draws) drawn.set(hash, (drawn.get(hash) ?? 0) + count);
    summaries.push({
      stage,
      run: id,
      buffer,
      ratio: run.spec.replay?.ratio ?? 0,
      rows: rows.length,
      sources: [...sources].map(([from, count]) => ({ stage: from, rows: count })),
      dropped: dropped ?? { quality: 0, duplicate: 0, probe: 0 },
      ...(coverage !== undefined && coverage.length > 0 && { coverage }),
      ...(nearness !== undefined && nearness.length > 0 && { nearness }),
      draws: [...drawn.values()].reduce((sum, count) => sum + count, 0),
      distinct: drawn.size,
    });
  }
  return { summaries, problems };
}
