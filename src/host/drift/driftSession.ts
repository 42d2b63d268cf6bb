import { emptySelection, type DriftAction, type DriftEmpty, type DriftFilm, type DriftSelection, type DriftSnapshot, type FromWebview, type PictureRequest, type ToWebview } from "../../protocol/webview.ts";
import type { TraceStore } from "../../storage/traces/traceStore.ts";
import { AppError, messageOf } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";
import type { Log } from "../../util/log.ts";
import { livePart, type LiveLook, type LiveShow } from "../live/liveShow.ts";
import type { PipelineView } from "../workspaceModel.ts";
import { resolveSelection, type ResolvedSelection } from "./driftChoices.ts";
import { readChart } from "./driftChart.ts";
import { pause, readAhead, readFilm, readList, readNoise, type DriftList } from "./driftData.ts";
import { pictureAbout } from "./driftPicture.ts";

/** What a session needs of the rest of the extension. */
export interface DriftHost {
  views(): readonly PipelineView[];
  /** Loads SQLite on first use: not before a page asks for scores. */
  traces(): Promise<TraceStore>;
  log: Log;
  trusted(): boolean;
  run(action: DriftAction): void;
  openLine(file: string, line: number): void;
  /** Nobody waits for live scores any more. */
  cancelLive(): void;
}

/** A picture, and what it shows. */
export interface DriftPicture {
  png: Uint8Array;
  resolved: ResolvedSelection;
}

type PictureAnswer = Pick<Extract<FromWebview, { type: "picture" }>, "png" | "problem">;

