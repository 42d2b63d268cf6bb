import { formatNumber, formatSigned } from "../src/domain/format.ts";
import { decodeNumber, type WireNumber } from "../src/protocol/numbers.ts";

/** A change in nats, with its sign. */
export function signed(value: WireNumber, digits = 2): string {
  return formatSigned(decodeNumber(value), digits);
}

/** A plain number. */
export function plain(value: WireNumber, digits = 2): string {
  return formatNumber(decodeNumber(value), digits);
}

/** A probability as `.41`, `1.0` or `<.01`. */
export function probability(value: number): string {
  if (value >= 0.995) return "1.0";
  return value < 0.01 ? "<.01" : value.toFixed(2).slice(1);
}
