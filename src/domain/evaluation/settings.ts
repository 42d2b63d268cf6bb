import { AppError } from "../../util/errors.ts";

/** Everything that decides a score besides the model. Fields that a kind of result does not have are absent on both sides. */
export interface EvaluationSettings {
  /** SHA-256 of the prompts. */
  prompts?: string;
  /** The verifier with its options, as JSON. */
  check?: string;
  template?: string;
  tokenizer?: string;
  /** `greedy`, or temperature, top-p and number of samples. */
  sampling?: string;
  max_tokens?: number;
  /** What cuts the answer out of the text. */
  filter?: string;
  /** Examples in the prompt. */
  shots?: number;
  /** Version of the task. */
  task?: string;
  harness?: string;
  engine?: string;
  dtype?: string;
  attention?: string;
  mask?: string;
}

const names: Readonly<Record<keyof EvaluationSettings, { name: string; hash?: true }>> = {
  prompts: { name: "prompt set", hash: true },
  check: { name: "check" },
  template: { name: "chat template", hash: true },
  tokenizer: { name: "tokenizer", hash: true },
  sampling: { name: "sampling" },
  max_tokens: { name: "longest answer in tokens" },
  filter: { name: "answer filter" },
  shots: { name: "number of examples in the prompt" },
  task: { name: "version of the task" },
  harness: { name: "version of the harness" },
  engine: { name: "engine" },
  dtype: { name: "precision" },
  attention: { name: "attention kernel" },
  mask: { name: "answer mask" },
};

export interface SettingDifference {
  field: keyof EvaluationSettings;
  a: string;
  b: string;
}

/** The fields in which two settings differ, in the order of the list above. */
export function settingDifferences(a: EvaluationSettings, b: EvaluationSettings): SettingDifference[] {
  return (Object.keys(names) as (keyof EvaluationSettings)[]).filter((field) => a[field] !== b[field]).map((field) => ({ field, a: String(a[field] ?? "not said"), b: String(b[field] ?? "not said") }));
}

/** The sentence that refuses a comparison, or null where the settings agree (case S05: settings are compared before scores). */
export function refusalOf(differences: readonly SettingDifference[], what: string): string | null {
  if (differences.length === 0) return null;
  const list = differences.map(({ field, a, b }) => (names[field].hash ? `the ${names[field].name} differs` : `${names[field].name} ${a} against ${b}`));
  return `${what} is not comparable: ${list.join(", ")}. Score both with the same settings.`;
}

/** Throws AppError("not-comparable") with the fields that differ. */
export function mustCompare(a: EvaluationSettings, b: EvaluationSettings, what: string): void {
  const refusal = refusalOf(settingDifferences(a, b), what);
  if (refusal !== null) throw new AppError("not-comparable", refusal);
}
