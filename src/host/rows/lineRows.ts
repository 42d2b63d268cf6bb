import { hash } from "node:crypto";
import { rowHashes, type RowHashes } from "../../domain/rows/canonical.ts";
import { parseJson, type JsonValue } from "../../domain/rows/jsonText.ts";

/** What a line of an editor is, as it stands now. */
export interface LineRow {
  value: JsonValue;
  hashes: RowHashes;
}

/** `none`: a blank line, no JSON, or too long. `later`: long, and being written in. */
export type LineReading = LineRow | "none" | "later";

/** A line of more characters is not read while its document is being edited, and of more than the second limit never. */
const longLine = 64 * 1024;
const longestLine = 8 * 1024 * 1024;
/** Characters of lines that are remembered. */
const keptCharacters = 16 * 1024 * 1024;

/**
 * Reads lines and remembers them by their text: whatever is inserted above or below, a line that says the same is the
 * same row, and an edited one is another. So nothing here can be stale.
 */
export class LineRows {
  private readonly known = new Map<string, LineRow | "none">();
  private characters = 0;
  /** Lines that were parsed, for tests. */
  parsed = 0;

  /** `calm`: the document has not been edited for a moment. */
  read(line: string, calm: boolean): LineReading {
    if (line.length > longestLine) return "none";
    const known = this.known.get(line);
    if (known === undefined && line.length > longLine && !calm) return "later";
    const row = known ?? this.parse(line);
    // Last in the map is used last.
    this.known.delete(line);
    this.known.set(line, row);
    if (known === undefined) this.trim(line.length);
    return row;
  }

  private parse(line: string): LineRow | "none" {
    // VS Code takes the byte order mark off; text from elsewhere may still have it.
    const text = line.startsWith("\ufeff") ? line.slice(1) : line;
    if (!/^[\t\v\f ]*\{/.test(text)) return "none";
    this.parsed++;
    const result = parseJson(text);
    return result.ok ? { value: result.value, hashes: rowHashes(result.value, (part) => hash("sha256", part, "hex")) } : "none";
  }

  private trim(added: number): void {
    this.characters += added;
    for (const [line] of this.known) {
      if (this.characters <= keptCharacters || this.known.size === 1) return;
      this.known.delete(line);
      this.characters -= line.length;
    }
  }
}
