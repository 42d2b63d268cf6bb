import { t } from "../util/l10n.ts";
import type { RunResult } from "./spawn.ts";

/** What `runner/probe.py` prints. */
export interface ProbeAnswer {
  version: string;
  executable: string;
  prefix: string;
  packages: Record<string, string | null>;
}

/** Finds the answer among whatever start-up files, banners and wrappers printed around it; null when there is none. */
export function parseProbe(stdout: string): ProbeAnswer | null {
  for (const line of stdout.split("\n").reverse()) {
    const start = line.indexOf('{"seesaw_probe"');
    if (start < 0) continue;
    try {
      const value = JSON.parse(line.slice(start, line.lastIndexOf("}") + 1)) as Partial<ProbeAnswer>;
      if (typeof value.version === "string" && typeof value.executable === "string" && typeof value.packages === "object") {
        return { version: value.version, executable: value.executable, prefix: value.prefix ?? "", packages: value.packages ?? {} };
      }
    } catch {
      // a torn line: look further up
    }
  }
  return null;
}

/** One sentence for a Python that did not answer the probe; says what is wrong with the environment, not with a training. */
export function explainPythonFailure(
  place: { command: string; how: string },
  result: Pick<RunResult, "code" | "signal" | "stderr" | "timedOut">,
): string {
  const who = `${place.command} (${place.how})`;
  const text = result.stderr;
  if (result.timedOut) return t("{0} did not answer in time: start it once by hand to see what it waits for, or choose another Python.", who);
  if (/conda: command not found|CommandNotFoundError|not been properly configured to use 'conda activate'/.test(text)) {
    return t("{0}: conda is not set up in non-interactive shells here; give the full path of the environment's python.", who);
  }
  const module = /ModuleNotFoundError: No module named '([^']+)'/.exec(text);
  if (module) return t("{0} is missing in {1}: install it there, or choose another Python.", module[1] ?? "", place.command);
  if (/python3?: (command )?not found|pyenv: \S*python\S*: command not found/.test(text)) {
    return t("{0}: there is no python on PATH for this host; give the full path of one.", who);
  }
  const last = text.trim().split("\n").at(-1)?.slice(0, 300) ?? "";
  const how = result.signal === null ? t("exit code {0}", String(result.code)) : t("signal {0}", result.signal);
  return t("{0} is no usable Python ({1}{2}): choose another with --python or the setting seesaw.python.path.", who, how, last ? `: ${last}` : "");
}
