import type { ChainCheckpoint } from "../../domain/run/chain.ts";
import type { DriftColumns } from "../../domain/drift/driftColumns.ts";
import { compareWith, orderedColumns, shownCheckpoints, startReference, withProbeSet, type Comparison, type OpenedSet } from "../../domain/drift/driftSelection.ts";
import { filmstripOf, type FilmCell as DomainCell, type FilmFrame, type Filmstrip } from "../../domain/drift/filmstrip.ts";
import { firstDivergence } from "../../domain/drift/firstDivergence.ts";
import { columnsOf, probeAt, promptsOf } from "../../domain/drift/traceData.ts";
import { formatCount, formatPlural } from "../../domain/format.ts";
import { promptText } from "../../domain/drift/promptText.ts";
import { sequenceNoise, tokenNoise } from "../../domain/drift/tokenClasses.ts";
import { encodeNumber } from "../../protocol/numbers.ts";
import type { CheckMark, DriftCheckpoint, DriftFilm, DriftPrompt, FilmCell } from "../../protocol/webview.ts";
import type { TraceReader, TraceStore } from "../../storage/traces/traceStore.ts";
import { t } from "../../util/l10n.ts";
import type { ResolvedSelection } from "./driftChoices.ts";

/** The prompts of a probe set with their drift, ready to be sent. */
export interface DriftList {
  checkpoints: DriftCheckpoint[];
  prompts: DriftPrompt[];
  notes: string[];
}

/** More prompts than this are not sent: the list says so. */
const listLimit = 2000;
/** A prompt in the list is one line: more characters than this are not sent. */
const lineLimit = 240;
/** Characters of the chosen prompt that are sent. */
const promptLimit = 20_000;
/** Tokens of a film that are sent at once: with five checkpoints 2,000 cells. */
const filmLimit = 400;
const alternatives = 6;
/** Characters of the reference answer and of each greedy answer that are sent. */
const answerLimit = 8_000;

/** The traces of one probe set and what they are compared with. */
interface Opened extends OpenedSet<TraceReader> {
  comparison: Comparison;
}

/**
 * Reads the numbers of every trace of the set, with a pause between them: of a hundred thousand probes each takes a moment,
 * and the editor must not wait for all. What cannot be read is told by who needs it.
 */
export async function readAhead({ chain, skill, split }: ResolvedSelection, store: TraceStore): Promise<void> {
  for (const { traces } of shownCheckpoints(chain, { skill, split })) {
    const path = traces[`${skill}.${split}`];
    if (path === undefined) continue;
    try {
      const reader = store.open(path);
      try {
        if (reader.readAhead === undefined) columnsOf(reader);
        else await reader.readAhead(pause);
      } finally {
        reader.close();
      }
    } catch {
      continue;
    }
    await pause();
  }
}

