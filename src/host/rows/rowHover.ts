import type { FilmFrame, Filmstrip } from "../../domain/drift/filmstrip.ts";
import { startReference } from "../../domain/drift/driftSelection.ts";
import { promptText } from "../../domain/drift/promptText.ts";
import type { TokenClass } from "../../domain/drift/tokenClasses.ts";
import { showBlanks } from "../../domain/drift/tokenText.ts";
import { formatDrift, formatNumber, formatPercent, formatPlural, formatSigned } from "../../domain/format.ts";
import { probeSetName } from "../../domain/run/flagText.ts";
import type { CommandId } from "../../ids.ts";
import { t } from "../../util/l10n.ts";
import type { LineRow } from "./lineRows.ts";
import type { KnownProbe, RowKnowledge } from "./rowKnowledge.ts";
import { absences, replayText, targetOf, unscoredText } from "./rowWords.ts";

/** The only command a hover may call. */
export const hoverCommand = "seesaw.showDrift" satisfies CommandId;

/** Tokens, characters of an answer, fallen tokens and rows of a buffer that a hover shows at most. */
const tokenLimit = 80;
const answerLimit = 300;
const fallLimit = 4;
const memberLimit = 6;

/** Between the columns of a table, where VS Code's hovers leave no room. The last sign has no width: without it Markdown trims the blanks. */
const gap = "\u00a0\u00a0\u00a0\u2060";

const brackets: Record<TokenClass, string> = { kept: "", weakened: "‹›", lost: "«»" };

