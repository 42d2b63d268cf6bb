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
  if (result.timedOut) return `${who} did not answer in time: start it once by hand to see what it waits for, or choose another Python.`;
  if (/conda: command not found|CommandNotFoundError|not been properly configured to use 'conda activate'/.test(text)) {
    return `${who}: conda is not set up in non-interactive shells here; give the full path of the environment's python.`;
  }
  const module = /ModuleNotFoundError: No module named '([^']+)'/.exec(text);
  if (module) return `${module[1]} is missing in ${place.command}: install it there, or choose another Python.`;
  if (/python3?: (command )?not found|pyenv: \S*python\S*: command not found/.test(text)) {
    return `${who}: there is no python on PATH for this host; give the full path of one.`;
  }
  const last = text.trim().split("\n").at(-1)?.slice(0, 300) ?? "";
  const how = result.signal === null ? `exit code ${result.code}` : `signal ${result.signal}`;
  return `${who} is no usable Python (${how}${last ? `: ${last}` : ""}): choose another with --python or the setting seesaw.python.path.`;
}
