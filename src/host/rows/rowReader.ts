import { messageOf } from "../../util/errors.ts";
import type { Log } from "../../util/log.ts";
import { LineRows, type LineRow } from "./lineRows.ts";
import { readKnowledge, type KnowledgeHost, type KnownProbe, type RowKnowledge } from "./rowKnowledge.ts";
import { knowledgeKey, rolesOf } from "./rowRoles.ts";
import { joinSpans, type LineSpan } from "./seenLines.ts";
import type { WorstToken } from "./worstToken.ts";

/** What the reader needs of an editor's document. `TextDocument` is one. */
export interface LineSource {
  readonly fileName: string;
  readonly lineCount: number;
  readonly version: number;
  lineAt(line: number): { readonly text: string };
}

export interface Cancellation {
  readonly isCancellationRequested: boolean;
}

/** A row of a document as it is now, with its line counted from 0. */
export interface PlacedRow {
  line: number;
  row: LineRow;
}

export interface RowsInView {
  knowledge: RowKnowledge;
  rows: PlacedRow[];
  /** Long lines are still being written in: to be asked again in a moment. */
  again: boolean;
}

/** Milliseconds of work after which everything else in the extension host gets its turn. */
const slice = 8;

interface Known {
  key: string;
  knowledge: Promise<RowKnowledge | null>;
}

/** Rows of documents, and what is known about them. Reads only the lines that it is asked for. */
export class RowReader {
  private readonly host: KnowledgeHost;
  private readonly log: Log;
  private readonly lines = new LineRows();
  private readonly known = new Map<string, Known>();
  private readonly worst = new WeakMap<KnownProbe, { token: WorstToken | null }>();

  constructor(host: KnowledgeHost, log: Log) {
    this.host = host;
    this.log = log;
  }

  /** How many lines were parsed, for tests. */
  get parsed(): number {
    return this.lines.parsed;
  }

  /** What is known about a file's rows; read again when runs or pipelines changed. Null: no pipeline names it. */
  knowledge(path: string): Promise<RowKnowledge | null> {
    const roles = rolesOf(path, this.host.views());
    if (roles.length === 0) {
      this.known.delete(path);
      return Promise.resolve(null);
    }
    const key = knowledgeKey(roles);
    const known = this.known.get(path);
    if (known?.key === key) return known.knowledge;
    const before = known?.knowledge ?? Promise.resolve(null);
    const knowledge = before.then((read) => readKnowledge(path, this.host, read)).then(
      (read) => {
        for (const problem of read?.problems ?? []) this.log.warn(`${path}: ${problem}`);
        return read;
      },
      (error: unknown) => {
        // Asked again, it may be readable: nothing is kept.
        if (this.known.get(path)?.key === key) this.known.delete(path);
        this.log.error(`What is known about the rows of ${path} cannot be read: ${messageOf(error)}`);
        return null;
      },
    );
    this.known.set(path, { key, knowledge });
    return knowledge;
  }

  /** The document was closed. */
  forget(path: string): void {
    this.known.delete(path);
  }

  /** The rows on these lines; null when nothing is known of the file, or when the answer is not wanted any more. */
  async rows(document: LineSource, spans: readonly LineSpan[], { calm, token }: { calm: boolean; token?: Cancellation }): Promise<RowsInView | null> {
    const { version } = document;
    const knowledge = await this.knowledge(document.fileName);
    const stale = (): boolean => token?.isCancellationRequested === true || document.version !== version;
    if (knowledge === null || stale()) return null;
    const rows: PlacedRow[] = [];
    let again = false;
    let start = performance.now();
    for (const { first, last } of joinSpans(spans)) {
      for (let line = first; line <= Math.min(last, document.lineCount - 1); line++) {
        const row = this.lines.read(document.lineAt(line).text, calm);
        if (row === "later") again = true;
        else if (row !== "none") rows.push({ line, row });
        if (performance.now() - start < slice) continue;
        await new Promise((resolve) => setImmediate(resolve));
        if (stale()) return null;
        start = performance.now();
      }
    }
    return { knowledge, rows, again };
  }

  /** The token of each probe that fell most; read once. */
  worstTokens(knowledge: RowKnowledge, probes: readonly KnownProbe[]): (WorstToken | null)[] {
    const missing = probes.filter((probe) => !this.worst.has(probe));
    const found = missing.length === 0 ? [] : knowledge.worst(missing);
    for (const [index, probe] of missing.entries()) this.worst.set(probe, { token: found[index] ?? null });
    return probes.map((probe) => this.worst.get(probe)?.token ?? null);
  }
}
