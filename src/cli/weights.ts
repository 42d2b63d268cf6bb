import type { Command } from "commander";
import { formatMeasure, measured, weightGrid, type WeightMeasure } from "../domain/weights/weightGrid.ts";
import { capabilityVectors } from "../domain/weights/capabilities.ts";
import { weightCsv } from "../domain/weights/weightCsv.ts";
import { weightPair, type WeightPair } from "../domain/weights/weightPair.ts";
import { AppError } from "../util/errors.ts";
import type { WeightDrift } from "../protocol/weights.ts";
import { noteUnreadable, readChain } from "./chainData.ts";
import type { CommandContext, ContextOf } from "./context.ts";
import { Interrupts } from "./interrupts.ts";
import { table, type Output } from "./output.ts";

interface WeightsOptions {
  rank?: boolean;
  csv?: boolean;
  python?: string;
}

export function addWeights(program: Command, contextOf: ContextOf): void {
  program
    .command("weights")
    .argument("[from]", "the earlier checkpoint: `M1`, a stage, `stage@40` or `base`; default: the base model")
    .argument("[to]", "the later one; default: the last checkpoint there is")
    .description("how far two checkpoints are apart in weight space, layer by layer and module by module")
    .option("--rank", "also how many directions each update uses (slow on large models)")
    .option("--csv", "one line a tensor, for a spreadsheet")
    .option("--python <path>", "the Python to compute with")
    .addHelpText("after", "\n‖ΔW‖/‖W‖ says how far weights went, not whether a skill was lost: a description, never an alarm.\nAnswers are kept in .seesaw/cache/weights.\n\nExamples:\n  seesaw weights\n  seesaw weights M2 M3 --rank\n  seesaw weights search@40 search --csv > weights.csv\n  seesaw weights --json | jq '.drift.modules'")
    .action(async (from: string | undefined, to: string | undefined, options: WeightsOptions, command: Command) => {
      const context = contextOf(command);
      if (context.json && options.csv === true) throw new AppError("usage", "--json and --csv are two forms of the same answer: give one.");
      const data = await readChain(context.services, await context.pipeline());
      const pair = weightPair(data.pipeline, data.chain, from, to);
      const { out } = context;
      const drift = await computed(context, data.pipeline.root, pair, options);
      if (context.json) out.json({ v: 1, from: pair.from, to: pair.to, with: pair.before, drift, capabilities: capabilityVectors(data.pipeline.skills, data.chain) });
      else if (options.csv === true) out.print(weightCsv(drift, pair.from.label, pair.to.label).trimEnd());
      else out.print(weightsText(drift, pair, options.rank === true, out));
      noteUnreadable(data, out);
    });
}

/** The drift, with a live line while it is computed; Ctrl-C stops it. */
async function computed(context: CommandContext, root: string, pair: WeightPair, options: WeightsOptions): Promise<WeightDrift> {
  const interrupts = new Interrupts();
  const onProgress = (share: number): void => context.out.rewrite(`comparing ${pair.from.label} and ${pair.to.label}: ${Math.round(share * 100)} %`);
  try {
    return await context.services.weights.drift(root, pair, { ...context.startOptions(options.python, interrupts.signal), rank: options.rank === true, onProgress });
  } finally {
    context.out.rewrite("");
    interrupts.dispose();
  }
}

/** One row a layer, one column a module; then what is outside the layers, and the whole. */
export function weightsText(drift: WeightDrift, { from, to, before }: WeightPair, rank: boolean, out: Output): string {
  const cosine = before !== null && drift.with !== null;
  const tables = (rank ? (["relative", "effective_rank"] as const) : (["relative"] as const)).map((measure) => measureTable(drift, measure, cosine, out));
  const notes = [
    `Numbers: ‖ΔW‖/‖W‖ of ${to.label} against ${from.label}${rank ? ", then the effective rank of ΔW" : ""}. changed: share of entries that differ.`,
    ...(cosine ? [`cos: between this update and the one before it (${before.label} → ${from.label}); near −1 means that it is taken back.`] : []),
    ...drift.notes,
    ...(drift.only_a.length > 0 ? [`Only in ${from.label}: ${list(drift.only_a)}.`] : []),
    ...(drift.only_b.length > 0 ? [`Only in ${to.label}: ${list(drift.only_b)}.`] : []),
  ];
  return [tables.join("\n\n"), "", ...notes.map((note) => out.paint("dim", note))].join("\n");
}

function measureTable(drift: WeightDrift, measure: WeightMeasure, cosine: boolean, out: Output): string {
  const grid = weightGrid(drift);
  const own = measure === "relative";
  const extra = own ? ["all", "changed", ...(cosine ? ["cos"] : [])] : ["all"];
  const all = (one: Parameters<typeof measured>[0]): string[] =>
    own ? [formatMeasure(one.relative, "relative"), formatMeasure(one.changed, "changed"), ...(cosine ? [formatMeasure(one.cosine, "cosine")] : [])] : [formatMeasure(measured(one, measure), measure)];
  const blank = grid.names.map(() => "");
  const rows = [
    ...grid.layers.map(({ layer, cells, all: whole }) => [`layer ${layer}`, ...cells.map((cell) => (cell === null ? "" : formatMeasure(measured(cell, measure), measure))), ...(whole === null ? [] : own ? all(whole) : [""])]),
    ...grid.outer.filter((cell) => own || cell.effective_rank !== null).map((cell) => [cell.module, ...blank, ...all(cell)]),
    ...(own ? [[out.paint("bold", "whole model"), ...blank, ...all(drift.total)]] : []),
  ];
  const header = [own ? "‖ΔW‖/‖W‖" : "effective rank", ...grid.names, ...extra];
  return table(header, rows, { right: header.map((_, index) => index).slice(1), out });
}

function list(names: readonly string[]): string {
  return names.length > 4 ? `${names.slice(0, 3).join(", ")} and ${names.length - 3} more` : names.join(", ");
}
