import { basename } from "node:path";
import { blockRows, type DatasetDetail, type DatasetLine, type DatasetProbe, type DatasetState, type FromDatasetPage, type ToDatasetPage } from "../../protocol/datasets.ts";
import type { DatasetReader } from "../../storage/datasets/datasetReader.ts";
import { messageOf } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";
import type { Log } from "../../util/log.ts";
import { DatasetSearch } from "./datasetSearch.ts";
import type { KnowledgeHost } from "../rows/rowKnowledge.ts";
import { factsKey, readFacts, type RowFacts } from "./rowFacts.ts";
import { readDetail, readLine } from "./rowText.ts";

/** What a session needs of the rest of the extension. */
export interface DatasetHost extends KnowledgeHost {
  open(path: string): Promise<DatasetReader>;
  log: Log;
  showLog(): void;
  openLine(file: string, line: number): void;
  showDrift(target: { pipeline: string; skill: string; split: string; row: number }): void;
}

/** Bytes of a row that the list reads: a longer one is shown by its beginning. */
const lineLimit = 1024 * 1024;
/** Bytes of a row that the detail pane gets at first, and when the whole row is asked for. */
const detailLimit = 256 * 1024;
const wholeLimit = 16 * 1024 * 1024;
/** Blocks that are kept, so that going back is free: about as many as a long scroll shows. */
const keptBlocks = 32;
/** VS Code gives larger files no text editor. */
const textLimit = 50 * 1024 * 1024;

/** `whole`: no row of it can still come or grow. Otherwise it is read again when the file was read further than `done`. */
interface KeptBlock {
  lines: DatasetLine[];
  whole: boolean;
  marked: RowFacts | null;
  done: number;
}

/** The host's half of one dataset page: messages in, state and blocks of rows out. Knows nothing of webviews. */
export class DatasetSession {
  private readonly path: string;
  private readonly host: DatasetHost;
  private readonly post: (message: ToDatasetPage) => void;
  private readonly search: DatasetSearch;
  private reader: DatasetReader | null = null;
  private failure: string | null = null;
  private version = 0;
  private open = false;
  private disposed = false;
  private facts: RowFacts | null = null;
  private factsOf: string | null = null;
  private readonly blocks = new Map<number, KeptBlock>();
  private wanted: number[] = [];
  private pumping = false;
  private reading = new AbortController();

  constructor(path: string, host: DatasetHost, post: (message: ToDatasetPage) => void) {
    this.path = path;
    this.host = host;
    this.post = post;
    this.search = new DatasetSearch(post);
  }

  /** Takes a message of the page. */
  handle(message: FromDatasetPage): void {
    switch (message.type) {
      case "ready":
        this.open = true;
        if (this.reader === null && this.failure === null) this.start();
        this.refresh();
        return this.postState();
      case "want":
        if (message.version !== this.version) return;
        this.wanted = message.blocks;
        return this.pump();
      case "choose":
        return void this.choose(message.version, message.row, message.whole).catch((error: unknown) => this.note("The row cannot be read", error));
      case "find":
        return this.search.find(this.reader, message);
      case "cancelFind":
        return this.search.cancel();
      case "goTo":
        return void this.goTo(message.turn, message.line).catch((error: unknown) => this.note("The line cannot be looked for", error));
      case "reread":
        return this.reread();
      case "openDrift":
        return void this.openDrift(message.row).catch((error: unknown) => this.note("The row cannot be read", error));
      case "openText":
        return this.host.openLine(this.path, message.line);
      case "showLog":
        return this.host.showLog();
      case "error":
        return this.host.log.error(`Dataset page: ${message.message}`);
    }
  }

