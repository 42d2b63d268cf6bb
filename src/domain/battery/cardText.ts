import type { CardShare, LeadSteps } from "../../protocol/reportCard.ts";
import { formatNumber, formatSigned } from "../format.ts";
import type { Share } from "./clustered.ts";
import type { Leads } from "./figures.ts";

/** How the report card prints its numbers. It is a file, not a window: English only. */

/** `3 of 60 (5 %, 1–14 %)`. */
export function shareText({ hits, of, share, low, high }: Share | CardShare): string {
  return of === 0 || share === null ? "none counted" : `${hits} of ${of} (${percent(share)}, ${percent(low).replace(" %", "")}–${percent(high)})`;
}

/** `5 %`; `2.5 %` below 10. */
export function percent(share: number): string {
  const value = share * 100;
  return `${formatNumber(value, value > 0 && value < 9.95 && Math.abs(value - Math.round(value)) > 0.05 ? 1 : 0)} %`;
}

/** A lead in steps, with a sign. */
export function stepsText(lead: number | LeadSteps): string {
  if (lead === null || (typeof lead === "number" && Number.isNaN(lead))) return "–";
  if (lead === "missed" || lead === -Infinity) return "missed";
  if (lead === "unmatched" || lead === Infinity) return "never seen";
  return formatSigned(lead as number, Number.isInteger(lead) ? 0 : 1);
}

/** A difference of two leads: infinite where only one of them alarmed. */
export function differenceText(steps: number): string {
  return Number.isNaN(steps) ? "–" : formatSigned(steps, Number.isInteger(steps) ? 0 : 1);
}

/** `+4.2 (−3.0 … +11.0)`: the median and the middle half. */
export function leadsText({ events, q1, median, q3 }: Pick<Leads, "events" | "q1" | "median" | "q3">): string {
  return events === 0 ? "no events" : `${stepsText(median)} (${stepsText(q1)} … ${stepsText(q3)})`;
}

/** `+12 points (−3 … +25)`. */
export function pointsText({ difference, low, high }: { difference: number; low: number; high: number }): string {
  if (Number.isNaN(difference)) return "no events";
  const points = (value: number): string => formatSigned(value * 100, 0);
  return `${points(difference)} points (${points(low)} … ${points(high)})`;
}

export function table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const line = (cells: readonly (string | number)[]): string => `| ${cells.map((cell) => String(cell).replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(head), `|${head.map(() => "---").join("|")}|`, ...rows.map(line)].join("\n");
}

export function parametersText(parameters: Record<string, string | number>): string {
  return Object.entries(parameters).map(([name, value]) => `${name} ${value}`).join(", ");
}
