import type { Family } from "./arenaCharts.ts";

/** A family's mark around a point: of about the same area whatever its shape. */
export function shapePath(family: Family, x: number, y: number, r: number): string {
  const polygon = (...points: [number, number][]): string => `M${points.map(([dx, dy]) => `${round(x + dx * r)} ${round(y + dy * r)}`).join("L")}Z`;
  switch (family) {
    case "chain":
      return polygon([-0.33, -1], [0.33, -1], [0.33, -0.33], [1, -0.33], [1, 0.33], [0.33, 0.33], [0.33, 1], [-0.33, 1], [-0.33, 0.33], [-1, 0.33], [-1, -0.33], [-0.33, -0.33]);
    case "tuning":
      return polygon([0, -1.2], [1.1, 0.8], [-1.1, 0.8]);
    case "distill":
      return polygon([0, -1.25], [1.25, 0], [0, 1.25], [-1.25, 0]);
    case "merge":
      return polygon([-0.89, -0.89], [0.89, -0.89], [0.89, 0.89], [-0.89, 0.89]);
    case "experts":
      return polygon([0, 1.2], [1.1, -0.8], [-1.1, -0.8]);
    default:
      return `M${round(x - r)} ${round(y)}a${round(r)} ${round(r)} 0 1 0 ${round(2 * r)} 0a${round(r)} ${round(r)} 0 1 0 ${round(-2 * r)} 0Z`;
  }
}

/** Every tenth, or every fifth part where there are many. */
export function ticks({ low, high }: { low: number; high: number }): number[] {
  const step = high - low > 0.65 ? 0.2 : 0.1;
  const first = Math.ceil(low / step - 1e-9);
  return Array.from({ length: Math.floor(high / step + 1e-9) - first + 1 }, (_, index) => Math.round((first + index) * step * 10) / 10);
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
