import { mostLooks } from "./alarmText.ts";

/** One run of the battery as the harness writes it (runner/battery, one gzip JSON a run): every number that any detector or baseline may use, and the truth. */

export const banks = ["A", "B", "C"] as const;
export type BankName = (typeof banks)[number];

/** What was done to the model. The truth, not the kind, says whether a run is healthy. */
export const runKinds = ["sft", "lora", "dpo", "grpo", "replay", "style", "temperature", "improve", "continue", "copy"] as const;
export type RunKind = (typeof runKinds)[number];

/** Scores of a skill's probe panel: by look, then by row. */
export interface RawPanel {
  nll: number[][];
  margin: number[][];
  decision: number[][];
  /** Of each look: "1" where the row's generated answer passed the check. */
  right: string[];
  /** Mean exact KL(start ‖ now) per token, of each look. */
  kl: number[];
}

export interface RawRun {
  v: 1;
  id: string;
  bank: BankName;
  base: string;
  kind: RunKind;
  /** What it is trained on. */
  task?: string;
  /** What it was made for. */
  intent: "forgetting" | "healthy";
  seed: number;
  rate: number;
  start: string;
  steps: number;
  /** Steps, the start (0) first. */
  looks: number[];
  /** Skills that are watched: there at the start. */
  skills: string[];
  panel: Record<string, RawPanel>;
  /** The start scored a second time, with another batch size, order and padding. */
  again: Record<string, { nll: number[]; margin: number[]; decision: number[] }>;
  oracle: Record<string, string[]>;
  /** null where the benchmark did not run. */
  bench: Record<string, (string | null)[]>;
  run: { loss: (number | null)[]; val_loss: (number | null)[]; kl_new: (number | null)[]; drift: (number | null)[] };
  /** Processor seconds. `panel`: scoring it at every look; `panel_answers`: generating its answers, which only baselines need. */
  seconds: { train: number; panel: number; panel_answers: number; oracle: number; bench: number };
  /** Tokens of all looks at the panel, and of its verified answers at one look. */
  tokens: { panel: number; panel_scored: number };
}

/** Fewest rows of the oracle: below it a loss of five points cannot be told from one of two. */
export const fewestOracleRows = 500;

/** The run if it is whole; else a sentence that says what is missing. Nothing is repaired: a damaged run is left out and named. */
export function readRawRun(value: unknown): RawRun | string {
  if (typeof value !== "object" || value === null) return "The file holds no JSON object.";
  const raw = value as RawRun;
  if (raw.v !== 1) return `The file has version ${String(raw.v)}; this report reads version 1.`;
  if (typeof raw.id !== "string" || !banks.includes(raw.bank)) return "The run has no id or names no bank (A, B or C).";
  if (!runKinds.includes(raw.kind)) return `The kind "${String(raw.kind)}" is none of ${runKinds.join(", ")}.`;
  if (!Array.isArray(raw.looks) || raw.looks.length < 3 || raw.looks[0] !== 0) return "The run needs at least two looks after step 0.";
  if (raw.looks.length > mostLooks) return `The run has ${raw.looks.length} looks; at most ${mostLooks} can be kept.`;
  if (raw.looks.some((step, index) => index > 0 && step <= (raw.looks[index - 1] as number))) return "The looks' steps do not rise.";
  if (!Array.isArray(raw.skills) || raw.skills.length === 0) return "The run watches no skill: none was there at the start.";
  for (const skill of raw.skills) {
    const fault = faultOfSkill(raw, skill);
    if (fault !== null) return `Skill ${skill}: ${fault}`;
  }
  for (const name of ["loss", "val_loss", "kl_new", "drift"] as const) {
    if (raw.run?.[name]?.length !== raw.looks.length) return `run.${name} does not have one number for each look.`;
  }
  const { seconds, tokens } = raw;
  if (![seconds?.train, seconds?.panel, seconds?.panel_answers, seconds?.bench, tokens?.panel, tokens?.panel_scored].every(Number.isFinite)) return "The seconds and tokens of the run are missing.";
  return raw;
}

function faultOfSkill(raw: RawRun, skill: string): string | null {
  const looks = raw.looks.length;
  const [panel, again, oracle, bench] = [raw.panel?.[skill], raw.again?.[skill], raw.oracle?.[skill], raw.bench?.[skill]];
  if (panel === undefined || again === undefined || oracle === undefined || bench === undefined) return "panel, again, oracle or bench is missing.";
  for (const name of ["nll", "margin", "decision"] as const) {
    if (panel[name]?.length !== looks) return `panel.${name} does not have one list for each look.`;
    const rows = again[name]?.length ?? 0;
    if (rows < 32 || panel[name].some((list) => list.length !== rows)) return `panel.${name} and again.${name} do not have the same rows, at least 32.`;
    if (![...panel[name], again[name]].every((list) => list.every(Number.isFinite))) return `panel.${name} or again.${name} holds something that is not a number.`;
  }
  if (panel.right?.length !== looks || panel.kl?.length !== looks) return "panel.right or panel.kl does not have one entry for each look.";
  if (!sameLength(panel.right)) return "panel.right does not have the same rows at every look.";
  if (oracle.length !== looks || !sameLength(oracle)) return "the oracle does not have the same rows at every look.";
  if ((oracle[0] as string).length < fewestOracleRows) return `the oracle has fewer than ${fewestOracleRows} rows.`;
  if (bench.length !== looks || bench[0] === null || !sameLength(bench.filter((bits) => bits !== null))) return "the benchmark has no start, or not the same rows wherever it ran.";
  return null;
}

/** Whether all are texts of zeros and ones of one length. */
function sameLength(texts: readonly string[]): boolean {
  return texts.every((text) => /^[01]+$/.test(text) && text.length === (texts[0] as string).length);
}
