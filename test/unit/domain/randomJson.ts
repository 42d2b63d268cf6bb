/** Seeded texts that are JSON, nearly JSON or odd JSON, for comparing readers. */
export class RandomJson {
  private seed: number;

  constructor(seed: number) {
    this.seed = seed;
  }

  next(): string {
    let text = this.blank() + this.value(0) + this.blank();
    if (this.chance(0.03)) text = text.slice(0, this.below(text.length + 1));
    if (this.chance(0.03)) {
      const at = this.below(text.length + 1);
      text = text.slice(0, at) + this.pick([",", "}", '"', "\\", "[", "x", "\u0001", "\ufeff"]) + text.slice(at);
    }
    // Cutting may have split a pair: bytes cannot hold one half.
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(new TextEncoder().encode(text));
  }

  below(limit: number): number {
    this.seed = (Math.imul(this.seed, 1103515245) + 12345) & 0x7fffffff;
    return Math.floor(((this.seed >> 8) / (1 << 23)) * limit);
  }

  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)] as T;
  }

  private chance(share: number): boolean {
    return this.below(10_000) < share * 10_000;
  }

  private blank(): string {
    return this.chance(0.3) ? this.pick([" ", "\t", "  ", " \r"]) : "";
  }

  private string(): string {
    return `"${Array.from({ length: this.below(6) }, () => this.pick(fragments)).join("")}"`;
  }

  private value(depth: number): string {
    const kind = this.below(100);
    if (kind < 1) return this.pick(broken);
    if (depth > 4 || kind < 35) return this.string();
    if (kind < 50) return this.pick(numbers);
    if (kind < 60) return this.pick(["true", "false", "null"]);
    const spaced = (make: () => string): string => this.blank() + make() + this.blank();
    const size = this.below(5);
    if (kind < 75) return `[${this.blank()}${Array.from({ length: size }, () => spaced(() => this.value(depth + 1))).join(",")}]`;
    const member = (): string => `${this.chance(0.8) ? `"${this.pick(keys)}"` : this.string()}${this.blank()}:${this.blank()}${this.value(depth + 1)}`;
    return `{${this.blank()}${Array.from({ length: size }, () => spaced(member)).join(",")}}`;
  }
}

const fragments = ["a", "é", "中", "😀", "\\n", '\\"', "\\\\", "\\/", "\\u0041", "\\ud83d", "\\ude00", "\\uD83D\\uDE00", "\\u0000", "\\u001F", "\\u00e9", "\u2028", "\ufeff", "plain text that is long enough to skip ", "  ", "\\t", "\\r\\n", "\\u0022", "\\u005c", "z".repeat(40)];
const keys = ["a", "b", "role", "content", "messages", "prompt", "completion", "chosen", "rejected", "conversations", "instruction", "text", "\\u0061", "é", "\uff01", "😀", "\\ud83d", "", "a\\u0000", "10", "9", "tool_calls"];
const numbers = ["0", "-0", "1", "10", "100", "1.0", "0.5", "-1.50", "1e5", "1E+07", "10e-1", "1e400", "9007199254740993", "12345678901234567890", "NaN", "Infinity", "-Infinity", "0.000e-7", "123.450e-5", "-100", "1e99999999999999999999"];
const broken = ["01", "1.", ".5", "+1", "tru", "nul", "-", "1e", "'x'", "nan", '"\t"', '"\\x"', '"\\u12g4"', '"abc', ",", "}", "]"];
