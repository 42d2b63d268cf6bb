import type { FlagNews } from "../../domain/run/flagNews.ts";
import { decodeNumber } from "../../protocol/numbers.ts";
import { messageOf } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";

/** What a webhook is told: names and numbers, never a path, a token or a prompt. */
export interface WebhookBody {
  v: 1;
  run: string;
  stage: string;
  skill: string;
  split: string;
  state: string;
  step: number;
  /** Accuracy by the check at the stage's start and now, and the expected loss in points where the detector tells it. */
  accuracy: { start: number; now: number; n: number } | null;
  points: { estimate: number; low: number; high: number } | null;
}

const patienceMs = 10_000;

/** Why an address cannot be a webhook, as a sentence; null when it can. */
export function webhookProblem(address: string): string | null {
  if (!URL.canParse(address)) return t("This is no address: write one that begins with https://.");
  const { protocol, hostname, username, password } = new URL(address);
  const loopback = hostname === "localhost" || hostname === "[::1]" || /^127(\.\d{1,3}){3}$/.test(hostname);
  if (protocol !== "https:" && !(protocol === "http:" && loopback)) return t("Only https is used, or http to this machine itself: anybody on the way could read the rest.");
  return username !== "" || password !== "" ? t("A name and a password in front of the host are not sent: put the secret into the path, as most services do.") : null;
}

export function webhookBody({ run, flag }: FlagNews): WebhookBody {
  const { skill, split, state, step, test } = flag;
  const points = "points" in flag ? numbersOf(flag.points) : null;
  return { v: 1, run: run.id, stage: run.stage, skill, split, state, step, accuracy: test === undefined ? null : { start: test.accuracy_start, now: test.accuracy_now, n: test.n }, points };
}

/** Sends it; the sentence that says why it did not arrive, without the address, which is a secret; null when it did. */
export async function postWebhook(address: string, body: WebhookBody, ms = patienceMs): Promise<string | null> {
  const problem = webhookProblem(address);
  if (problem !== null) return problem;
  try {
    // A redirect would carry the message to somewhere nobody named.
    const { ok, status } = await fetch(address, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body), redirect: "error", signal: AbortSignal.timeout(ms) });
    return ok ? null : t("It answered with status {0}.", status);
  } catch (error) {
    const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
    return t("It could not be reached: {0}.", messageOf(cause).replaceAll(address, "…").replace(/\.$/, ""));
  }
}

function numbersOf(points: unknown): WebhookBody["points"] {
  if (typeof points !== "object" || points === null) return null;
  const { estimate, low, high } = Object.fromEntries(Object.entries(points).map(([key, value]) => [key, decodeNumber(value as never)]));
  return [estimate, low, high].every((value) => value !== undefined && Number.isFinite(value)) ? { estimate: estimate as number, low: low as number, high: high as number } : null;
}
