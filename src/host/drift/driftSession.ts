import { emptySelection, type DriftAction, type DriftEmpty, type DriftFilm, type DriftSelection, type DriftSnapshot, type FromWebview, type ToWebview } from "../../protocol/webview.ts";
import type { TraceStore } from "../../storage/traces/traceStore.ts";
import { messageOf } from "../../util/errors.ts";
import type { Log } from "../../util/log.ts";
import type { PipelineView } from "../workspaceModel.ts";
import { resolveSelection, type ResolvedSelection } from "./driftChoices.ts";
import { readChart } from "./driftChart.ts";
import { readFilm, readList, type DriftList } from "./driftData.ts";

/** What a session needs of the rest of the extension. */
export interface DriftHost {
  views(): readonly PipelineView[];
  /** Loads SQLite on first use: not before a page asks for scores. */
  traces(): Promise<TraceStore>;
  log: Log;
  trusted(): boolean;
  run(action: DriftAction): void;
  openLine(file: string, line: number): void;
}

/** A film of 400 tokens under five checkpoints is about 1 MB. */
const mostFilms = 24;

const nothing: DriftSnapshot = {
  empty: null,
  turn: 0,
  selection: emptySelection,
  choices: { pipelines: [], skills: [], splits: [], references: [] },
  checkpoints: [],
  prompts: [],
  notes: [],
  film: null,
  chart: null,
  busy: false,
};

/** The host's half of one Token Drift page: messages in, snapshots and patches out. Knows nothing of webviews. */
export class DriftSession {
  private readonly host: DriftHost;
  private readonly post: (message: ToWebview) => void;
  private asked: DriftSelection = emptySelection;
  private state: DriftSnapshot = nothing;
  private seq = 0;
  /** The page's last choice. */
  private chosen = 0;
  private open = false;
  /** Counts requests: only the last one's answer is shown. */
  private turn = 0;
  private reading = false;
  /** What the list and the film in `state` were made from: while it is the same, they are not read again. */
  private listKey = "";
  /** The films shown last, by what they were made from: going back and forth reads nothing. */
  private readonly films = new Map<string, DriftFilm | null>();

  constructor(host: DriftHost, post: (message: ToWebview) => void) {
    this.host = host;
    this.post = post;
  }

  /** Takes a message of the page. */
  handle(message: FromWebview): void {
    switch (message.type) {
      case "ready":
        this.open = true;
        this.chosen = 0;
        this.state = { ...this.state, turn: 0 };
        if (message.selection !== null && this.asked === emptySelection) this.asked = message.selection;
        this.post({ type: "snapshot", seq: ++this.seq, state: { ...this.state, busy: true } });
        this.listKey = "";
        this.films.clear();
        this.reading = true;
        return this.update();
      case "resync":
        return this.post({ type: "snapshot", seq: ++this.seq, state: { ...this.state, busy: this.reading } });
      case "select":
        this.asked = message.selection;
        this.chosen = message.turn;
        return this.update();
      case "openRow":
        return this.openRow(message.row);
      case "run":
        return this.host.run(message.action);
      case "error":
        return this.host.log.error(`Token Drift page: ${message.message}`);
    }
  }

  /** What is shown, to open the same elsewhere. */
  get selection(): DriftSelection {
    return this.state.selection;
  }

  /** Chooses from outside, e.g. from a flag in the tree. */
  select(change: Partial<DriftSelection>): void {
    this.asked = { ...this.asked, reference: null, row: null, token: null, ...change };
    if (this.open) this.update();
  }

  /** Runs or pipelines changed: read what is new without a word, so that a page does not blink while a stage runs. */
  refresh(): void {
    if (this.open) this.update(true);
  }

  /** The page is gone or hidden; it will say `ready` again. */
  close(): void {
    this.open = false;
    this.reading = false;
    this.turn++;
  }

  private update(quiet = false): void {
    if (!quiet && !this.reading) {
      this.reading = true;
      this.patch({ busy: true });
    }
    const turn = ++this.turn;
    this.read(turn).catch((error: unknown) => this.host.log.error(`Token Drift: ${messageOf(error)}`));
  }

