import { t } from "../util/l10n.ts";

/** How numbers are printed everywhere: independent of the locale, with a real minus sign, and `–` for "not known". */

const unknown = "–";

/** `toFixed` with U+2212 as the minus, `∞` and `NaN` as such, and never "−0.00". */
export function formatNumber(value: number | null | undefined, digits = 2): string {
  if (value === null || value === undefined) return unknown;
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  const text = Math.abs(value).toFixed(digits);
  return value < 0 && Number(text) !== 0 ? `−${text}` : text;
}

/** With a sign: `+0.12`, `−9.40`, and `0.00` for what rounds to zero. */
export function formatSigned(value: number | null | undefined, digits = 2): string {
  const text = formatNumber(value, digits);
  return value !== null && value !== undefined && value > 0 && Number(text) !== 0 ? `+${text}` : text;
}

/** A change of log-probability in nats, given as ΔNLL: shown with the opposite sign (contract §8). */
export function formatDrift(deltaNll: number | null | undefined): string {
  return formatSigned(deltaNll === null || deltaNll === undefined ? deltaNll : -deltaNll);
}

/** `1.24 nats`. */
export function formatNats(value: number | null | undefined, digits = 2): string {
  return t("{0} nats", formatNumber(value, digits));
}

/** A distance of which only a lower bound is known: `≥ 0.031 nats (tail unknown)`, never `= 0.031`. */
export function formatAtLeast(value: number | null | undefined, digits = 3): string {
  return value === null || value === undefined ? unknown : t("≥ {0} (tail unknown)", formatNats(value, digits));
}

/** A share as `59.0 %`. */
export function formatPercent(share: number | null | undefined, digits = 1): string {
  return share === null || share === undefined ? unknown : `${formatNumber(share * 100, digits)} %`;
}

/** An interval of shares as `54.8–93.0 %`. */
export function formatInterval(interval: { low: number; high: number }, digits = 1): string {
  return `${formatNumber(interval.low * 100, digits)}–${formatNumber(interval.high * 100, digits)} %`;
}

/** A whole number in groups of three: `12,345`. */
export function formatCount(value: number | null | undefined): string {
  return formatNumber(value, 0).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** `p = 0.019`; below 0.001 `p < 0.001`. */
export function formatP(p: number | null | undefined): string {
  return p !== null && p !== undefined && p < 0.001 ? "p < 0.001" : `p = ${formatNumber(p, 3)}`;
}

/** Seconds as `340 ms`, `4.2 s`, `3 min 05 s`, `2 h 07 min`, `3 d 4 h`. */
export function formatDuration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return seconds === Number.POSITIVE_INFINITY ? "∞" : unknown;
  if (seconds < 0) return `−${formatDuration(-seconds)}`;
  if (seconds < 0.9995) return t("{0} ms", Math.round(seconds * 1000));
  if (seconds < 9.95) return t("{0} s", seconds.toFixed(1));
  const whole = Math.round(seconds);
  if (whole < 60) return t("{0} s", whole);
  if (whole < 3600) return t("{0} min {1} s", Math.floor(whole / 60), String(whole % 60).padStart(2, "0"));
  const minutes = Math.round(seconds / 60);
  if (minutes < 1440) return t("{0} h {1} min", Math.floor(minutes / 60), String(minutes % 60).padStart(2, "0"));
  const hours = Math.round(seconds / 3600);
  return t("{0} d {1} h", Math.floor(hours / 24), hours % 24);
}

/** Bytes in decimal units: `812 B`, `1.6 MB`, `12 GB`. */
export function formatBytes(bytes: number | null | undefined): string {
  if (bytes === null || bytes === undefined || !Number.isFinite(bytes)) return unknown;
  const units = ["B", "kB", "MB", "GB", "TB"];
  let value = bytes;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 || value >= 9.95 ? value.toFixed(0) : value.toFixed(1)} ${units[unit] as string}`;
}

/** `3.4 steps/s`, `12,345 tokens/s`. */
export function formatRate(perSecond: number | null | undefined, what: string): string {
  if (perSecond === null || perSecond === undefined || !Number.isFinite(perSecond)) return `${unknown} ${what}/s`;
  return `${perSecond < 99.95 ? formatNumber(perSecond, 1) : formatCount(perSecond)} ${what}/s`;
}

/** `1 prompt`, `64 prompts`. */
export function formatPlural(count: number, one: string, many = `${one}s`): string {
  return t(`{0} ${count === 1 ? one : many}`, formatCount(count));
}
