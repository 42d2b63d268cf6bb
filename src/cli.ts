import { Command, CommanderError } from "commander";
import { addBenchmark } from "./cli/benchmark.ts";
import { addArena } from "./cli/arena.ts";
import { addCheckpoints } from "./cli/checkpoints.ts";
import { addCompare } from "./cli/compare.ts";
import { CommandContext } from "./cli/context.ts";
import { addConfirm } from "./cli/confirm.ts";
import { addDrift } from "./cli/drift.ts";
import { addFetch } from "./cli/fetch.ts";
import { addFlags } from "./cli/flags.ts";
import { exitCodeHelp, exitCodeOf, exitCodes } from "./cli/exitCodes.ts";
import { failureOf } from "./cli/failure.ts";
import { addGate } from "./cli/gate.ts";
import { addGlobalOptions, globalOptions } from "./cli/globalOptions.ts";
import { addInit } from "./cli/init.ts";
import { addLogs } from "./cli/logs.ts";
import { terminalOutput, wantsColour } from "./cli/output.ts";
import { addPlan } from "./cli/plan.ts";
import { addReplay } from "./cli/replay.ts";
import { addReport } from "./cli/report.ts";
import { addRun } from "./cli/run.ts";
import { addStatus } from "./cli/status.ts";
import { addStop } from "./cli/stop.ts";
import { addTargets } from "./cli/targets.ts";
import { addTokens } from "./cli/tokens.ts";
import { addValidate } from "./cli/validate.ts";
import { addWeights } from "./cli/weights.ts";
import { version } from "./util/version.ts";
import { AppError } from "./util/errors.ts";

let context = null as CommandContext | null;
const contextOf = (command: Command): CommandContext => (context ??= new CommandContext(globalOptions(program, command)));

const program = new Command("seesaw")
  .description("Debug multi-stage post-training: run the stages, and see token by token what each one pushed down.")
  .version(version)
  .addHelpText("after", `\n${exitCodeHelp}\n\nStart with: seesaw init, then seesaw validate, seesaw run --all, seesaw checkpoints, seesaw report`)
  .enablePositionalOptions()
  .showSuggestionAfterError()
  .exitOverride();

for (const add of [addInit, addValidate, addRun, addStatus, addLogs, addStop, addFetch, addCheckpoints, addFlags, addConfirm, addDrift, addTokens, addBenchmark, addCompare, addPlan, addWeights, addArena, addReplay, addReport, addGate, addTargets]) add(program, contextOf);
for (const command of [program, ...program.commands]) addGlobalOptions(command.exitOverride());
// A reader that closes the pipe early (`| head`) has seen what it wanted.
process.stdout.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? exitCodes.ok : exitCodes.failed));
// Remarks that nobody reads any more stop nothing.
process.stderr.on("error", () => {});

try {
  const major = Number(process.versions.node.split(".")[0]);
  if (major < 22) throw new AppError("spawn-failed", `Seesaw needs Node 22 or newer, this is ${process.versions.node}: in a checkout use \`npm run seesaw --\`, which brings its own.`);
  await program.parseAsync();
} catch (error) {
  const { reason, message, stack } = failureOf(error);
  const asked = error instanceof CommanderError && error.exitCode === 0;
  process.exitCode = asked ? exitCodes.ok : exitCodeOf(reason);
  const out = context?.out ?? terminalOutput(wantsColour(true, process.env, process.stderr.isTTY === true));
  // Arguments that cannot be understood are refused before there is a context.
  if (!asked && (context?.json ?? process.argv.includes("--json"))) out.json({ v: 1, error: reason, message });
  // Commander has said itself what is wrong with the arguments.
  if (!(error instanceof CommanderError)) out.note(`${out.paint("red", "error:")} ${message}`);
  if (stack !== null && process.argv.includes("--verbose")) out.note(stack);
} finally {
  context?.dispose();
}
