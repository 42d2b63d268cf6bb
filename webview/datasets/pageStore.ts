import { blockRows, type DatasetDetail, type DatasetLine, type DatasetState, type FromDatasetPage, type ToDatasetPage } from "../../src/protocol/datasets.ts";
import { t } from "../../src/util/l10n.ts";

/** The page's way out: messages to the host, and the little it remembers while it is hidden. */
export interface DatasetEndpoint {
  post(message: FromDatasetPage): void;
  onMessage(run: (message: ToDatasetPage) => void): void;
  remembered(): Remembered | null;
  remember(place: Remembered): void;
}

export interface Remembered {
  row: number;
  top: number;
  text: string;
  matchCase: boolean;
}

export interface SearchState {
  text: string;
  matchCase: boolean;
  /** 0 to 1 while a search runs, else null. */
  share: number | null;
  /** What came of the last one. */
  result: string;
}

/** Blocks of rows that are kept: many screens full, and never more, however long the file is. */
const keptBlocks = 48;

/** All the page knows, and the requests it makes. Knows no document, so that it can be tested without one. */
export class PageStore {
  state: DatasetState | null = null;
  detail: DatasetDetail | null = null;
  selected = 0;
  top = 0;
  search: SearchState = { text: "", matchCase: false, share: null, result: "" };
  /** What came of the last `goTo`. */
  went = "";
  /** Counts selections that did not come from the list itself: then the row must be brought into sight. */
  jumps = 0;
  private readonly endpoint: DatasetEndpoint;
  private readonly blocks = new Map<number, DatasetLine[]>();
  private wanted = "";
  private findTurn = 0;
  private goTurn = 0;
  private listener: () => void = () => {};

  constructor(endpoint: DatasetEndpoint) {
    this.endpoint = endpoint;
    const before = endpoint.remembered();
    if (before !== null) {
      this.selected = before.row;
      this.top = before.top;
      this.search = { ...this.search, text: before.text, matchCase: before.matchCase };
    }
    endpoint.onMessage((message) => {
      this.take(message);
      this.listener();
    });
  }

  subscribe(run: () => void): void {
    this.listener = run;
  }

  ready(): void {
    this.endpoint.post({ type: "ready" });
  }

  line(row: number): DatasetLine | undefined {
    return this.blocks.get(Math.floor(row / blockRows))?.[row % blockRows];
  }

  /** The blocks in sight, the most wanted first. Said only when they are others than before. */
  want(blocks: number[]): void {
    const version = this.state?.version;
    const key = `${version} ${blocks.join(" ")}`;
    if (version === undefined || key === this.wanted) return;
    this.wanted = key;
    this.endpoint.post({ type: "want", version, blocks });
    // What is in sight is used last, so it is given up last.
    for (const block of [...blocks].reverse()) this.touch(block);
  }

  select(row: number, fromOutside = false): void {
    this.selected = row;
    if (fromOutside) this.jumps++;
    this.remember();
    this.listener();
  }

  scrolledTo(top: number): void {
    this.top = top;
    this.remember();
  }

  /** Asks for the selected row in full. */
  choose(whole = false): void {
    if (this.state !== null && this.state.rows > 0) this.endpoint.post({ type: "choose", version: this.state.version, row: this.selected, whole });
  }

  find(text: string, matchCase: boolean, direction: 1 | -1, here = false): void {
    this.search = { text, matchCase, share: text === "" ? null : 0, result: "" };
    const from = this.selected + (here ? 0 : direction);
    this.endpoint.post({ type: "find", turn: ++this.findTurn, text, matchCase, from, direction });
    this.remember();
    this.listener();
  }

  cancelFind(): void {
    if (this.search.share === null) return;
    this.findTurn++;
    this.search = { ...this.search, share: null, result: t("cancelled") };
    this.endpoint.post({ type: "cancelFind" });
    this.listener();
  }

  goTo(line: number): void {
    this.endpoint.post({ type: "goTo", turn: ++this.goTurn, line });
  }

  send(message: Extract<FromDatasetPage, { type: "reread" | "openDrift" | "openText" | "showLog" | "error" }>): void {
    this.endpoint.post(message);
  }

  private take(message: ToDatasetPage): void {
    switch (message.type) {
      case "state":
        if (this.state !== null && this.state.version !== message.state.version) this.forget();
        this.state = message.state;
        return;
      case "block":
        if (message.version !== this.state?.version) return;
        this.blocks.delete(message.block);
        this.blocks.set(message.block, message.lines);
        for (const oldest of this.blocks.keys()) {
          if (this.blocks.size <= keptBlocks) break;
          this.blocks.delete(oldest);
        }
        return;
      case "detail":
        if (message.version === this.state?.version && message.detail.row === this.selected) this.detail = message.detail;
        return;
      case "finding":
        if (message.turn === this.findTurn) this.search = { ...this.search, share: message.share };
        return;
      case "found":
        return this.found(message);
      case "wentTo":
        if (message.turn !== this.goTurn || message.row === null) return;
        this.went = message.exact ? "" : t("There is no row on that line: this is the nearest one known.");
        return this.select(message.row, true);
    }
  }

  private found({ turn, row, wrapped, problem }: Extract<ToDatasetPage, { type: "found" }>): void {
    if (turn !== this.findTurn) return;
    const result = problem ?? (row === null ? (this.search.text === "" ? "" : t("No results")) : wrapped ? t("Went on from the other end") : "");
    this.search = { ...this.search, share: null, result };
    if (row !== null) this.select(row, true);
  }

  private forget(): void {
    this.blocks.clear();
    this.detail = null;
    this.wanted = "";
  }

  private touch(block: number): void {
    const lines = this.blocks.get(block);
    if (lines === undefined) return;
    this.blocks.delete(block);
    this.blocks.set(block, lines);
  }

  private remember(): void {
    const { text, matchCase } = this.search;
    this.endpoint.remember({ row: this.selected, top: this.top, text, matchCase });
  }
}
