import type { Command } from "commander";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { reasonText } from "../domain/run/reasonText.ts";
import { isActive } from "../targets/standing.ts";
import { AppError, messageOf } from "../util/errors.ts";
import { chooseRun } from "./runChoice.ts";
import { remoteNotes } from "./status.ts";
import type { ContextOf } from "./context.ts";

interface LogsOptions {
  follow?: boolean;
  lines: string;
  journal?: boolean;
}

const pollMs = 400;
/** How long another machine is asked for what a run has written since. */
const askMs = 20_000;

export function addLogs(program: Command, contextOf: ContextOf): void {
  program
    .command("logs")
    .argument("[stage-or-run]", "default: the run that is active, else the newest")
    .description("what a run printed")
    .option("-f, --follow", "go on until the run ends")
    .option("-n, --lines <n>", "only the last n lines (0: all)", "200")
    .option("--journal", "the run's events instead of its output")
    .addHelpText("after", "\nExamples:\n  seesaw logs math -f\n  seesaw logs --journal -n 0\nWith --json the lines are those of the journal (one event a line).")
    .action(async (named: string | undefined, options: LogsOptions, command: Command) => {
      const context = contextOf(command);
      const { out, services } = context;
      const lines = Number(options.lines);
      if (!Number.isInteger(lines) || lines < 0) throw new AppError("usage", `--lines takes a whole number, not \`${options.lines}\`.`);
      const pipeline = await context.pipeline();
      const run = await chooseRun(services, pipeline, named);
      const file = join(run.dir, options.journal || context.json ? "journal.jsonl" : "out.log");
      const whole = file.endsWith(".jsonl");
      // A run on another machine: what it has written since is fetched first, and while it is followed it keeps coming.
      const unwatch = options.follow ? services.remotes.watch(pipeline.root, run.id) : null;
      if (unwatch === null && run.state.remote?.complete === false) await services.remotes.refresh(pipeline.root, { run: run.id, signal: AbortSignal.timeout(askMs) }).catch((error: unknown) => context.log.info(messageOf(error)));
      let { offset, bytes } = await readFrom(file, 0, whole);
      bytes = lastLines(bytes, lines);
      process.stdout.write(bytes);
      if (options.follow) {
        let told = "";
        for (let current = run, active = true; active; ) {
          // The state first, the bytes after it: what was written before the end is never missed.
          current = (await services.runs.list(pipeline.root)).runs.find(({ id }) => id === run.id) ?? current;
          active = isActive(current) || current.state.remote?.complete === false;
          const note = context.json ? "" : remoteNotes(current, Date.now() / 1000).join("");
          // Once for each time it is so: how long ago it was heard of changes with every look.
          if (current.state.status !== told && note !== "") out.note(out.paint("dim", note));
          told = current.state.status;
          ({ offset, bytes } = await readFrom(file, offset, whole));
          process.stdout.write(bytes);
          if (active) await new Promise((resolve) => setTimeout(resolve, pollMs));
          else if (!context.json) out.note(out.paint("dim", `${current.id}: ${reasonText(current.state.reason)}`));
        }
        await unwatch?.();
      } else if (bytes.length === 0 && !context.json) {
        out.note([`${run.id} has printed nothing${isActive(run) ? " yet" : ""}.`, ...remoteNotes(run, Date.now() / 1000)].join(" "));
      }
    });
}

function lastLines(bytes: Buffer, lines: number): Buffer {
  if (lines === 0) return bytes;
  let at = bytes.at(-1) === 10 ? bytes.length - 1 : bytes.length;
  for (let left = lines; left > 0 && at >= 0; left--) at = at === 0 ? -1 : bytes.lastIndexOf(10, at - 1);
  return bytes.subarray(at + 1);
}

/** The bytes from `offset`, as they are: the terminal decodes them. `whole`: only whole lines. */
async function readFrom(file: string, offset: number, whole: boolean): Promise<{ offset: number; bytes: Buffer }> {
  let handle;
  try {
    handle = await open(file, "r");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return { offset, bytes: Buffer.alloc(0) };
    throw error;
  }
  try {
    const { size } = await handle.stat();
    const buffer = Buffer.alloc(Math.max(0, size - offset));
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, offset);
    const bytes = buffer.subarray(0, whole ? buffer.lastIndexOf(10, bytesRead - 1) + 1 : bytesRead);
    return { offset: offset + bytes.length, bytes };
  } finally {
    await handle.close();
  }
}
