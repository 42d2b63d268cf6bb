/** The key between the two quotes, escapes resolved. */
export function decodeKey(bytes: Uint8Array, start: number, end: number): string {
  return JSON.parse(`"${new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes.subarray(start, end))}"`) as string;
}

/** UTF-8 in which unpaired surrogates have three bytes: its order is the order of code points. */
export function wtf8(text: string): number[] {
  const result: number[] = [];
  for (const character of text) {
    const point = character.codePointAt(0) ?? 0;
    if (point < 0x80) result.push(point);
    else if (point < 0x800) result.push(0xc0 | (point >> 6), 0x80 | (point & 63));
    else if (point < 0x10000) result.push(0xe0 | (point >> 12), 0x80 | ((point >> 6) & 63), 0x80 | (point & 63));
    else result.push(0xf0 | (point >> 18), 0x80 | ((point >> 12) & 63), 0x80 | ((point >> 6) & 63), 0x80 | (point & 63));
  }
  return result;
}

/** Less than, equal to or greater than 0, as the order of the two lists. */
export function compareBytes(a: readonly number[], b: readonly number[]): number {
  for (let i = 0; i < a.length && i < b.length; i++) {
    const difference = (a[i] as number) - (b[i] as number);
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}
