import type { Command } from "commander";

/** Options every command understands. */
export interface GlobalOptions {
  file?: string;
  json?: boolean;
  color: boolean;
  verbose?: boolean;
}

/** Gives a command the options that may stand before or after its name. `logs -f` follows, so there --file has no short form. */
export function addGlobalOptions(command: Command): void {
  const short = command.options.some((option) => option.short === "-f") ? "" : "-f, ";
  command
    .option(`${short}--file <path>`, "seesaw.yaml or its folder (default: the nearest one upwards)")
    .option("--json", "one JSON document on stdout instead of text (see src/cli/README.md)")
    .option("--no-color", "no colours (also: NO_COLOR, or when piped)")
    .option("--verbose", "say more on stderr");
}

/** What was given before the command's name and after it; after wins. */
export function globalOptions(program: Command, command: Command): GlobalOptions {
  const before = program.opts<GlobalOptions>();
  const after = command.opts<GlobalOptions>();
  return { ...before, ...after, color: before.color && after.color };
}
