/**
 * `router-report.json` in the run folder of a `router` stage, as far as others than the router read it. Written by the runner;
 * fields may be missing in older ones and further ones may come.
 */
export interface RouterReport {
  /** The rule router, always measured. */
  rule: RouterScore | null;
  /** The router trained by reinforcement; null where none was trained. */
  policy: RouterScore | null;
  /** Which of them the stage keeps. */
  chosen: "rule" | "policy" | null;
  /** Right answers under the policy − under the rule in percentage points, paired by prompt, with its 95 % interval. */
  difference: { estimate: number; low: number; high: number } | null;
  /** Points by which the policy must be better to be kept. */
  margin: number | null;
}

export interface RouterScore {
  /** `tag`, `keywords`, `tfidf`; `reinforce`, `grpo`. */
  kind: string;
  /**
   * Share of right answers, by set: `id`, `ood`, `paraphrase`: of each prompt the answer of the expert that this router sends
   * it to (or, with soft weights, of the mixture) passes its skill's check. Not the share of prompts that it sends to their own
   * skill's expert: that is `routing` of the file.
   */
  accuracy: Record<string, number>;
}

/** Reads what is there; null for a text that is no report at all. */
export function parseRouterReport(text: string): RouterReport | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  const report = objectOf(value);
  if (report === null) return null;
  const chosen = report["chosen"];
  return {
    rule: scoreOf(report["rule"]),
    policy: scoreOf(report["policy"]),
    chosen: chosen === "rule" || chosen === "policy" ? chosen : null,
    difference: differenceOf(report["difference"]),
    margin: numberOf(report["margin"]),
  };
}

function scoreOf(value: unknown): RouterScore | null {
  const score = objectOf(value);
  if (score === null) return null;
  const kind = score["kind"] ?? score["algorithm"];
  const accuracy = score["accuracy"];
  const single = numberOf(accuracy);
  const bySet = single !== null ? { id: single } : Object.fromEntries(Object.entries(objectOf(accuracy) ?? {}).flatMap(([set, one]) => {
    // A set may tell its accuracy beside its interval and number of prompts.
    const share = numberOf(one) ?? numberOf(objectOf(one)?.["accuracy"]) ?? numberOf(objectOf(one)?.["estimate"]);
    return share === null ? [] : [[set, share] as const];
  }));
  return { kind: typeof kind === "string" ? kind : "", accuracy: bySet };
}

function differenceOf(value: unknown): RouterReport["difference"] {
  const found = objectOf(value);
  const [estimate, low, high] = [found?.["estimate"], found?.["low"], found?.["high"]].map(numberOf);
  return estimate == null || low == null || high == null ? null : { estimate, low, high };
}

function objectOf(value: unknown): Record<string, unknown> | null {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : null;
}

function numberOf(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}
