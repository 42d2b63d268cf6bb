import type { TraceMeta } from "../../protocol/trace.ts";
import { comparableFields } from "../../protocol/trace.ts";
import { t } from "../../util/l10n.ts";

export interface MetaDifference {
  field: keyof TraceMeta;
  a: string;
  b: string;
  /** True: the numbers must not be compared. False: noted next to them. */
  blocking: boolean;
}

export interface Compatibility {
  comparable: boolean;
  differences: MetaDifference[];
  /** What to tell the person; null when there is nothing to tell. */
  message: string | null;
}

/** Fields that may differ but are shown next to every comparison (case L04). */
const notedFields = ["batch_size", "top_k", "device"] as const satisfies readonly (keyof TraceMeta)[];

/** What the person calls a field. */
const fieldNames: Partial<Record<keyof TraceMeta, string>> = {
  get tokenizer_hash() { return t("tokenizer"); },
  get template_hash() { return t("chat template"); },
  get probe_set_hash() { return t("probe set"); },
  get batch_size() { return t("batch size"); },
  get attention() { return t("attention kernel"); },
  get mask() { return t("answer mask"); },
  top_k: "top-k",
  get skill() { return t("skill"); },
  get split() { return t("split"); },
};

/** Whether two traces may be compared, and every setting in which they differ, by name. */
export function compatibility(a: TraceMeta, b: TraceMeta): Compatibility {
  const differences: MetaDifference[] = [];
  for (const [fields, blocking] of [[["skill", "split", ...comparableFields], true], [notedFields, false]] as const) {
    for (const field of fields) {
      if (a[field] !== b[field]) differences.push({ field, a: String(a[field]), b: String(b[field]), blocking });
    }
  }
  const blocking = differences.filter((difference) => difference.blocking);
  return { comparable: blocking.length === 0, differences, message: messageFor(blocking, differences) };
}

function messageFor(blocking: MetaDifference[], all: MetaDifference[]): string | null {
  if (all.length === 0) return null;
  if (blocking.length === 0) return t("Scored with other settings ({0}): small differences are numerical noise.", all.map(describe).join(", "));
  return t("Not comparable: {0}. Score both checkpoints again with the same settings.", blocking.map(describe).join(", "));
}

function describe(difference: MetaDifference): string {
  const name = fieldNames[difference.field] ?? difference.field;
  const isHash = difference.field.endsWith("_hash");
  return isHash ? t("the {0} differs", name) : t("{0} {1} against {2}", name, difference.a, difference.b);
}
