import { AppError } from "../util/errors.ts";
import { t } from "../util/l10n.ts";
import { run } from "./spawn.ts";

/** One finding of `seesaw_runner.preflight`. */
export interface PreflightFinding {
  code: string;
  severity: "info" | "warning" | "error";
  message: string;
  fix?: string;
  where?: string;
}

const timeoutMs = 120_000;

/** Checks a frozen spec in its own Python, without importing torch. Errors throw one AppError; the rest comes back as sentences. */
export async function preflight(
  python: string,
  runnerDir: string,
  specFile: string,
  env: Record<string, string>,
  signal?: AbortSignal,
): Promise<string[]> {
  const result = await run([python, "-m", "seesaw_runner.preflight", specFile, "--json"], {
    cwd: runnerDir,
    env: { ...process.env, ...env },
    timeout: timeoutMs,
    ...(signal ? { signal } : {}),
  });
  const sentences = judgeFindings(result.stdout);
  if (sentences !== null) return sentences;
  const last = result.stderr.trim().split("\n").at(-1) ?? "";
  const how = result.timedOut ? t("no answer in time") : t("exit code {0}", String(result.code));
  throw new AppError("agent-failed", t("The preflight check of {0} gave no answer ({1}){2}.", python, how, last ? `: ${last.slice(0, 400)}` : ""));
}

/** The findings among what a preflight printed, as sentences; its errors throw one AppError. null: it gave no answer. */
export function judgeFindings(stdout: string): string[] | null {
  const findings = parseFindings(stdout);
  if (findings === null) return null;
  const ended = (text: string): string => (/[.!?]$/.test(text) ? text : `${text}.`);
  const sentence = ({ message, fix, where }: PreflightFinding): string => [where ? `${where}: ${message}` : message, fix ?? ""].filter(Boolean).map(ended).join(" ");
  const errors = findings.filter((finding) => finding.severity === "error");
  if (errors.length === 0) return findings.map(sentence);
  const packages = errors.some(({ code }) => /package|python/.test(code));
  const disk = errors.some(({ code }) => code.includes("disk"));
  throw new AppError(packages ? "python-packages" : disk ? "disk-full" : "bad-input", errors.map(sentence).join("\n"));
}

/** The list of findings among whatever else was printed; null when there is none. */
export function parseFindings(stdout: string): PreflightFinding[] | null {
  for (const match of stdout.matchAll(/^\[/gm)) {
    try {
      const value: unknown = JSON.parse(stdout.slice(match.index, stdout.lastIndexOf("]") + 1));
      if (Array.isArray(value)) return value as PreflightFinding[];
    } catch {
      // a bracket of something else
    }
  }
  return null;
}
