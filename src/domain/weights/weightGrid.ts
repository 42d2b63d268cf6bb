import type { LayerDrift, ModuleDrift, WeightDrift } from "../../protocol/weights.ts";
import { formatNumber, formatPercent } from "../format.ts";

/** What a cell of the heat map shows. */
export const weightMeasures = ["relative", "changed", "cosine", "effective_rank"] as const;
export type WeightMeasure = (typeof weightMeasures)[number];

/** Layers × modules. `outer`: what belongs to no layer, in the order of the file. */
export interface WeightGrid {
  layers: { layer: number; all: LayerDrift | null; cells: (GridCell | null)[] }[];
  modules: string[];
  /** Shortest names that still tell the modules apart: `q_proj`. */
  names: string[];
  outer: GridCell[];
}

export interface GridCell extends ModuleDrift {
  /** Mean over the module's tensors that have one; null: not asked for, or no matrix changed. */
  effective_rank: number | null;
}

export function weightGrid(drift: WeightDrift): WeightGrid {
  const ranks = new Map<string, number[]>();
  for (const { layer, module, effective_rank: rank } of drift.tensors) {
    if (rank !== undefined && rank !== null) ranks.set(keyOf(layer, module), [...(ranks.get(keyOf(layer, module)) ?? []), rank]);
  }
  const cells = drift.modules.map((one): GridCell => {
    const found = ranks.get(keyOf(one.layer, one.module)) ?? [];
    return { ...one, effective_rank: found.length === 0 ? null : found.reduce((sum, rank) => sum + rank, 0) / found.length };
  });
  const inside = cells.filter(({ layer }) => layer !== null);
  const modules = inForwardOrder([...new Set(inside.map(({ module }) => module))]);
  const numbers = [...new Set(inside.map(({ layer }) => layer as number))].sort((a, b) => a - b);
  const byKey = new Map(inside.map((cell) => [keyOf(cell.layer, cell.module), cell]));
  return {
    modules,
    names: shortNames(modules),
    layers: numbers.map((layer) => ({
      layer,
      all: drift.layers.find((one) => one.layer === layer) ?? null,
      cells: modules.map((module) => byKey.get(keyOf(layer, module)) ?? null),
    })),
    outer: cells.filter(({ layer }) => layer === null),
  };
}

/** The number that a measure shows; null where there is none. */
export function measured(cell: Pick<GridCell, "relative" | "changed" | "cosine"> & { effective_rank?: number | null }, measure: WeightMeasure): number | null {
  return cell[measure] ?? null;
}

/** A number of a measure as text: `8.4 %`, `0.0021 %`, `+0.31`, `12.6`. */
export function formatMeasure(value: number | null, measure: WeightMeasure): string {
  if (measure === "cosine") return value === null ? "–" : `${value > 0 ? "+" : ""}${formatNumber(value)}`;
  if (measure === "effective_rank") return formatNumber(value, 1);
  return formatShare(value);
}

/** A share as per cent with two digits that say something, however small it is. */
export function formatShare(value: number | null): string {
  if (value === null || value === 0 || value >= 0.0995) return formatPercent(value);
  const digits = Math.min(12, Math.max(2, 1 - Math.floor(Math.log10(value * 100))));
  return formatPercent(value, value >= 0.01 ? 1 : digits);
}

function keyOf(layer: number | null, module: string): string {
  return `${layer ?? ""}/${module}`;
}

/** In the order in which a layer computes, as far as names tell; the others after them, as they come. */
const forward = ["input_layernorm", "q_proj", "k_proj", "v_proj", "qkv_proj", "q_norm", "k_norm", "o_proj", "post_attention_layernorm", "gate_proj", "up_proj", "gate_up_proj", "down_proj"];

function inForwardOrder(modules: readonly string[]): string[] {
  const place = (module: string): number => {
    const found = forward.indexOf(module.split(".").at(-1) ?? "");
    return found === -1 ? forward.length : found;
  };
  return modules.map((module, index) => ({ module, index })).sort((a, b) => place(a.module) - place(b.module) || a.index - b.index).map(({ module }) => module);
}

/** The last part of each name; more of it where two would be alike. */
function shortNames(modules: readonly string[]): string[] {
  return modules.map((module) => {
    const parts = module.split(".");
    for (let kept = 1; kept < parts.length; kept++) {
      const name = parts.slice(-kept).join(".");
      if (modules.filter((other) => other === name || other.endsWith(`.${name}`)).length === 1) return name;
    }
    return module;
  });
}
