import { Command, CommanderError } from "commander";
import { addCheckpoints } from "./cli/checkpoints.ts";
import { CommandContext } from "./cli/context.ts";
import { addDrift } from "./cli/drift.ts";
import { exitCodeHelp, exitCodeOf, exitCodes } from "./cli/exitCodes.ts";
import { addGlobalOptions, globalOptions } from "./cli/globalOptions.ts";
import { addInit } from "./cli/init.ts";
import { addLogs } from "./cli/logs.ts";
import { addReplay } from "./cli/replay.ts";
import { addReport } from "./cli/report.ts";
import { addRun } from "./cli/run.ts";
import { addStatus } from "./cli/status.ts";
import { addStop } from "./cli/stop.ts";
import { addTokens } from "./cli/tokens.ts";
import { addValidate } from "./cli/validate.ts";
import { version } from "./cli/version.ts";
import { AppError, messageOf } from "./util/errors.ts";

let context = null as CommandContext | null;
const contextOf = (command: Command): CommandContext => (context ??= new CommandContext(globalOptions(program, command)));

const program = new Command("seesaw")
  .description("Debug multi-stage post-training: run the stages, and see token by token what each one pushed down.")
  .version(version)
  .addHelpText("after", `\n${exitCodeHelp}\n\nStart with: seesaw init, then seesaw validate, seesaw run --all, seesaw checkpoints, seesaw report`)
  .enablePositionalOptions()
  .showSuggestionAfterError()
  .exitOverride();

for (const add of [addInit, addValidate, addRun, addStatus, addLogs, addStop, addCheckpoints, addDrift, addTokens, addReplay, addReport]) add(program, contextOf);
for (const command of [program, ...program.commands]) addGlobalOptions(command.exitOverride());
// A reader that closes the pipe early (`| head`) has seen what it wanted.
process.stdout.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? exitCodes.ok : exitCodes.failed));

try {
  const major = Number(process.versions.node.split(".")[0]);
  if (major < 22) throw new AppError("spawn-failed", `Seesaw needs Node 22 or newer, this is ${process.versions.node}: in a checkout use \`npm run seesaw --\`, which brings its own.`);
  await program.parseAsync();
} catch (error) {
  if (error instanceof CommanderError) {
    process.exitCode = error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
  } else {
    process.exitCode = exitCodeOf(error);
    if (context?.json) context.out.json({ v: 1, error: AppError.is(error) ? error.reason : "internal", message: messageOf(error) });
    const out = context?.out;
    const detail = AppError.is(error) || !(error instanceof Error) ? messageOf(error) : (error.stack ?? error.message);
    (out ?? { note: console.error }).note(out ? `${out.paint("red", "error:")} ${detail}` : detail);
  }
} finally {
  context?.dispose();
}
