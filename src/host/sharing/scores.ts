import type { ReplayReading } from "../../domain/report/reportInput.ts";
import type { ScoredChain } from "../../domain/report/scoredChain.ts";
import type { Chain, ChainRun } from "../../domain/run/chain.ts";
import type { FlagFacts } from "../../domain/run/flagCard.ts";
import type { TraceStore } from "../../storage/traces/traceStore.ts";
import { AppError } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";
import type { PipelineView } from "../workspaceModel.ts";

/** Where scores and replay records come from. Both are read at their first use. */
export interface ScoreSource {
  traces(): Promise<TraceStore>;
  replay(data: { chain: Chain; runs: readonly ChainRun[] }): Promise<ReplayReading>;
  flagFacts(runs: readonly ChainRun[]): Promise<FlagFacts>;
}

/** A pipeline of the workspace as the report and the tools ask for it. */
export async function scoredChain(view: PipelineView, source: Pick<ScoreSource, "traces">): Promise<ScoredChain> {
  const { shown: pipeline, chain, listing } = view;
  if (pipeline === null || chain === null) {
    const first = view.diagnostics.find(({ severity }) => severity === "error");
    throw new AppError("bad-pipeline", first === undefined ? t("{0} has errors", view.label) : t("{0} has errors, the first in line {1}: {2}", view.label, first.range.line, first.message));
  }
  return { pipeline, chain, runs: listing.runs, unreadable: listing.unreadable, traces: await source.traces() };
}
