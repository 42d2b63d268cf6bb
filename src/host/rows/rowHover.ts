import type { FilmFrame, Filmstrip } from "../../domain/drift/filmstrip.ts";
import { startReference } from "../../domain/drift/driftSelection.ts";
import { promptText } from "../../domain/drift/promptText.ts";
import type { TokenClass } from "../../domain/drift/tokenClasses.ts";
import { showBlanks } from "../../domain/drift/tokenText.ts";
import { formatDrift, formatPercent, formatPlural, formatSigned } from "../../domain/format.ts";
import { probeSetName } from "../../domain/run/flagText.ts";
import type { CommandId } from "../../ids.ts";
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
  const what = against === startReference ? "the start of each stage" : against;
  const parts = [`**${escapeMarkdown(probeSetName(set.skill, set.split))}**${of(sources?.scores)} · compared with ${escapeMarkdown(what)} · [Show Token Drift](command:${hoverCommand}?${encodeURIComponent(JSON.stringify([targetOf(probe)]))})`];
  parts.push(`*${literal(promptText(row.prompt), answerLimit) || "no prompt"}*`);
  if (film === null) return parts;
  const from = Math.max(0, Math.min(worstPlace(film) - tokenLimit / 2, film.tokens.length - tokenLimit));
  const lines = film.frames.map((frame) => `| ${escapeMarkdown(frame.label)} | ${mark(frame.correct)} | ${escapeMarkdown(formatDrift(frame.delta))} | ${frameText(frame, film, from)} |`);
  parts.push(["| | | nats | reference answer: ‹weakened› «lost» |", "|:--|:-:|--:|:--|", ...lines].join("\n"));
  parts.push(...fallen(film), ...answers(film));
  return parts;
}

/** Which pipeline is meant, where there are several. */
function of(label: string | undefined): string {
  return label === undefined ? "" : ` of ${escapeMarkdown(label)}`;
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
  if (cells === null) return literal(why ?? "not scored", answerLimit);
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
    const instead = top === undefined || top.isReference ? "" : `; it would write ‘${escapeMarkdown(top.display)}’ (${escapeMarkdown(formatPercent(top.probability, 0))})`;
    return `- ‘${escapeMarkdown(token?.display ?? "")}’ ${escapeMarkdown(formatSigned(delta, 1))} nats, now rank ${cell.rank + 1}${instead}`;
  });
  const more = fell.length > fallLimit ? `\n- and ${formatPlural(fell.length - fallLimit, "more token")}` : "";
  return [`Fallen at ${escapeMarkdown(frame.label)}:\n${lines.join("\n")}${more}`];
}

/** The greedy answers; checkpoints that wrote the same share a line. */
function answers({ frames, probe }: Filmstrip): string[] {
  const byText = new Map<string, string[]>();
  for (const { label, generated } of frames) if (generated !== null) byText.set(generated, [...(byText.get(generated) ?? []), label]);
  if (byText.size === 0) return [];
  const lines = [...byText].map(([text, labels]) => `- ${escapeMarkdown(labels.join(", "))}: ${text.trim() === probe.reference.trim() ? "the reference answer" : literal(text, answerLimit) || "nothing"}`);
  return [`Greedy answers:\n${lines.join("\n")}`];
}

/** In which buffers the row is, since when and how often it was drawn; or why it is in none. */
function replayParts(row: LineRow, knowledge: RowKnowledge): string[] {
  const text = replayText(row, knowledge);
  if (text === null) return [];
  const members = knowledge.membership.relate({ line: 0, ...row.hashes });
  if (members?.relation !== "same-row") {
    const missing = absences(row, knowledge).map(({ buffer, stage, reason }) => `- buffer **${escapeMarkdown(buffer)}**, replayed in ${escapeMarkdown(stage)}: ${escapeMarkdown(reason)}`);
    const related = members === null ? [] : [`Related to a row that is in a buffer: ${escapeMarkdown(members.label)}.`];
    return [...related, ...(missing.length === 0 ? [] : [`Not in a replay buffer${of(knowledge.sources?.replay)}.\n\n${missing.join("\n")}`])];
  }
  const lines = members.memberships.slice(0, memberLimit).map(({ buffer, since, stage, draws, firstStep, lastStep }) => {
    const drawn = draws === 0 ? "not drawn yet" : `drawn ${draws}×, ${firstStep === lastStep ? `at step ${firstStep ?? 0}` : `from step ${firstStep ?? 0} to ${lastStep ?? 0}`}`;
    return `- buffer **${escapeMarkdown(buffer)}**: came in with the data of ${escapeMarkdown(since)}, replayed in ${escapeMarkdown(stage)}, ${drawn}`;
  });
  return [`In the replay buffer${of(knowledge.sources?.replay)}.\n\n${lines.join("\n")}`];
}

function sentence(text: string): string {
  return `${escapeMarkdown(text.charAt(0).toUpperCase() + text.slice(1))}.`;
}
