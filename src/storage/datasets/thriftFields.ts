/** The numbers of a Thrift struct in its compact form, by field; structs inside by their field, too. Everything else is passed over. */
export interface ThriftFields {
  [field: number]: number | ThriftFields | undefined;
}

/** Thrown where the bytes end before the struct does: it must be read again with more of them. */
export class ShortRead extends Error {}

/** Reads one struct; `end` is where it ends. */
export function readThrift(bytes: Uint8Array, at = 0): { fields: ThriftFields; end: number } {
  const reader = new Reader(bytes, at);
  return { fields: reader.struct(), end: reader.at };
}

class Reader {
  at: number;
  private readonly bytes: Uint8Array;

  constructor(bytes: Uint8Array, at: number) {
    [this.bytes, this.at] = [bytes, at];
  }

  struct(): ThriftFields {
    const fields: ThriftFields = {};
    for (let last = 0; ; ) {
      const head = this.byte();
      const kind = head & 0x0f;
      if (kind === 0) return fields;
      last = head >> 4 === 0 ? this.zigzag() : last + (head >> 4);
      fields[last] = this.value(kind);
    }
  }

  private value(kind: number): number | ThriftFields | undefined {
    switch (kind) {
      case 1:
      case 2:
        return kind === 1 ? 1 : 0;
      case 3:
        return this.byte();
      case 4:
      case 5:
      case 6:
        return this.zigzag();
      case 7:
        return this.skip(8);
      case 8:
        return this.skip(this.varint());
      case 9:
      case 10:
        return this.list();
      case 12:
        return this.struct();
      default:
        throw new Error(`a page header has a field of kind ${kind}`);
    }
  }

  private list(): undefined {
    const head = this.byte();
    const count = head >> 4 === 15 ? this.varint() : head >> 4;
    // In a list a truth value takes a byte.
    for (let i = 0; i < count; i++) this.value((head & 0x0f) <= 2 ? 3 : head & 0x0f);
    return undefined;
  }

  private zigzag(): number {
    const value = this.varint();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }

  private varint(): number {
    let [value, scale] = [0, 1];
    for (;;) {
      const byte = this.byte();
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
      scale *= 128;
      if (scale > Number.MAX_SAFE_INTEGER) throw new Error("a page header has a number that is too long");
    }
  }

  private skip(length: number): undefined {
    this.at += length;
    if (this.at > this.bytes.length) throw new ShortRead("the header goes on");
    return undefined;
  }

  private byte(): number {
    const byte = this.bytes[this.at++];
    if (byte === undefined) throw new ShortRead("the header goes on");
    return byte;
  }
}