  /** Runs or pipelines changed: the marks beside the rows are read again. */
  refresh(): void {
    // The rows come first: `show` calls this again.
    if (!this.open || this.disposed || this.blocks.size === 0) return;
    const key = factsKey(this.path, this.host.views());
    if (key === this.factsOf) return;
    this.factsOf = key;
    readFacts(this.path, this.host).then(
      (facts) => {
        if (this.disposed || this.factsOf !== key) return;
        this.facts = facts;
        this.postState();
        this.pump();
      },
      (error: unknown) => this.note("Replay and drift of the rows cannot be read", error),
    );
  }

  /** The page is hidden: nothing is computed for it. It will say `ready` again. */
  close(): void {
    this.open = false;
    this.wanted = [];
    this.reading.abort();
    this.search.cancel();
  }

  dispose(): void {
    this.disposed = true;
    this.close();
    this.blocks.clear();
    this.reader?.dispose();
    this.reader = null;
  }

  private start(): void {
    const version = ++this.version;
    this.host.open(this.path).then(
      (reader) => {
        // Another one was asked for, or the editor was closed, while this one was opened.
        if (this.disposed || version !== this.version) return reader.dispose();
        this.reader = reader;
        reader.onDidChange(() => this.changed());
        this.changed();
      },
      (error: unknown) => {
        if (this.disposed || version !== this.version) return;
        this.failure = messageOf(error);
        this.host.log.error(`${this.path}: ${this.failure}`);
        this.postState();
      },
    );
  }

  private reread(): void {
    this.reading.abort();
    this.search.cancel();
    this.reader?.dispose();
    this.reader = null;
    this.failure = null;
    this.blocks.clear();
    this.wanted = [];
    this.start();
    this.postState();
  }

  private changed(): void {
    this.postState();
    this.pump();
  }

  private postState(): void {
    if (this.open) this.post({ type: "state", state: this.state() });
  }

  private state(): DatasetState {
    const status = this.reader?.status() ?? { rows: 0, complete: false, done: 0, total: 0, notes: [], changed: false };
    const { rows, complete, done, total, changed } = status;
    const kind = this.reader?.kind ?? "lines";
    const empty = this.failure !== null ? { kind: "error" as const, title: t("The file cannot be shown"), detail: this.failure } : complete && rows === 0 ? { kind: "none" as const, title: t("No rows"), detail: t("The file has no rows: every line of it is blank.") } : null;
    const notes = [...status.notes.map(({ message }) => message), ...(this.facts?.problems ?? [])];
    return { version: this.version, name: basename(this.path), kind, rows, complete, done, total, columns: this.facts?.columns ?? [], replay: this.facts?.replay ?? false, notes, changed, text: kind === "lines" && total <= textLimit, empty };
  }

  /** Reads what is wanted, one block after the other; what is no longer wanted by then is not read. */
  private pump(): void {
    if (this.pumping || !this.open) return;
    this.pumping = true;
    this.work().catch((error: unknown) => this.note("Rows cannot be read", error));
  }

  private async work(): Promise<void> {
    try {
      for (let block = this.next(); block !== null && this.reader !== null; block = this.next()) await this.show(this.reader, block);
    } finally {
      // Here and not in a `then`: a request that came in between would not be worked on.
      this.pumping = false;
    }
  }

  private async show(reader: DatasetReader, block: number): Promise<void> {
    const { version, facts } = this;
    const { rows, done } = reader.status();
    if (this.reading.signal.aborted) this.reading = new AbortController();
    const { signal } = this.reading;
    let kept: KeptBlock;
    try {
      kept = { ...(await this.read(reader, block, facts, signal)), marked: facts, done };
    } catch (error) {
      if (signal.aborted) return;
      const problem = messageOf(error);
      this.host.log.error(`${this.path}: ${problem}`);
      kept = { lines: placeholders(block, rows, problem), whole: true, marked: facts, done };
    }
    if (version !== this.version || !this.open) return;
    this.keep(block, kept);
    this.post({ type: "block", version, block, lines: kept.lines });
    if (this.factsOf === null) this.refresh();
  }

