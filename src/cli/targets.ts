import type { Command } from "commander";
import { loginHost, stagesOn, targetAddress } from "../domain/targets/targetList.ts";
import { reportParts, reportSummary, type ReportPart } from "../domain/targets/targetReport.ts";
import type { Pipeline } from "../domain/pipeline/pipelineModel.ts";
import type { TargetReport } from "../protocol/remote.ts";
import { AppError } from "../util/errors.ts";
import { didYouMean } from "../util/nearest.ts";
import { shellText } from "../util/shellText.ts";
import { cleanTarget } from "./cleanTarget.ts";
import type { CommandContext, ContextOf } from "./context.ts";
import { exitCodes } from "./exitCodes.ts";
import { padTo, table, textWidth, type Output } from "./output.ts";

const help = `
\`seesaw targets\` lists what seesaw.yaml names and contacts nothing. \`check\` asks each target for its Python, packages,
GPUs, queue and disk; it never asks for a password, and gives up after a minute and a half. \`clean\` shows which runs of this
workspace, data, models and runners on a target nobody needs any more, and removes them once you say yes.

Examples:
  seesaw targets                  what there is, and which stages run on it
  seesaw targets check            all of them; exit code 1 when something is missing
  seesaw targets check cluster    one
  seesaw targets check --json
  seesaw targets clean cluster    what could go there, with sizes and reasons; asks before it removes anything
  seesaw targets clean cluster --yes`;

export function addTargets(program: Command, contextOf: ContextOf): void {
  program
    .command("targets")
    .argument("[verb]", "`check`: ask them what they have, and say what is missing; `clean`: remove what nobody needs")
    .argument("[name...]", "targets to check (default: all), or the one to clean")
    .option("-y, --yes", "with `clean`: do not ask")
    .description("the machines that stages run on, and whether a stage could be started there")
    .addHelpText("after", help)
    .action(async (verb: string | undefined, names: string[], { yes }: { yes?: boolean }, command: Command) => {
      const context = contextOf(command);
      const pipeline = await context.pipeline();
      if (verb === undefined) return list(context, pipeline);
      if (verb === "clean") return cleanTarget(context, pipeline, names, yes === true);
      if (verb !== "check") throw new AppError("usage", `There is no \`seesaw targets ${verb}\`. To see what ${verb} has: \`seesaw targets check ${verb}\`.`);
      await check(context, pipeline, names);
    });
}

function list(context: CommandContext, pipeline: Pipeline): void {
  const { out } = context;
  if (context.json) {
    const targets = pipeline.targets.map((target) => ({ target: target.id, kind: target.kind, address: targetAddress(target), dir: "dir" in target ? target.dir : null, python: target.python, stages: stagesOn(pipeline, target.id) }));
    return out.json({ v: 1, pipeline: pipeline.file, targets });
  }
  const rows = pipeline.targets.map((target) => [target.id, target.kind, targetAddress(target), "dir" in target ? target.dir : "", stagesOn(pipeline, target.id).join(", ") || out.paint("dim", "no stage")]);
  out.print(table(["target", "kind", "address", "folder there", "stages"], rows, { out }));
  out.note(out.paint("dim", "`seesaw targets check` asks them what they have."));
}

async function check(context: CommandContext, pipeline: Pipeline, names: readonly string[]): Promise<void> {
  const { out, services } = context;
  const ids = pipeline.targets.map(({ id }) => id);
  for (const name of names) if (!ids.includes(name)) throw new AppError("not-found", `There is no target ${name} in ${pipeline.file}: there are ${ids.join(", ")}.${didYouMean(name, ids)}`);
  const wanted = pipeline.targets.filter(({ id }) => names.length === 0 || names.includes(id));
  const abort = new AbortController();
  const stop = (): void => abort.abort();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, stop);
  const open = new Set(wanted.map(({ id }) => id));
  const say = (): void => out.rewrite(open.size === 0 ? "" : `checking ${[...open].join(", ")}`);
  try {
    say();
    const checks = wanted.map((target) =>
      services.targetDesk.check(pipeline, target.id, context.startOptions(undefined, abort.signal)).finally(() => {
        open.delete(target.id);
        say();
      }),
    );
    // All are asked at once and told in the order of the file.
    for (const one of checks) one.catch(() => {});
    const reports: TargetReport[] = [];
    for (const [index, one] of checks.entries()) {
      const report = await one;
      reports.push(report);
      const target = wanted[index];
      if (!context.json) {
        out.print(`${index > 0 ? "\n" : ""}${reportText(report, out)}`);
        const host = target === undefined ? null : loginHost(target);
        if (host !== null && report.problems.some(({ reason }) => reason === "login" || reason === "host-key")) out.note(`  Log in once by hand, where ssh can ask you: ${shellText(await services.targetDesk.loginArgv(host))}`);
        if (target?.kind === "ray" && report.problems.some(({ reason }) => reason === "refused" || reason === "expired")) out.note("  The token comes from the environment variable SEESAW_RAY_TOKEN (or RAY_AUTH_TOKEN).");
      }
    }
    const ok = reports.every(({ problems }) => problems.length === 0);
    if (context.json) out.json({ v: 1, pipeline: pipeline.file, ok, targets: reports.map((report) => ({ ...report, stages: stagesOn(pipeline, report.target) })) });
    if (!ok) process.exitCode = exitCodes.failed;
  } finally {
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.removeListener(signal, stop);
    out.rewrite("");
  }
}

/** One target: a line that says whether a stage could be started there, and below it what it has. */
export function reportText(report: TargetReport, out: Output): string {
  const ok = report.problems.length === 0;
  const head = `${ok ? out.paint("green", "✓") : out.paint("red", "✗")} ${out.paint("bold", report.target)}  ${report.kind === "ssh" ? `${report.address} (SSH)` : report.address}${report.reachable ? `  ${out.paint("dim", reportSummary(report))}` : ""}`;
  const parts = reportParts(report);
  const labels = parts.filter(({ kind }) => kind !== "problem").map(({ label }) => textWidth(label));
  const width = Math.max(0, ...labels);
  return [head, ...parts.flatMap((part) => partLines(part, width, out))].join("\n");
}

function partLines(part: ReportPart, width: number, out: Output): string[] {
  const colour = part.level === "problem" ? "red" : part.level === "warning" ? "yellow" : null;
  const paint = (text: string): string => (colour === null ? text : out.paint(colour, text));
  if (part.kind === "problem") return [`  ${paint(part.label)}`];
  // Packages fit on one line; a line each would push the rest off the screen.
  const under =
    part.kind === "python" ? [`    ${part.parts.map(({ label, text, level }) => (level === "plain" ? `${label} ${text}` : out.paint("yellow", `${label} ${text}`))).join(", ")}`] : columns(part.parts, out);
  return [`  ${padTo(part.label, width)}  ${paint(part.text)}`.trimEnd(), ...(part.parts.length === 0 ? [] : under)];
}

function columns(parts: readonly ReportPart[], out: Output): string[] {
  const width = Math.max(0, ...parts.map(({ label }) => textWidth(label)));
  return parts.map(({ label, text, level }) => `    ${padTo(label, width)}  ${level === "plain" ? text : out.paint("yellow", text)}`.trimEnd());
}
