/** Values of a Parquet file as JSON text: 64-bit integers keep every digit, times their precision, bytes are shown as such. */

const decoder = new TextDecoder("utf-8", { fatal: true });
/** Bytes of a binary value (an image, say) that are written out. */
const binaryShown = 48;

/** One row as JSON text. */
export function rowJson(row: Record<string, unknown>): string {
  return valueJson(row);
}

function valueJson(value: unknown): string {
  if (value === null || value === undefined) return "null";
  switch (typeof value) {
    case "string":
      return JSON.stringify(value);
    case "boolean":
      return String(value);
    case "bigint":
      return value.toString();
    case "number":
      // As Python writes them; our own reader knows them.
      return Object.is(value, -0) ? "-0.0" : String(value);
    case "object":
      break;
    default:
      return JSON.stringify(String(value));
  }
  if (value instanceof Uint8Array) return bytesJson(value);
  if (value instanceof Date) return JSON.stringify(Number.isNaN(value.getTime()) ? "invalid date" : value.toISOString());
  if (Array.isArray(value) || ArrayBuffer.isView(value)) return `[${Array.from(value as ArrayLike<unknown>, valueJson).join(", ")}]`;
  return `{${Object.entries(value as object).map(([key, inner]) => `${JSON.stringify(key)}: ${valueJson(inner)}`).join(", ")}}`;
}

/** Old writers do not say which bytes are text: what is UTF-8 without control characters is. */
function bytesJson(bytes: Uint8Array): string {
  try {
    const text = decoder.decode(bytes);
    if (!/[\u0000-\u0008\u000e-\u001f]/.test(text)) return JSON.stringify(text);
  } catch {
    // It is no text.
  }
  const shown = Buffer.from(bytes.subarray(0, binaryShown)).toString("base64");
  return `{"$bytes": ${bytes.length}, "base64": ${JSON.stringify(bytes.length > binaryShown ? `${shown}…` : shown)}}`;
}

/** How times are read: as text with all their digits, not as a Date, which knows milliseconds alone. */
export const timeParsers = {
  timestampFromMilliseconds: (millis: bigint): string => timestamp(millis, 1000n, 3),
  timestampFromMicroseconds: (micros: bigint): string => timestamp(micros, 1_000_000n, 6),
  timestampFromNanoseconds: (nanos: bigint): string => timestamp(nanos, 1_000_000_000n, 9),
  dateFromDays: (days: number): string => dateText(Number(days) * 86_400_000)?.slice(0, -14) ?? `day ${days}`,
  jsonFromBytes: (bytes: Uint8Array | undefined): unknown => (bytes === undefined ? undefined : parsed(Buffer.from(bytes).toString("utf8"))),
};

function timestamp(value: bigint, perSecond: bigint, digits: number): string {
  const count = BigInt(value);
  const rest = ((count % perSecond) + perSecond) % perSecond;
  const seconds = (count - rest) / perSecond;
  const text = dateText(Number(seconds) * 1000);
  if (text === null) return `${seconds} s`;
  const fraction = rest.toString().padStart(digits, "0").replace(/0+$/, "");
  return text.replace(/\.000Z$/, fraction === "" ? "Z" : `.${fraction}Z`);
}

function dateText(millis: number): string | null {
  const date = new Date(millis);
  return Number.isNaN(date.getTime()) ? null : date.toISOString();
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
