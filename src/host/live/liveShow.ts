import { leastNoise, sequenceNoise } from "../../domain/drift/tokenClasses.ts";
import { decodeNumber, encodeNumber } from "../../protocol/numbers.ts";
import type { DriftCheckpoint, DriftPrompt, DriftSnapshot } from "../../protocol/webview.ts";
import { t } from "../../util/l10n.ts";
import { liveFilm } from "./liveFilm.ts";
import type { PlannedCheckpoint } from "./livePlan.ts";
import type { NoiseFloor } from "./noiseFloor.ts";
import type { LiveRow } from "./scoreRows.ts";

/** Rows scored live, or on their way: what Token Drift shows in place of a recorded run until the person goes back. */
export interface LiveShow {
  file: string;
  /** The file as a person names it. */
  name: string;
  edited: boolean;
  checkpoints: readonly PlannedCheckpoint[];
  rows: readonly LiveRow[];
  /** Scorings done and all of them; null when it is over. */
  progress: { done: number; of: number } | null;
  /** Why no row has scores. */
  failure: string | null;
  /** Null: the project has recorded none. */
  noise: NoiseFloor | null;
  /** Rows that were selected; more than `rows` when they were too many. */
  selected: number;
}

/** Which of the rows is looked at, and what a long answer is cut around. */
export interface LiveLook {
  row: number;
  token: number | null;
}

/** The part of a page's state that live rows take over. The film belongs to the rows that it came with, never to others. */
export function livePart(show: LiveShow, { row: wanted, token }: LiveLook): Pick<DriftSnapshot, "live" | "empty" | "checkpoints" | "prompts" | "notes" | "film"> {
  const row = Math.min(wanted, show.rows.length - 1);
  const looked = show.rows[row];
  const failure = show.failure ?? (show.progress === null && show.rows.length === 1 && looked?.strip === null ? looked.notes[0] ?? null : null);
  return {
    live: {
      file: show.name,
      line: looked?.line ?? 1,
      edited: show.edited,
      prompt: looked?.prompt ?? "",
      checkpoints: show.checkpoints.map(({ label }) => label),
      row,
      progress: show.progress,
    },
    empty: failure === null ? null : { kind: "error", title: t("This row cannot be scored"), detail: failure, actions: [] },
    checkpoints: show.checkpoints.map((checkpoint) => describe(checkpoint, show, row)),
    prompts: show.rows.map((one, index) => promptOf(one, index, show)).sort((a, b) => fallOf(a) - fallOf(b) || 0),
    notes: show.progress === null && failure === null ? notesOf(show, looked) : [],
    film: looked?.strip == null ? null : liveFilm(looked.strip, row, token),
  };
}

function describe({ label, stage, against }: PlannedCheckpoint, { checkpoints, rows }: LiveShow, row: number): DriftCheckpoint {
  const frame = rows[row]?.strip?.frames.find((one) => one.label === label);
  const place = checkpoints.findIndex((one) => one.label === against);
  const scored = frame?.cells != null;
  return { label, stage, state: scored ? "scored" : "missing", note: frame?.why ?? frame?.note ?? null, isReference: false, against: scored && frame.delta !== null && place >= 0 ? place : null };
}

function promptOf({ line, prompt, strip }: LiveRow, row: number, { checkpoints, noise }: LiveShow): DriftPrompt {
  const deltas = strip?.frames.map(({ delta }) => (delta === null || Number.isNaN(delta) ? null : delta)) ?? checkpoints.map(() => null);
  const known = deltas.flatMap((delta) => delta ?? []);
  const meta = noise === null ? {} : { noise };
  const floor = sequenceNoise(meta, meta);
  return {
    row,
    line,
    prompt,
    changes: deltas.map((delta) => (delta === null ? null : encodeNumber(-delta))),
    checks: deltas.map(() => "not-run"),
    worst: known.length === 0 ? null : encodeNumber(-Math.max(...known)),
    withinNoise: known.every((delta) => Math.abs(delta) <= floor),
  };
}

/** For the order: the most drifted first, what cannot be compared last. */
function fallOf({ worst }: DriftPrompt): number {
  return decodeNumber(worst) ?? Infinity;
}

function notesOf({ checkpoints, rows, selected, noise }: LiveShow, looked: LiveRow | undefined): string[] {
  return [
    ...(looked?.notes ?? []),
    ...checkpoints.flatMap(({ label, stale }) => (stale === null ? [] : [`${label}: ${stale}`])),
    ...(noise === null ? [t("No noise floor is known, because no run has recorded one: falls of more than {0} nats can be coloured.", leastNoise)] : []),
    ...(selected > rows.length ? [t("Only the first {0} of {1} selected rows were scored.", rows.length, selected)] : []),
  ];
}