  /** The first wanted block that is not known in full, with the marks of now. */
  private next(): number | null {
    if (!this.open || this.reader === null) return null;
    const { rows, done } = this.reader.status();
    return (
      this.wanted.find((block) => {
        const known = Math.min(rows - block * blockRows, blockRows);
        const kept = this.blocks.get(block);
        if (known <= 0) return false;
        return kept === undefined || kept.marked !== this.facts || (kept.done !== done && (!kept.whole || kept.lines.length < known));
      }) ?? null
    );
  }

  private async read(reader: DatasetReader, block: number, facts: RowFacts | null, signal: AbortSignal): Promise<Pick<KeptBlock, "lines" | "whole">> {
    const lines: DatasetLine[] = [];
    let ended = true;
    for await (const row of reader.rowsFrom(block * blockRows, lineLimit, signal)) {
      const { preview, problem, value } = readLine(row);
      const known = facts === null || value === undefined ? null : facts.of(value);
      lines.push({ row: row.row, line: row.line, preview, problem, replay: known?.replay ?? null, probe: known?.probe == null ? null : pageProbe(known.probe) });
      ended = row.ended;
      if (lines.length === blockRows) break;
    }
    return { lines, whole: lines.length === blockRows && ended };
  }

  private keep(block: number, kept: KeptBlock): void {
    this.blocks.delete(block);
    this.blocks.set(block, kept);
    for (const oldest of this.blocks.keys()) {
      if (this.blocks.size <= keptBlocks) break;
      if (!this.wanted.includes(oldest)) this.blocks.delete(oldest);
      else break;
    }
  }

  private async choose(version: number, row: number, whole: boolean): Promise<void> {
    const { reader } = this;
    if (reader === null || version !== this.version) return;
    for await (const found of reader.rowsFrom(row, whole ? wholeLimit : detailLimit)) {
      const { problems, turns, text, value } = readDetail(found);
      const known = value === undefined ? null : this.facts?.of(value);
      const { line, length, cut } = found;
      const detail: DatasetDetail = { row, line, length, cut, more: cut && !whole, problems, turns, text, replay: known?.replay ?? null, probe: known?.probe == null ? null : pageProbe(known.probe) };
      if (version === this.version && this.open) this.post({ type: "detail", version, detail });
      return;
    }
  }

  private async openDrift(row: number): Promise<void> {
    if (this.reader === null) return;
    for await (const found of this.reader.rowsFrom(row, lineLimit)) {
      const { value } = readLine(found);
      const probe = value === undefined ? null : this.facts?.of(value).probe;
      if (probe != null) this.host.showDrift({ pipeline: probe.pipeline, skill: probe.skill, split: probe.split, row: probe.probeRow });
      return;
    }
  }

  private async goTo(turn: number, line: number): Promise<void> {
    const { reader } = this;
    if (reader === null) return;
    const { rows } = reader.status();
    const row = await reader.rowOfLine(line);
    if (row === null) return this.post({ type: "wentTo", turn, row: rows === 0 ? null : rows - 1, exact: false });
    for await (const found of reader.rowsFrom(row, 64)) return this.post({ type: "wentTo", turn, row, exact: found.line === line });
  }

  private note(what: string, error: unknown): void {
    if (!this.disposed) this.host.log.error(`${this.path}: ${what}: ${messageOf(error)}`);
  }
}

/** Rows that could not be read, with the reason where they would be. */
function placeholders(block: number, rows: number, problem: string): DatasetLine[] {
  const first = block * blockRows;
  return Array.from({ length: Math.max(0, Math.min(blockRows, rows - first)) }, (_, index) => ({ row: first + index, line: first + index + 1, preview: "", problem, replay: null, probe: null }));
}

/** What the page needs of a probe: not where it is. */
function pageProbe({ skill, split, changes, beyondNoise, checks }: DatasetProbe): DatasetProbe {
  return { skill, split, changes, beyondNoise, checks };
}

