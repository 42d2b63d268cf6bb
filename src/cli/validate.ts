import type { Command } from "commander";
import { formatPlural } from "../domain/format.ts";
import type { Diagnostic } from "../domain/pipeline/pipelineModel.ts";
import type { ContextOf } from "./context.ts";
import { exitCodes } from "./exitCodes.ts";
import type { Output } from "./output.ts";

export function addValidate(program: Command, contextOf: ContextOf): void {
  program
    .command("validate")
    .description("check seesaw.yaml and the files it names, without starting anything")
    .addHelpText("after", "\nExamples:\n  seesaw validate\n  seesaw validate -f slope/seesaw.yaml --json")
    .action(async (_options: object, command: Command) => {
      const context = contextOf(command);
      const { file, pipeline, diagnostics } = await context.load({ files: true });
      const errors = diagnostics.filter(({ severity }) => severity === "error").length;
      if (errors > 0) process.exitCode = exitCodes.usage;
      if (context.json) {
        context.out.json({ v: 1, file, valid: errors === 0, stages: pipeline?.stages.map(({ id }) => id) ?? [], diagnostics });
        return;
      }
      for (const diagnostic of diagnostics) context.out.print(diagnosticLine(diagnostic, context.out));
      if (errors > 0 || pipeline === null) return;
      const { paint } = context.out;
      context.out.print(`${paint("green", "✓")} ${file}: ${formatPlural(pipeline.stages.length, "stage")} (${pipeline.stages.map(({ id }) => id).join(" → ")}), ${formatPlural(pipeline.skills.length, "skill")}`);
    });
}

/** `file:line:column: error: message`, the form editors and terminals turn into a link. */
export function diagnosticLine({ file, range, severity, message }: Diagnostic, out: Output): string {
  const style = severity === "error" ? "red" : severity === "warning" ? "yellow" : "dim";
  return `${file}:${range.line}:${range.column}: ${out.paint(style, severity)}: ${message}`;
}
