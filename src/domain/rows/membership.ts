import { t } from "../../util/l10n.ts";

/** A row of `buffer.json`. */
export interface BufferRow {
  hash: string;
  prompt_hash: string | null;
  answer_hash: string | null;
  source: string;
  line: number;
  since: string;
  /** How similar its prompt is to the nearest row that `near` names, where it was taken for that. */
  near?: number;
}

/** A line of `ledger.jsonl` with draws; or the first line of an attempt, which voids the draws after `resumed_from`. */
export type LedgerLine = { step: number; buffer: string; draws: [hash: string, count: number][] } | { resumed_from: number | null };

/** What one run says about replay. */
export interface ReplayRecord {
  run: string;
  stage: string;
  buffer: string;
  rows: BufferRow[];
  ledger: LedgerLine[];
  /** How many rows were left out for what reason, and of each stage kept and taken; absent in files that do not say. */
  dropped?: { quality: number; duplicate: number; probe: number };
  sources?: { stage: string; rows: number; kept: number; taken: number; quota?: number }[];
  coverage?: BufferCoverage[];
  nearness?: BufferNearness[];
}

/** How far the rows of a stage that a buffer left out are from the nearest one it kept: 0 alike, 1 nothing in common. */
export interface BufferCoverage {
  stage: string;
  method: string;
  features: string;
  mean: number;
  max: number;
  /** The same, had the seed chosen by chance. */
  random: { mean: number; max: number };
}

/** How similar prompts of a stage are to the nearest row that `near` names: those taken for it, and as the seed would have chosen. */
export interface BufferNearness {
  stage: string;
  rows: number;
  mean: number;
  random: { mean: number };
}

/** One row's part in one buffer of one run. */
export interface Membership {
  buffer: string;
  /** The stage that brought the row in. */
  since: string;
  run: string;
  /** The stage that replays it. */
  stage: string;
  draws: number;
  firstStep: number | null;
  lastStep: number | null;
  row: BufferRow;
}

/** How a row of a data file is related to a buffer's row. */
export type MembershipRelation = "same-row" | "same-text" | "same-prompt" | "same-answer";

export interface RowHashRef {
  line: number;
  full: string | null;
  prompt?: string | null | undefined;
  answer?: string | null | undefined;
}

export interface RowMembership {
  line: number;
  relation: MembershipRelation;
  memberships: Membership[];
  label: string;
}

/** The draws that count: an attempt that resumed threw the later steps of earlier attempts away (`ledger.py` has the same rule). */
export function validDraws(ledger: readonly LedgerLine[]): Extract<LedgerLine, { step: number }>[] {
  let draws: Extract<LedgerLine, { step: number }>[] = [];
  for (const line of ledger) {
    if ("resumed_from" in line) draws = draws.filter(({ step }) => step <= (line.resumed_from ?? 0));
    else draws.push(line);
  }
  return draws;
}

/** Which rows are in which buffers, by their hashes. */
export class ReplayMembership {
  private readonly byFull = new Map<string, Membership[]>();
  private readonly byPrompt = new Map<string, Membership[]>();
  private readonly byAnswer = new Map<string, Membership[]>();

  constructor(records: readonly ReplayRecord[]) {
    for (const record of records) this.add(record);
  }

  get size(): number {
    return this.byFull.size;
  }

  /** Full hashes of all members. */
  hashes(): string[] {
    return [...this.byFull.keys()];
  }

  /** Memberships of the row with this full hash. */
  of(full: string): readonly Membership[] {
    return this.byFull.get(full) ?? [];
  }

  withPrompt(prompt: string): readonly Membership[] {
    return this.byPrompt.get(prompt) ?? [];
  }

  withAnswer(answer: string): readonly Membership[] {
    return this.byAnswer.get(answer) ?? [];
  }

  /** The closest relation of a row to any buffer; null where there is none. */
  relate(row: RowHashRef): RowMembership | null {
    const same = row.full === null ? [] : this.of(row.full);
    if (same.length > 0) return related(row.line, "same-row", same);
    const prompts = typeof row.prompt === "string" ? this.withPrompt(row.prompt) : [];
    const texts = prompts.filter((member) => member.row.answer_hash === (row.answer ?? null));
    if (texts.length > 0) return related(row.line, "same-text", texts);
    if (prompts.length > 0) return related(row.line, "same-prompt", prompts);
    const answers = typeof row.answer === "string" ? this.withAnswer(row.answer) : [];
    return answers.length > 0 ? related(row.line, "same-answer", answers) : null;
  }

  private add({ run, stage, buffer, rows, ledger }: ReplayRecord): void {
    const members = new Map<string, Membership>();
    for (const row of rows) {
      const member: Membership = { buffer, since: row.since, run, stage, draws: 0, firstStep: null, lastStep: null, row };
      members.set(row.hash, member);
      push(this.byFull, row.hash, member);
      if (row.prompt_hash !== null) push(this.byPrompt, row.prompt_hash, member);
      if (row.answer_hash !== null) push(this.byAnswer, row.answer_hash, member);
    }
    for (const { step, draws } of validDraws(ledger)) {
      for (const [hash, count] of draws) {
        const member = members.get(hash);
        if (member === undefined) continue;
        member.draws += count;
        member.firstStep = Math.min(member.firstStep ?? step, step);
        member.lastStep = Math.max(member.lastStep ?? step, step);
      }
    }
  }
}

/** Rows of a data file that have to do with replay, with what to write beside them. */
export function joinMembership(rows: Iterable<RowHashRef>, membership: ReplayMembership): RowMembership[] {
  const result: RowMembership[] = [];
  for (const row of rows) {
    const found = membership.relate(row);
    if (found !== null) result.push(found);
  }
  return result;
}

/** `replay: main since search · drawn 14×`; several runs are named by their stage. */
export function membershipLabel(memberships: readonly Membership[]): string {
  const groups = new Map<string, Membership[]>();
  for (const member of memberships) push(groups, t("{0} since {1}", member.buffer, member.since), member);
  return [...groups].map(([name, members]) => t("replay: {0} · {1}", name, drawnText(members))).join("; ");
}

/** First of all that another row is meant: its draws are not this row's. */
const relationNotes: Record<MembershipRelation, string> = {
  "same-row": "",
  get "same-text"() { return t("same text, other fields → "); },
  get "same-prompt"() { return t("same prompt, other answer → "); },
  get "same-answer"() { return t("same answer, other prompt → "); },
};

function related(line: number, relation: MembershipRelation, memberships: readonly Membership[]): RowMembership {
  return { line, relation, memberships: [...memberships], label: relationNotes[relation] + membershipLabel(memberships) };
}

function drawnText(members: readonly Membership[]): string {
  const drawn = members.filter(({ draws }) => draws > 0);
  if (drawn.length === 0) return t("not drawn yet");
  if (members.length === 1) return t("drawn {0}×", drawn[0]?.draws ?? 0);
  return t("drawn {0}", drawn.map(({ draws, stage }) => t("{0}× in {1}", draws, stage)).join(", "));
}

function push<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const list = map.get(key);
  if (list === undefined) map.set(key, [value]);
  else list.push(value);
}