/** Lets the editor do what waits meanwhile. */
export function pause(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** The prompts of the selected probe set under all checkpoints, the most drifted first. Only those that are sent are read. */
export function readList(selection: ResolvedSelection, store: TraceStore): DriftList {
  return withTraces(selection, store, (open) => {
    const found = orderedColumns(open.comparison, "worst", listLimit);
    const checkpoints = open.shown.map((checkpoint) => describe(checkpoint, selection, open, found));
    if (found === null) return { checkpoints, prompts: [], notes: notesOf(found, checkpoints) };
    const texts = promptsOf(found.anchor, Array.from(found.order, (place) => found.probes.rows[place] as number));
    const prompts = Array.from(found.order).flatMap((place) => promptOf(found, place, texts) ?? []);
    return { checkpoints, prompts, notes: notesOf(found, checkpoints) };
  });
}

/** One prompt, token by token; null when no checkpoint scored it. `token`: what a long one is cut around. */
export function readFilm(selection: ResolvedSelection, row: number, token: number | null, store: TraceStore): DriftFilm | null {
  return withTraces(selection, store, ({ comparison: { reference, compared }, problems }) => {
    const anchor = reference ?? compared.find(({ trace }) => trace !== null)?.trace ?? null;
    const strip = anchor === null ? null : filmstripOf(anchor, row, reference, compared);
    if (strip === null) return null;
    const total = strip.tokens.length;
    const from = firstShown(total, token ?? worstToken(strip));
    const prompt = promptText(strip.probe.prompt).trim();
    return {
      row,
      line: strip.probe.line,
      reference: shorten(strip.probe.reference, answerLimit),
      prompt: prompt.length > promptLimit ? `${prompt.slice(0, promptLimit)}… (${formatPlural(prompt.length - promptLimit, "more character")})` : prompt,
      from,
      total,
      tokens: strip.tokens.slice(from, from + filmLimit).map(({ display, segment, group }, index) => ({ display, segment, continues: group === strip.tokens[from + index - 1]?.group })),
      rows: strip.frames.map((frame, checkpoint) => ({
        checkpoint,
        cells: frame.cells?.slice(from, from + filmLimit).map((cell) => cellOf(cell, frame)) ?? null,
        note: problems.get(frame.label) ?? frame.why ?? frame.note,
        check: markOf(frame.correct),
        generated: frame.generated === null ? null : shorten(frame.generated, answerLimit),
        diverges: frame.generated === null ? null : firstDivergence(strip.probe.reference, frame.generated),
      })),
    };
  });
}

/** What rescoring alone can change, in nats: the largest of what is compared. */
export interface Noise {
  token: number;
  sequence: number;
}

/** The noise floor of a selection; null where nothing is compared. */
export function readNoise(selection: ResolvedSelection, store: TraceStore): Noise | null {
  return withTraces(selection, store, ({ comparison: { reference: common, compared } }) => {
    const pairs = compared.flatMap(({ trace, reference = common }) => (trace === null || reference === null ? [] : [[reference.meta, trace.meta] as const]));
    if (pairs.length === 0) return null;
    return { token: Math.max(...pairs.map((pair) => tokenNoise(...pair))), sequence: Math.max(...pairs.map((pair) => sequenceNoise(...pair))) };
  });
}

/** Cut where it is too long, never inside a character. */
function shorten(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const last = text.charCodeAt(limit - 1);
  return `${text.slice(0, last >= 0xd800 && last <= 0xdbff ? limit - 1 : limit)}…`;
}

/** So that `token` stands in the middle of what is shown, where the ends allow it. */
function firstShown(total: number, token: number): number {
  return Math.max(0, Math.min(token - filmLimit / 2, total - filmLimit));
}

/** The token that fell most under any checkpoint. */
function worstToken({ frames }: Filmstrip): number {
  let [worst, fall] = [0, 0];
  for (const { cells } of frames) {
    for (const [index, { delta }] of cells?.entries() ?? []) if (delta !== null && delta < fall) [worst, fall] = [index, delta];
  }
  return worst;
}

function withTraces<T>(selection: ResolvedSelection, store: TraceStore, use: (open: Opened) => T): T {
  const { chain, pipeline, reference, skill, split } = selection;
  return withProbeSet(chain, { skill, split }, (path) => store.open(path), (opened) => {
    // Every trace failed the same way (no SQLite, say): that is the answer, not an empty list.
    const [problem] = opened.problems.values();
    if (opened.readers.size === 0 && problem !== undefined) throw new Error(problem);
    return use({ ...opened, comparison: compareWith(pipeline, opened, reference, true) });
  });
}

function describe(checkpoint: ChainCheckpoint, selection: ResolvedSelection, open: Opened, found: DriftColumns | null): DriftCheckpoint {
  const { label, stage } = checkpoint;
  const note = found?.columns.find((one) => one.label === label);
  const compared = open.comparison.compared.find((one) => one.label === label);
  const scored = compared?.trace != null;
  // Without a reference of its own on purpose: the reference itself, what came before it, the base among stage starts.
  const anchor = compared?.reference === null;
  const problem = open.problems.get(label) ?? (scored && !anchor ? note?.note ?? null : null);
  const stale = checkpoint.status === "stale" ? checkpoint.reason : null;
  return {
    label,
    stage,
    state: !scored ? "missing" : anchor || note?.comparable !== false ? "scored" : "not-comparable",
    note: problem ?? stale ?? (scored ? null : checkpoint.reason ?? t("{0} has not been scored on these prompts.", label)),
    isReference: label === selection.reference,
    against: anchor || !scored ? null : againstOf(checkpoint, selection, open),
  };
}

/** Which of the shown checkpoints a checkpoint is compared with. */
function againstOf({ stage }: ChainCheckpoint, { pipeline, reference }: ResolvedSelection, { shown }: Opened): number | null {
  const parent = pipeline.stages.find(({ id }) => id === stage)?.from ?? null;
  const place = reference === startReference ? (stage === null ? -1 : shown.findIndex((one) => one.stage === parent)) : shown.findIndex(({ label }) => label === reference);
  return place < 0 ? null : place;
}

/** A row of the list. Thousands are made at a time: straight from the columns, and of the texts only the prompt. */
function promptOf({ probes, columns, worst }: DriftColumns, place: number, texts: ReadonlyMap<number, string>): DriftPrompt | null {
  const row = probes.rows[place] as number;
  const prompt = texts.get(row);
  if (prompt === undefined) return null;
  const most = worst(place);
  return {
    row,
    line: probes.lines[place] as number,
    prompt: oneLine(promptText(prompt)),
    changes: columns.map(({ delta }) => (delta === null || Number.isNaN(delta[place]) ? null : encodeNumber(-(delta[place] as number)))),
    checks: columns.map((column) => (column.correctAt(place) < 0 ? "not-run" : column.correctAt(place) === 1 ? "passed" : "failed")),
    worst: most === null ? null : encodeNumber(-most),
    withinNoise: columns.every(({ delta, noise }) => delta === null || !(Math.abs(delta[place] as number) > noise)),
  };
}

function oneLine(text: string): string {
  const head = text.slice(0, 4 * lineLimit);
  const line = (/\s\s|[^\S ]/.test(head) ? head.replace(/\s+/g, " ") : head).trim();
  return line.length > lineLimit ? `${Array.from(line).slice(0, lineLimit).join("")}…` : line;
}

function notesOf(found: DriftColumns | null, checkpoints: readonly DriftCheckpoint[]): string[] {
  const notes = checkpoints.flatMap(({ label, note }) => (note === null ? [] : [`${label}: ${note}`]));
  if (found === null) return notes;
  const { scored, skipped, probes, anchor } = found;
  if (scored > listLimit) notes.push(t("Only the first {0} of {1} prompts are listed.", formatCount(listLimit), formatCount(scored)));
  const [first] = skipped;
  if (first !== undefined) notes.push(t("{0} could not be scored (line {1}: {2})", formatPlural(skipped.length, "row"), probes.lines[first] ?? 0, probeAt(anchor, probes.rows[first] as number)?.reason ?? t("it was skipped when scored")));
  return notes;
}

function cellOf(cell: DomainCell, frame: FilmFrame): FilmCell {
  return {
    logprob: encodeNumber(cell.logprob),
    change: cell.delta === null ? null : encodeNumber(cell.delta),
    rank: cell.rank + 1,
    entropy: encodeNumber(cell.entropy),
    tokenClass: cell.class,
    coloured: cell.coloured && frame.delta !== null,
    top: cell.alternatives.slice(0, alternatives).map(({ display, probability, isReference }) => ({ text: display, probability, isReference })),
  };
}

function markOf(correct: boolean | null): CheckMark {
  return correct === null ? "not-run" : correct ? "passed" : "failed";
}
