import type { FlagState } from "./journal.ts";
import type { WireNumber } from "./numbers.ts";
import type { Split } from "./runSpec.ts";

/**
 * Everything the Token Drift page and the extension host can say to each other. The page says `ready`, the host answers
 * with a snapshot and from then on sends patches; a page that was hidden is built anew and says `ready` again.
 */
export type ToWebview =
  | { type: "snapshot"; seq: number; state: DriftSnapshot }
  /** Replaces whole fields of the snapshot; `seq` counts on from it. */
  | { type: "patch"; seq: number; patch: Partial<DriftSnapshot> };

/** Asks for what the page shows as a PNG, whenever that is; `turn` comes back with it. */
export interface PictureRequest {
  type: "picture";
  turn: number;
  about: PictureAbout;
}

/** What a picture says that the page does not know: a title, lines under it, and where all of it comes from. */
export interface PictureAbout {
  title: string;
  about: string[];
  notes: string[];
}

export type FromWebview =
  /** `selection`: what the page remembers from before it was hidden. */
  | { type: "ready"; selection: DriftSelection | null }
  /** The page noticed a gap in `seq`. */
  | { type: "resync" }
  /** `turn` counts the page's choices, so that it knows which of them an answer is for. */
  | { type: "select"; selection: DriftSelection; turn: number }
  | { type: "openRow"; row: number }
  /** Of rows scored live: at which one, and at which part of it, the person looks. */
  | { type: "lookLive"; row: number; token: number | null }
  /** Back to the recorded prompts; a scoring that still runs ends. */
  | { type: "leaveLive" }
  | { type: "run"; action: DriftAction }
  /** `png` null: there was nothing to draw, or `problem` says what failed. */
  | { type: "picture"; turn: number; png: Uint8Array | null; problem: string | null }
  /** Something in the page failed: for the log. */
  | { type: "error"; message: string };

/** What an empty or error state may offer. Each is one command of the extension. */
export type DriftAction = "runStage" | "openPipeline" | "showLog" | "openReportCard";

/** `"start"`: every checkpoint against the one its stage started from. Otherwise a checkpoint label (`M1`) for all. */
export type DriftReference = string;

/** What the person chose; null means: the first that there is. */
export interface DriftSelection {
  /** Path of `seesaw.yaml`. */
  pipeline: string | null;
  skill: string | null;
  split: Split | null;
  reference: DriftReference | null;
  row: number | null;
  /** In a long reference: the token around which the film is cut. Null: the one that fell most. */
  token: number | null;
}

export interface DriftSnapshot {
  /** Set instead of data when there is nothing to show. */
  empty: DriftEmpty | null;
  /** The page's choice that this answers; 0: none. */
  turn: number;
  selection: DriftSelection;
  choices: DriftChoices;
  checkpoints: DriftCheckpoint[];
  /** Most drifted first. */
  prompts: DriftPrompt[];
  /** What the list does not show, and why: skipped rows, checkpoints that cannot be compared. */
  notes: string[];
  film: DriftFilm | null;
  /** While it is set, checkpoints, prompts, notes and film are those of rows scored live, and none of a recorded run. */
  live: DriftLive | null;
  /** The chosen skill over the whole chain; null when nothing of it was scored or checked. */
  chart: DriftChart | null;
  /** True while the host computes what was selected last. */
  busy: boolean;
}

/** Rows of a dataset file that were scored live, as they stand in the editor. */
export interface DriftLive {
  /** The dataset file, as a person names it. */
  file: string;
  /** Line of the row that is looked at. */
  line: number;
  /** True when the file has changes that are not saved. */
  edited: boolean;
  /** The first words of the prompt. */
  prompt: string;
  /** The checkpoints it is scored under: `M0`, `M1` … */
  checkpoints: string[];
  /** Which of the prompts is looked at: one row needs no list. */
  row: number;
  /** Scorings done and all of them, a row under a checkpoint each; null when it is over. */
  progress: { done: number; of: number } | null;
}