/** The text of rows is text: every sign that Markdown could take for its own is escaped, and no line or link can begin in it. */
export function escapeMarkdown(text: string): string {
  return text.replace(/[!-/:-@[-`{-~]/g, "\\$&");
}

/** Text of a row as one line: blanks stay, what cannot be seen is shown. */
function literal(text: string, limit: number): string {
  const characters = Array.from(text.slice(0, 2 * limit + 2));
  const cut = characters.length > limit;
  const line = showBlanks(characters.slice(0, limit).join("")).replaceAll("·", " ");
  return escapeMarkdown(line.replace(/\p{Surrogate}/gu, "\ufffd")) + (cut ? "…" : "");
}

/** What the hover over a row says, as Markdown; null where there is nothing to say. */
export function rowHover(row: LineRow, knowledge: RowKnowledge): string | null {
  const parts: string[] = [];
  for (const probe of knowledge.probes.get(row.hashes.full) ?? []) parts.push(...probeParts(probe, knowledge));
  if (parts.length === 0) {
    const text = unscoredText(row, knowledge);
    if (text !== null) parts.push(sentence(text));
  }
  parts.push(...replayParts(row, knowledge));
  if (parts.length === 0) return null;
  return [...parts, ...knowledge.problems.slice(0, 3).map((problem) => `⚠ ${literal(problem, answerLimit)}`)].join("\n\n");
}

function probeParts(probe: KnownProbe, { film: filmOf, sources }: RowKnowledge): string[] {
  const film = filmOf(probe);
  const { set, against, row } = probe;
  const what = against === startReference ? t("the start of each stage") : against;
  const parts = [`**${escapeMarkdown(probeSetName(set.skill, set.split))}**${of(sources?.scores)} · ${escapeMarkdown(t("compared with {0}", what))} · [${t("Show Token Drift")}](command:${hoverCommand}?${encodeURIComponent(JSON.stringify([targetOf(probe)]))})`];
  parts.push(`*${literal(promptText(row.prompt), answerLimit) || escapeMarkdown(t("no prompt"))}*`);
  if (film === null) return parts;
  const from = Math.max(0, Math.min(worstPlace(film) - tokenLimit / 2, film.tokens.length - tokenLimit));
  const lines = film.frames.map((frame) => `| ${escapeMarkdown(frame.label)}${gap} | ${mark(frame.correct)}${gap} | ${escapeMarkdown(formatDrift(frame.delta))}${gap} | ${frameText(frame, film, from)} |`);
  parts.push([`| | | nats${gap} | ${t("reference answer: ‹weakened› «lost»")} |`, "|:--|:-:|--:|:--|", ...lines].join("\n"));
  parts.push(...fallen(film), ...answers(film));
  return parts;
}

/** Which pipeline is meant, where there are several. */
function of(label: string | undefined): string {
  return label === undefined ? "" : escapeMarkdown(t(" of {0}", label));
}

function mark(correct: boolean | null): string {
  return correct === null ? "–" : correct ? "✓" : "✗";
}

/** The token that fell most under any checkpoint. */
function worstPlace({ frames }: Filmstrip): number {
  let [place, fall] = [0, 0];
  for (const { cells } of frames) for (const [index, { delta }] of cells?.entries() ?? []) if (delta !== null && delta < fall) [place, fall] = [index, delta];
  return place;
}

/** The same tokens in every line, what fell beyond the noise in brackets: they need no colour. Neighbours share a pair. */
function frameText({ cells, why }: FilmFrame, { tokens }: Filmstrip, from: number): string {
  if (cells === null) return literal(why ?? t("not scored"), answerLimit);
  let [text, open] = ["", ""];
  for (const [index, { display, terminator }] of tokens.slice(from, from + tokenLimit).entries()) {
    const cell = cells[from + index];
    const fell = cell !== undefined && cell.coloured ? cell.class : "kept";
    const now = brackets[fell];
    if (now !== open) text += open.slice(1) + now.slice(0, 1);
    open = now;
    text += escapeMarkdown(terminator ? "⏎" : display.replaceAll("·", " "));
  }
  return `${from > 0 ? "…" : ""}${text}${open.slice(1)}${from + tokenLimit < tokens.length ? "…" : ""}`;
}

/** The tokens that fell most under the last checkpoint that was compared, and what it would write instead. */
function fallen({ frames, tokens }: Filmstrip): string[] {
  const frame = frames.findLast(({ delta, cells }) => delta !== null && cells !== null);
  const fell = (frame?.cells ?? []).flatMap((cell, index) => (cell.coloured && cell.delta !== null ? [{ cell, delta: cell.delta, token: tokens[index] }] : [])).sort((a, b) => a.delta - b.delta);
  if (frame === undefined || fell.length === 0) return [];
  const lines = fell.slice(0, fallLimit).map(({ cell, delta, token }) => {
    const [top] = cell.alternatives;
    const instead = top === undefined || top.isReference ? "" : escapeMarkdown(t("; it would write ‘{0}’ ({1})", top.display, formatPercent(top.probability, 0)));
    return `- ${escapeMarkdown(t("‘{0}’ {1} nats, now rank {2}", token?.display ?? "", formatSigned(delta, 1), cell.rank + 1))}${instead}`;
  });
  const more = fell.length > fallLimit ? `\n- ${t("and {0}", formatPlural(fell.length - fallLimit, "more token"))}` : "";
  return [`${escapeMarkdown(t("Fallen at {0}:", frame.label))}\n${lines.join("\n")}${more}`];
}

/** The greedy answers; checkpoints that wrote the same share a line. */
function answers({ frames, probe }: Filmstrip): string[] {
  const byText = new Map<string, string[]>();
  for (const { label, generated } of frames) if (generated !== null) byText.set(generated, [...(byText.get(generated) ?? []), label]);
  if (byText.size === 0) return [];
  const lines = [...byText].map(([text, labels]) => `- ${escapeMarkdown(labels.join(", "))}: ${text.trim() === probe.reference.trim() ? t("the reference answer") : literal(text, answerLimit) || t("nothing")}`);
  return [`${t("Greedy answers:")}\n${lines.join("\n")}`];
}

/** In which buffers the row is, since when and how often it was drawn; or why it is in none. */
function replayParts(row: LineRow, knowledge: RowKnowledge): string[] {
  const text = replayText(row, knowledge);
  if (text === null) return [];
  const members = knowledge.membership.relate({ line: 0, ...row.hashes });
  if (members?.relation !== "same-row") {
    const missing = absences(row, knowledge).map(({ buffer, stage, reason }) => `- ${t("buffer **{0}**, replayed in {1}: {2}", escapeMarkdown(buffer), escapeMarkdown(stage), escapeMarkdown(reason))}`);
    const related = members === null ? [] : [t("Related to a row that is in a buffer: {0}.", escapeMarkdown(members.label))];
    return [...related, ...(missing.length === 0 ? [] : [`${t("Not in a replay buffer{0}.", of(knowledge.sources?.replay))}\n\n${missing.join("\n")}`])];
  }
  const lines = members.memberships.slice(0, memberLimit).map(({ buffer, since, stage, draws, firstStep, lastStep, row: { near } }) => {
    const drawn = draws === 0 ? t("not drawn yet") : firstStep === lastStep ? t("drawn {0}×, at step {1}", draws, firstStep ?? 0) : t("drawn {0}×, from step {1} to {2}", draws, firstStep ?? 0, lastStep ?? 0);
    const liked = near === undefined ? "" : t(", taken first for its prompt: similarity {0} to a row that \"near\" names", formatNumber(near, 2));
    return `- ${t("buffer **{0}**: came in with the data of {1}, replayed in {2}, {3}", escapeMarkdown(buffer), escapeMarkdown(since), escapeMarkdown(stage), drawn)}${liked}`;
  });
  return [`${t("In the replay buffer{0}.", of(knowledge.sources?.replay))}\n\n${lines.join("\n")}`];
}

function sentence(text: string): string {
  return escapeMarkdown(t("{0}.", text.charAt(0).toUpperCase() + text.slice(1)));
}
