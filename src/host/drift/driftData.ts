import type { ChainCheckpoint } from "../../domain/chain.ts";
import { driftTable, type DriftRow, type DriftTable } from "../../domain/drift.ts";
import { formatPlural } from "../../domain/format.ts";
import { filmstrip, type FilmCell as DomainCell, type FilmFrame } from "../../domain/filmstrip.ts";
import { promptText } from "../../domain/promptText.ts";
import { diffTexts } from "../../domain/textDiff.ts";
import type { ComparedTrace, TraceData } from "../../domain/traceData.ts";
import { encodeNumber } from "../../protocol/numbers.ts";
import type { CheckMark, DriftCheckpoint, DriftFilm, DriftPrompt, FilmCell } from "../../protocol/webview.ts";
import type { TraceReader, TraceStore } from "../../storage/traceStore.ts";
import { messageOf } from "../../util/errors.ts";
import { shownCheckpoints, startReference, type ResolvedSelection } from "./driftChoices.ts";

/** The prompts of a probe set with their drift, ready to be sent. */
export interface DriftList {
  checkpoints: DriftCheckpoint[];
  prompts: DriftPrompt[];
  notes: string[];
}

/** More prompts than this are not sent: the list says so. */
const listLimit = 2000;
const alternatives = 6;

/** The traces of one probe set, opened together and closed together. */
interface OpenTraces {
  shown: ChainCheckpoint[];
  compared: ComparedTrace[];
  /** Why a trace that exists could not be read, by checkpoint label. */
  problems: Map<string, string>;
  reference: TraceData | null;
}

/** All prompts of the selected probe set under all checkpoints, the most drifted first. */
export function readList(selection: ResolvedSelection, store: TraceStore): DriftList {
  return withTraces(selection, store, (open) => {
    const table = driftTable(open.reference, open.compared);
    const checkpoints = open.shown.map((checkpoint) => describe(checkpoint, selection, open, table));
    const prompts = table.rows.slice(0, listLimit).map(promptOf);
    return { checkpoints, prompts, notes: notesOf(table, checkpoints) };
  });
}

/** One prompt, token by token; null when no checkpoint scored it. */
export function readFilm(selection: ResolvedSelection, row: number, store: TraceStore): DriftFilm | null {
  return withTraces(selection, store, (open) => {
    const anchor = open.reference ?? open.compared.find(({ trace }) => trace !== null)?.trace ?? null;
    const probes = anchor?.probes() ?? [];
    const probe = probes.find((one) => one.row === row);
    if (probe === undefined) return null;
    const copies = probes.filter((one) => one.hash === probe.hash && one.status === "ok");
    const strip = filmstrip(open.reference, open.compared, probe.hash, Math.max(0, copies.indexOf(probe)));
    if (strip === null) return null;
    return {
      row,
      line: strip.probe.line,
      prompt: promptText(strip.probe.prompt).trim(),
      tokens: strip.tokens.map((token, index) => ({ display: token.display, segment: token.segment, continues: token.group === strip.tokens[index - 1]?.group })),
      rows: strip.frames.map((frame, checkpoint) => ({
        checkpoint,
        cells: frame.cells?.map((cell) => cellOf(cell, frame)) ?? null,
        note: open.problems.get(frame.label) ?? frame.why ?? frame.note,
        check: markOf(frame.correct),
        generated: frame.generated,
        diverges: frame.generated === null ? null : diffTexts(strip.probe.reference, frame.generated).firstDivergence,
      })),
    };
  });
}

function withTraces<T>(selection: ResolvedSelection, store: TraceStore, use: (open: OpenTraces) => T): T {
  const { chain, pipeline, reference } = selection;
  const probeSet = `${selection.skill}.${selection.split}`;
  const shown = shownCheckpoints(chain, probeSet);
  const readers = new Map<string, TraceReader>();
  const problems = new Map<string, string>();
  try {
    for (const { label, traces } of shown) {
      const path = traces[probeSet];
      if (path === undefined) continue;
      try {
        readers.set(label, store.open(path));
      } catch (error) {
        problems.set(label, messageOf(error));
      }
    }
    // Every trace failed the same way (no SQLite, say): that is the answer, not an empty list.
    const [problem] = problems.values();
    if (readers.size === 0 && problem !== undefined) throw new Error(problem);
    const common = reference === startReference ? null : readers.get(reference) ?? null;
    const referenceIndex = shown.findIndex((checkpoint) => checkpoint.label === reference);
    const compared = shown.map(({ label, stage }, index): ComparedTrace => {
      const trace = readers.get(label) ?? null;
      if (reference !== startReference) return index <= referenceIndex ? { label, trace, reference: null } : { label, trace };
      const parent = pipeline.stages.find(({ id }) => id === stage)?.from ?? null;
      const start = stage === null ? undefined : shown.find((checkpoint) => checkpoint.stage === parent)?.label;
      return { label, trace, reference: start === undefined ? null : readers.get(start) ?? null };
    });
    return use({ shown, compared, problems, reference: common });
  } finally {
    for (const reader of readers.values()) reader.close();
  }
}

function describe(checkpoint: ChainCheckpoint, selection: ResolvedSelection, open: OpenTraces, table: DriftTable): DriftCheckpoint {
  const { label, stage } = checkpoint;
  const note = table.notes.find((one) => one.label === label);
  const compared = open.compared.find((one) => one.label === label);
  const scored = compared?.trace != null;
  // Without a reference of its own on purpose: the reference itself, what came before it, the base among stage starts.
  const anchor = compared?.reference === null;
  const problem = open.problems.get(label) ?? (scored && !anchor ? note?.message ?? null : null);
  const stale = checkpoint.status === "stale" ? checkpoint.reason : null;
  return {
    label,
    stage,
    state: !scored ? "missing" : anchor || note?.comparable !== false ? "scored" : "not-comparable",
    note: problem ?? stale ?? (scored ? null : checkpoint.reason ?? `${label} has not been scored on these prompts.`),
    isReference: label === selection.reference,
  };
}

function promptOf(row: DriftRow): DriftPrompt {
  return {
    row: row.row,
    line: row.line,
    prompt: promptText(row.prompt).replace(/\s+/g, " ").trim(),
    changes: row.cells.map(({ delta }) => (delta === null ? null : encodeNumber(-delta))),
    checks: row.cells.map(({ correct }) => markOf(correct)),
    worst: row.worst === null ? null : encodeNumber(-row.worst),
    withinNoise: row.withinNoise,
  };
}

function notesOf(table: DriftTable, checkpoints: readonly DriftCheckpoint[]): string[] {
  const notes = checkpoints.flatMap(({ label, note }) => (note === null ? [] : [`${label}: ${note}`]));
  if (table.rows.length > listLimit) notes.push(`Only the first ${listLimit} of ${table.rows.length} prompts are listed.`);
  const [skipped] = table.skipped;
  if (skipped !== undefined) notes.push(`${formatPlural(table.skipped.length, "row")} could not be scored (line ${skipped.line}: ${skipped.reason})`);
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
