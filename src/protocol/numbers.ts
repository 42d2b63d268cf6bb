/** How numbers that JSON does not know travel in every file and message: as these three strings. */
export type WireNumber = number | "NaN" | "Infinity" | "-Infinity";

/** Encodes one number for JSON. Finite numbers stay numbers. */
export function encodeNumber(value: number): WireNumber {
  if (Number.isFinite(value)) return value;
  if (Number.isNaN(value)) return "NaN";
  return value > 0 ? "Infinity" : "-Infinity";
}

/** Decodes a wire number; anything else (null, other text) is `undefined`, never 0. */
export function decodeNumber(value: unknown): number | undefined {
  if (typeof value === "number") return value;
  if (value === "NaN") return Number.NaN;
  if (value === "Infinity") return Number.POSITIVE_INFINITY;
  if (value === "-Infinity") return Number.NEGATIVE_INFINITY;
  return undefined;
}