/** A sentence that says why there is nothing, and what to do. */
export interface DriftEmpty {
  kind: "none" | "error";
  title: string;
  detail: string;
  actions: { label: string; action: DriftAction }[];
}

export interface DriftChoices {
  pipelines: { value: string; label: string }[];
  skills: { value: string; label: string; flag: string | null }[];
  splits: { value: Split; label: string }[];
  references: { value: DriftReference; label: string }[];
}

export interface DriftCheckpoint {
  /** `M2` */
  label: string;
  /** Stage that ends here; null for the base model. */
  stage: string | null;
  state: "scored" | "missing" | "not-comparable";
  /** Why it is missing or not comparable, or that it is stale. */
  note: string | null;
  isReference: boolean;
  /** Index of the checkpoint this one is compared with; null: with none. */
  against: number | null;
}

/** One skill over the whole chain: what the report draws, as data. `x` counts steps since M0. */
export interface DriftChart {
  skill: string;
  /** The stage that trains the skill; null when there is none of its name. */
  ownStage: string | null;
  stages: { stage: string; label: string; from: number; to: number }[];
  splits: { split: Split; accuracy: ChartPoint[]; logprob: ChartPoint[] }[];
  /** `facts`: what a raised flag means. */
  flags: { x: number; state: FlagState; title: string; text: string; facts: { label: string; text: string }[] }[];
  /** There is a report card to open. */
  card: boolean;
}

/** Accuracy as a share with its 95 % interval, or the mean change of the reference answers' log-probability since M0, in nats. */
export interface ChartPoint {
  x: number;
  y: WireNumber;
  low: number | null;
  high: number | null;
  /** `M2` at the end of a stage, else `search 20`. */
  label: string;
}

/** Marks and changes are one per checkpoint, in the order of `checkpoints`. */
export interface DriftPrompt {
  row: number;
  /** 1-based line in the probe file. */
  line: number;
  /** Last user turn, as text on one line, shortened. */
  prompt: string;
  /** Change of the reference's log-probability in nats (−ΔNLL); null: not scored there, or the reference itself. */
  changes: (WireNumber | null)[];
  checks: CheckMark[];
  /** The largest fall over the checkpoints; null when nothing can be compared. */
  worst: WireNumber | null;
  /** True when no change is beyond the noise floor. */
  withinNoise: boolean;
}

export type CheckMark = "passed" | "failed" | "not-run";

/** One prompt, token by token, under every checkpoint. */
export interface DriftFilm {
  row: number;
  line: number;
  prompt: string;
  /** The reference answer, shortened: what a greedy answer is held against where no other answer is there. */
  reference: string;
  /** Index of the first token that is shown, and how many the reference has: a long one is shown in parts. */
  from: number;
  total: number;
  tokens: FilmToken[];
  rows: FilmRow[];
}

export interface FilmToken {
  /** As shown: blanks and control characters are visible. */
  display: string;
  segment: string | null;
  /** True for the second and later parts of a character: shown close to the one before. */
  continues: boolean;
}

export interface FilmRow {
  /** Index in `checkpoints`. */
  checkpoint: number;
  /** One per token; null where this checkpoint was not scored, and then `note` says why. */
  cells: FilmCell[] | null;
  /** Why there is nothing, or what differs in the settings of the two scorings. */
  note: string | null;
  check: CheckMark;
  generated: string | null;
  /** UTF-16 offset at which the generated text leaves the reference's; null: the same, or no text. */
  diverges: number | null;
}

export type TokenClass = "kept" | "weakened" | "lost";

export interface FilmCell {
  logprob: WireNumber;
  /** Change of the log-probability against the reference; null for the reference itself. */
  change: WireNumber | null;
  /** 1 = most likely. */
  rank: number;
  entropy: WireNumber;
  tokenClass: TokenClass;
  /** False within the noise floor: then nothing is coloured, whatever the class. */
  coloured: boolean;
  /** What the checkpoint would rather write, most likely first. */
  top: { text: string; probability: number; isReference: boolean }[];
}

export const emptySelection: DriftSelection = { pipeline: null, skill: null, split: null, reference: null, row: null, token: null };
