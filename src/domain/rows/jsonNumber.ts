/**
 * One spelling for each value, from the digits as they were written: `1.0` → `1`, `100` → `1e2`, `0.10` → `1e-1`,
 * every zero → `0`. Without floats, so 9007199254740993 stays itself. `NaN` and the infinities come back unchanged.
 */
export function canonicalNumber(text: string): string {
  const match = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text);
  if (match === null) return text;
  const [, sign = "", whole = "", fraction = "", exponentText = "0"] = match;
  const all = whole + fraction;
  let first = 0;
  while (first < all.length && all.charCodeAt(first) === 48) first++;
  if (first === all.length) return "0";
  let last = all.length;
  while (all.charCodeAt(last - 1) === 48) last--;
  const exponent = addToExponent(exponentText, all.length - last - fraction.length);
  return `${sign}${all.slice(first, last)}${exponent === "0" ? "" : `e${exponent}`}`;
}

function addToExponent(text: string, shift: number): string {
  const value = Number(text);
  return Number.isSafeInteger(value) ? String(value + shift + 0) : String(BigInt(text.replace("+", "")) + BigInt(shift));
}
