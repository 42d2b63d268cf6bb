import { t } from "../../util/l10n.ts";
import { shellText } from "../../util/shellText.ts";
import { formatBytes, formatPlural } from "../format.ts";

/** What a start would do: the shape of `Description` in src/targets/remote/port.ts. */
export interface DryRun {
  commands: readonly { what: string; argv: readonly string[] }[];
  files: readonly { local: string; remote: string; bytes: number; there: boolean | null }[];
  script: string | null;
  notes: readonly string[];
}

/** A dry run as a page to read: heading, notes, files, commands, and the job script word for word at the end. */
export function dryRunText(stage: string, place: string, run: DryRun): string {
  const lines = [t("Dry run of {0} on {1}", stage, place), t("Nothing was started and nothing was copied."), ""];
  for (const note of run.notes) lines.push(`* ${note}`);
  if (run.notes.length > 0) lines.push("");
  if (run.files.length > 0) lines.push(`== ${filesHeading(run.files)} ==`, ...fileLines(run.files), "");
  if (run.commands.length > 0) {
    lines.push(`== ${t("Commands, in this order")} ==`);
    for (const [index, { what, argv }] of run.commands.entries()) lines.push(`${index + 1}. ${what}`, `   ${shellText(argv)}`);
    lines.push("");
  }
  if (run.script !== null) lines.push(`== ${t("Job script")} ==`, run.script.replace(/\n$/, ""), "");
  return `${lines.join("\n").trimEnd()}\n`;
}

/** `3 files, 1.2 GB; 812 MB of it would be copied`. */
function filesHeading(files: DryRun["files"]): string {
  const bytes = (some: DryRun["files"]): string => formatBytes(some.reduce((sum, file) => sum + file.bytes, 0));
  const missing = files.filter(({ there }) => there !== true);
  if (missing.length === 0) return t("{0}, {1}: all of it is there already", formatPlural(files.length, "file"), bytes(files));
  return files.every(({ there }) => there !== null)
    ? t("{0}, {1}: {2} would be copied", formatPlural(files.length, "file"), bytes(files), bytes(missing))
    : t("{0}, {1}: up to {2} would be copied, less what is there already", formatPlural(files.length, "file"), bytes(files), bytes(missing));
}

function fileLines(files: DryRun["files"]): string[] {
  const rows = files.map(({ local, remote, bytes, there }) => ({ state: there === null ? t("unless there") : there ? t("is there") : t("to copy"), size: formatBytes(bytes), local, remote }));
  const widths = { state: Math.max(...rows.map(({ state }) => state.length)), size: Math.max(...rows.map(({ size }) => size.length)) };
  return rows.flatMap(({ state, size, local, remote }) => [`${state.padEnd(widths.state)}  ${size.padStart(widths.size)}  ${local}`, `  → ${remote}`]);
}