  /** Waits a moment first: of several requests in a row (an arrow key held down) only the last is read. */
  private async read(turn: number): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    if (turn !== this.turn) return;
    const chosen = this.chosen;
    const state = { ...(await this.compute()), turn: chosen };
    if (turn !== this.turn) {
      // What was read is not shown, so it must not count as read.
      this.listKey = "";
      return;
    }
    const patch = difference(this.state, state);
    this.state = { ...state, busy: false };
    if (this.reading || Object.keys(patch).length > 0) this.patch({ ...patch, busy: false });
    this.reading = false;
  }

  private async compute(): Promise<DriftSnapshot> {
    const { resolved, choices } = resolveSelection(this.host.views(), this.asked);
    if (resolved === null) {
      this.listKey = "";
      return { ...nothing, choices, selection: this.asked, empty: this.emptyWorkspace() };
    }
    const selection = { pipeline: resolved.view.uri.fsPath, skill: resolved.skill, split: resolved.split, reference: resolved.reference, row: this.asked.row, token: this.asked.token };
    try {
      const traces = await this.host.traces();
      const key = keyOf(resolved);
      const list: DriftList = key === this.listKey && this.state.empty === null ? this.state : readList(resolved, traces);
      if (key !== this.listKey) this.films.clear();
      this.listKey = key;
      const chart = readChart(resolved);
      if (list.prompts.length === 0) return { ...nothing, choices, selection, chart, empty: this.emptySet(resolved) };
      const row = list.prompts.some((prompt) => prompt.row === this.asked.row) ? this.asked.row : mostTelling(list);
      const film = row === null ? null : this.film(row, () => readFilm(resolved, row, this.asked.token, traces));
      const { checkpoints, prompts, notes } = list;
      return { ...nothing, choices, selection: { ...selection, row }, checkpoints, prompts, notes, film, chart };
    } catch (error) {
      this.listKey = "";
      this.host.log.error(`Token Drift of ${resolved.skill}: ${messageOf(error)}`);
      return { ...nothing, choices, selection, empty: { kind: "error", title: "The traces cannot be read", detail: messageOf(error), actions: [{ label: "Show Log", action: "showLog" }] } };
    }
  }

  /** A film from those shown last, or a new one. They belong to the list that was read last. */
  private film(row: number, read: () => DriftFilm | null): DriftFilm | null {
    const key = `${row} ${this.asked.token}`;
    const known = this.films.get(key);
    const film = known === undefined ? read() : known;
    this.films.delete(key);
    this.films.set(key, film);
    const [oldest] = this.films.keys();
    if (this.films.size > mostFilms && oldest !== undefined) this.films.delete(oldest);
    return film;
  }

  private emptyWorkspace(): DriftEmpty {
    const broken = this.host.views().find((view) => view.shown === null);
    if (broken !== undefined) {
      const [first] = broken.diagnostics.filter(({ severity }) => severity === "error");
      const detail = first === undefined ? "It could not be read." : `Line ${first.range.line}: ${first.message}`;
      return { kind: "error", title: `${broken.label} has errors`, detail, actions: [{ label: "Open Pipeline File", action: "openPipeline" }] };
    }
    return { kind: "none", title: "No pipeline yet", detail: "Open a folder with a seesaw.yaml: it names the base model, the skills to watch and the stages to train.", actions: [] };
  }

  private emptySet(resolved: ResolvedSelection): DriftEmpty {
    if (resolved.view.listing.runs.length === 0) {
      const detail = "Run a stage: every skill's prompts are then scored token by token, at its start and as it goes.";
      if (this.host.trusted()) return { kind: "none", title: "Nothing has been scored yet", detail, actions: [{ label: "Run Stage", action: "runStage" }] };
      return { kind: "none", title: "Nothing has been scored yet", detail: `${detail} Nothing is started before you trust this workspace.`, actions: [] };
    }
    const detail = "No finished run has scored these prompts. They are scored when a stage starts, as it goes, and at its end.";
    return { kind: "none", title: `${resolved.skill} has no scores yet`, detail, actions: [] };
  }

  private openRow(row: number): void {
    const { resolved } = resolveSelection(this.host.views(), this.asked);
    const prompt = this.state.prompts.find((one) => one.row === row);
    const probes = resolved?.pipeline.skills.find(({ id }) => id === resolved.skill)?.probes;
    const file = resolved?.split === "ood" ? probes?.ood : probes?.id;
    if (file !== undefined && prompt !== undefined) this.host.openLine(file, prompt.line);
  }

  private patch(patch: Partial<DriftSnapshot>): void {
    this.post({ type: "patch", seq: ++this.seq, patch });
  }
}

/** The most drifted prompt that was answered rightly before, if there is one: that is a loss, not a gap. */
function mostTelling({ prompts, checkpoints }: DriftList): number | null {
  const reference = checkpoints.findIndex(({ isReference }) => isReference);
  return (prompts.find(({ checks }) => checks[reference] === "passed") ?? prompts[0])?.row ?? null;
}

/** The fields of `now` that say something else than before. The large ones are the same objects while they are the same. */
function difference(before: DriftSnapshot, now: DriftSnapshot): Partial<DriftSnapshot> {
  const large: ReadonlySet<string> = new Set<keyof DriftSnapshot>(["prompts", "film"]);
  const changed = Object.entries(now).filter(([key, value]) => {
    const old = before[key as keyof DriftSnapshot];
    return key !== "busy" && old !== value && (large.has(key) || JSON.stringify(old) !== JSON.stringify(value));
  });
  return Object.fromEntries(changed) as Partial<DriftSnapshot>;
}

/** Changes exactly when the list must be read again. */
function keyOf({ view, skill, split, reference, chain }: ResolvedSelection): string {
  const traces = chain.checkpoints.map((checkpoint) => [checkpoint.run?.id, checkpoint.run?.state.attempt, checkpoint.step, checkpoint.status, checkpoint.traces[`${skill}.${split}`]]);
  return JSON.stringify([view.uri.fsPath, skill, split, reference, traces]);
}