/** How long a page may take to be read, and to draw itself, in ms. */
const patience = 15_000;
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
  live: null,
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
  /** Who waits for a picture, by its turn. */
  private readonly pictures = new Map<number, (answer: PictureAnswer) => void>();
  private pictureTurn = 0;
  private live: LiveShow | null = null;
  private look: LiveLook = { row: 0, token: null };
  /** The last live part and what it was made from: while it is the same, it is not sent again. */
  private liveMade: { show: LiveShow; look: LiveLook; part: ReturnType<typeof livePart> } | null = null;

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
      case "lookLive":
        this.look = { row: message.row, token: message.token };
        return this.update(true);
      case "leaveLive":
        this.host.cancelLive();
        return this.showLive(null);
      case "run":
        return this.host.run(message.action);
      case "picture":
        return this.pictures.get(message.turn)?.(message);
      case "error":
        return this.host.log.error(`Token Drift page: ${message.message}`);
    }
  }

  /** What is shown, to open the same elsewhere. */
  get selection(): DriftSelection {
    return this.state.selection;
  }

  /** What the page shows, as it was last told. */
  get shown(): DriftSnapshot {
    return this.state;
  }

  /** Shows rows scored live in place of what was recorded, or what was recorded again. */
  showLive(show: LiveShow | null): void {
    if (show === this.live) return;
    const lines = (one: LiveShow | null): string => JSON.stringify([one?.file, one?.rows.map(({ line }) => line)]);
    // Asked again while a row is edited: the person stays at the row looked at.
    this.look = lines(show) === lines(this.live) ? { ...this.look, token: null } : { row: 0, token: null };
    this.live = show;
    if (this.open) this.update(true);
  }

  /** Chooses from outside, e.g. from a flag in the tree. */
  select(change: Partial<DriftSelection>): void {
    if (this.live?.progress != null) this.host.cancelLive();
    this.live = null;
    this.asked = { ...this.asked, reference: null, row: null, token: null, ...change };
    if (this.open) this.update();
  }

  /** Runs or pipelines changed: read what is new without a word, so that a page does not blink while a stage runs. */
  refresh(): void {
    if (this.open) this.update(true);
  }

  /** The page as a PNG: waits until it shows what was asked for. AppError("not-found") where there is nothing to draw. */
  async picture(ask: (request: PictureRequest) => void): Promise<DriftPicture> {
    const late = Date.now() + patience;
    while ((!this.open || this.reading) && Date.now() < late) await new Promise((resolve) => setTimeout(resolve, 50));
    const { resolved } = resolveSelection(this.host.views(), this.asked);
    if (this.live !== null) throw new AppError("not-found", t("What is shown was scored live and comes from no run: go back to the recorded prompts to draw them."));
    if (resolved === null || this.state.empty !== null) throw new AppError("not-found", t("There is nothing to draw yet: run a stage first."));
    const about = pictureAbout(resolved, readNoise(resolved, await this.host.traces()), new Date());
    const turn = ++this.pictureTurn;
    let timer: NodeJS.Timeout | undefined;
    try {
      const { png, problem } = await new Promise<PictureAnswer>((resolve) => {
        this.pictures.set(turn, resolve);
        timer = setTimeout(() => resolve({ png: null, problem: t("The page did not answer: show Token Drift and export again.") }), patience);
        ask({ type: "picture", turn, about });
      });
      if (png === null) throw new AppError("not-found", problem ?? t("There is nothing to draw yet: run a stage first."));
      return { png, resolved };
    } finally {
      clearTimeout(timer);
      this.pictures.delete(turn);
    }
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
    if (this.live !== null) {
      this.listKey = "";
      return { ...nothing, choices, selection: this.selectionOf(resolved), ...this.livePart(this.live) };
    }
    if (resolved === null) {
      this.listKey = "";
      return { ...nothing, choices, selection: this.asked, empty: this.emptyWorkspace() };
    }
    const selection = this.selectionOf(resolved);
    try {
      const traces = await this.host.traces();
      const key = keyOf(resolved);
      const known = key === this.listKey && this.state.empty === null;
      if (!known) await readAhead(resolved, traces);
      const list: DriftList = known ? this.state : readList(resolved, traces);
      if (!known) await pause();
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
      return { ...nothing, choices, selection, empty: { kind: "error", title: t("The traces cannot be read"), detail: messageOf(error), actions: [{ label: t("Show Log"), action: "showLog" }] } };
    }
  }

  private selectionOf(resolved: ResolvedSelection | null): DriftSelection {
    if (resolved === null) return this.asked;
    return { pipeline: resolved.view.uri.fsPath, skill: resolved.skill, split: resolved.split, reference: resolved.reference, row: this.asked.row, token: this.asked.token };
  }

  private livePart(show: LiveShow): ReturnType<typeof livePart> {
    if (this.liveMade?.show !== show || this.liveMade.look !== this.look) this.liveMade = { show, look: this.look, part: livePart(show, this.look) };
    return this.liveMade.part;
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
      const detail = first === undefined ? t("It could not be read.") : t("Line {0}: {1}", first.range.line, first.message);
      return { kind: "error", title: t("{0} has errors", broken.label), detail, actions: [{ label: t("Open Pipeline File"), action: "openPipeline" }] };
    }
    return { kind: "none", title: t("No pipeline yet"), detail: t("Open a folder with a seesaw.yaml: it names the base model, the skills to watch and the stages to train."), actions: [] };
  }

  private emptySet(resolved: ResolvedSelection): DriftEmpty {
    if (resolved.view.listing.runs.length === 0) {
      const detail = t("Run a stage: every skill's prompts are then scored token by token, at its start and as it goes.");
      if (this.host.trusted()) return { kind: "none", title: t("Nothing has been scored yet"), detail, actions: [{ label: t("Run Stage"), action: "runStage" }] };
      return { kind: "none", title: t("Nothing has been scored yet"), detail: `${detail} ${t("Nothing is started before you trust this workspace.")}`, actions: [] };
    }
    const detail = t("No finished run has scored these prompts. They are scored when a stage starts, as it goes, and at its end.");
    return { kind: "none", title: t("{0} has no scores yet", resolved.skill), detail, actions: [] };
  }

  private openRow(row: number): void {
    const scored = this.live?.rows[row];
    if (this.live !== null && scored !== undefined) return this.host.openLine(this.live.file, scored.line);
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
