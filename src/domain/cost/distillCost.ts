import type { DataFacts } from "./dataFacts.ts";
import { estimateMemory, type MemoryEstimate, type MemoryInput } from "./memory.ts";
import type { ModelFacts } from "./modelFacts.ts";
import { answerTokens, multiplied, type WorkItem } from "./work.ts";

/** One way to get the teachers' distributions. */
export interface DistillVariant {
  memory: MemoryEstimate;
  /** Forward passes of all teachers. */
  teacherTokens: number;
  teacherFlops: number;
  /** What is stored; 0 where nothing is. */
  diskBytes: number;
  note: string;
}

export interface DistillCost {
  /** Teachers score what the student writes, step by step. */
  online: DistillVariant;
  /** Teachers answer every prompt once, and their `topK` likeliest tokens at every place are stored. */
  offline: DistillVariant;
  topK: number;
}

/** An id (int32) and a log-probability (float16) for each alternative, and the token itself (`runner/…/distillation/offline.py`). */
const storedBytes = (topK: number): number => 6 * topK + 4;

/** Both ways of a distillation. Online the teachers stay in memory; offline they are gone before the training starts, and disk takes their place. */
export function distillCost(input: MemoryInput, work: readonly WorkItem[], options: { teachers: readonly ModelFacts[]; data: DataFacts; topK: number }): DistillCost | null {
  const { teachers, data, topK } = options;
  if (teachers.length === 0 || input.settings.newTokens === null) return null;
  const online = work.filter(({ what, model }) => what === "forward" && model !== "reference");
  const sum = (pick: (item: WorkItem) => number): number => online.reduce((total, one) => total + pick(one), 0);
  const answer = answerTokens(input.settings.newTokens, data).nominal;
  // Once for each prompt, however often it comes back later: a teacher writes the answer, and scores what it wrote.
  const distinct = data.rows * (answer + data.prompt);
  const perToken = (4 * teachers.reduce((total, one) => total + multiplied(one), 0)) / teachers.length;
  const alone = { ...input, settings: { ...input.settings, offline: true, together: 0 }, others: { ...input.others, teachers: [] } };
  return {
    topK,
    online: { memory: estimateMemory(input), teacherTokens: sum((one) => one.tokens.nominal), teacherFlops: sum((one) => one.flops), diskBytes: 0, note: input.others.together ? "All teachers lie in memory beside the student." : "Teachers are loaded one after another: the largest decides." },
    offline: { memory: estimateMemory(alone), teacherTokens: distinct, teacherFlops: distinct * perToken, diskBytes: data.rows * answer * storedBytes(topK), note: `The student learns from the teachers' answers instead of its own, and from the ${topK} likeliest alternatives of each token.` },
  };
}
