import { flagCard, unreadReplay, type FlagFact } from "../../domain/run/flagCard.ts";
import type { ChainRun } from "../../domain/run/chain.ts";
import type { FlagRecord } from "../../domain/run/runState.ts";
import type { CommandId } from "../../ids.ts";
import { t } from "../../util/l10n.ts";
import { escapeMarkdown } from "../rows/rowHover.ts";
import type { PipelineView } from "../workspaceModel.ts";

/** The only command that the hover of a flag may call. */
export const flagHoverCommand = "seesaw.openReportCard" satisfies CommandId;

/** What is known of a flag besides its finding. */
export type FlagKnowledge = Pick<PipelineView, "listing" | "card" | "replay" | "lookUp">;

export function factsOf({ listing, card = null, replay }: FlagKnowledge, run: ChainRun, flag: FlagRecord): FlagFact[] {
  return flagCard({ flag, run, runs: listing.runs, card, replay: replay?.(run, flag) ?? unreadReplay(run) });
}

/** A fact a line, for what shows plain text only. */
export function factLines(facts: readonly FlagFact[]): string {
  return facts.map(({ label, text }) => `${label}: ${text}`).join("\n");
}

/** The same as a hover: `head`, sentences a line each, then the facts, and the way to the report card where there is one. */
export function flagHover(head: readonly string[], facts: readonly FlagFact[], { card }: Pick<FlagKnowledge, "card">): string {
  const lines = facts.map(({ label, text }) => `- **${escapeMarkdown(label)}** ${escapeMarkdown(unbroken(text))}`);
  const link = card == null ? [] : [`[${escapeMarkdown(reportCardLink())}](command:${flagHoverCommand})`];
  return [...head.map((line) => escapeMarkdown(unbroken(line))), lines.join("\n"), ...link].join("\n\n");
}

/** A number stays on one line with its sign: `95 %`, `p < 0.001`. */
function unbroken(text: string): string {
  return text.replace(/(\d) %/g, "$1\u00a0%").replace(/\bp ([=<]) /g, "p\u00a0$1\u00a0");
}

/** The hover once all is known that can be, for who points at it. */
export async function fullHover(head: readonly string[], view: FlagKnowledge, run: ChainRun, flag: FlagRecord): Promise<string> {
  await view.lookUp?.(run);
  return flagHover(head, factsOf(view, run, flag), view);
}

export function reportCardLink(): string {
  return t("How often this detector is wrong, and whether it is ahead");
}
