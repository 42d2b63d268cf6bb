import type { FromWeightsPage, ToWeightsPage, WeightsState } from "../../protocol/weightsPage.ts";
import type { WeightDrift } from "../../protocol/weights.ts";
import { capabilityVectors, type CapabilityVector } from "../../domain/weights/capabilities.ts";
import { capabilityCsv, weightCsv } from "../../domain/weights/weightCsv.ts";
import { weightPair, weightPlaces, type WeightPair } from "../../domain/weights/weightPair.ts";
import type { Pipeline } from "../../domain/pipeline/pipelineModel.ts";
import type { Chain } from "../../domain/run/chain.ts";
import type { StartOptions } from "../../targets/launcher.ts";
import { AppError, messageOf } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";
import type { Log } from "../../util/log.ts";
import { PipelineChoice } from "../pipelineChoice.ts";
import type { PipelineView } from "../workspaceModel.ts";

/** What a session needs of the rest of the extension. */
export interface WeightsHost {
  views(): readonly PipelineView[];
  /** From the cache, or computed with Python. */
  drift(root: string, pair: WeightPair, options: StartOptions & { rank: boolean; onProgress(share: number): void }): Promise<WeightDrift>;
  startOptions(view: PipelineView): Promise<StartOptions>;
  /** Asks where to, and writes. */
  save(view: PipelineView, name: string, text: string): Promise<void>;
  runStage(): void;
  showLog(): void;
  log: Log;
}

type Empty = NonNullable<WeightsState["empty"]>;

/** Progress is told at most this often, in ms. */
const quietMs = 100;

/** The host's half of the weights page: messages in, state out. Knows nothing of webviews. */
export class WeightsSession {
  private readonly host: WeightsHost;
  private readonly post: (message: ToWeightsPage) => void;
  private readonly choice: PipelineChoice;
  private open = false;
  /** Labels that the person chose; null: the base model and the last checkpoint. */
  private chosen: { from: string; to: string } | null = null;
  private rank = false;
  private shown: { key: string; pair: string; drift: WeightDrift } | null = null;
  private failure: { key: string; empty: Empty } | null = null;
  private work: { key: string; share: number; abort: AbortController } | null = null;

  /** `file`: the `seesaw.yaml` it is about; the first one of the workspace if none is named. */
  constructor(host: WeightsHost, post: (message: ToWeightsPage) => void, file?: string) {
    this.host = host;
    this.post = post;
    this.choice = new PipelineChoice(() => host.views(), file, ({ chain }) => chain !== null);
  }

  /** Shows another pipeline. */
  show(file: string | undefined): void {
    if (!this.choice.turnTo(file)) return;
    this.chosen = null;
    this.refresh();
  }

  /** Takes a message of the page. */
  handle(message: FromWeightsPage): void {
    switch (message.type) {
      case "ready":
        this.open = true;
        return this.refresh();
      case "pipeline":
        return this.show(message.file);
      case "choose":
        this.chosen = { from: message.from, to: message.to };
        return this.refresh();
      case "rank":
        this.rank = message.wanted;
        return this.refresh();
      case "cancel":
        return this.work?.abort.abort();
      case "retry":
        this.failure = null;
        return this.refresh();
      case "export":
        return void this.export(message.what).catch((error: unknown) => this.host.log.error(`The numbers could not be written: ${messageOf(error)}`));
      case "runStage":
        return this.host.runStage();
      case "showLog":
        return this.host.showLog();
      case "error":
        return this.host.log.error(`Weights page: ${message.message}`);
    }
  }

  /** Runs or pipelines changed, or something else was asked for. */
  refresh(): void {
    if (!this.open) return;
    const found = this.current();
    if (found !== null && !(found.pair instanceof AppError)) this.compute(found.view, found.pipeline, found.pair);
    else this.stop();
    this.post({ type: "state", state: this.state() });
  }

  /** The page is hidden: nothing is computed for it. It will say `ready` again. */
  close(): void {
    this.open = false;
    this.stop();
  }

  private stop(): void {
    this.work?.abort.abort();
    this.work = null;
  }

  private current(): { view: PipelineView; pipeline: Pipeline; chain: Chain; pair: WeightPair | AppError } | null {
    const view = this.choice.current();
    if (view === undefined || view.shown === null || view.chain === null) return null;
    const { shown: pipeline, chain } = view;
    return { view, pipeline, chain, pair: this.pairOf(pipeline, chain) };
  }

  private pairOf(pipeline: Pipeline, chain: Chain): WeightPair | AppError {
    try {
      // A checkpoint that is gone is no reason to show nothing.
      const labels = weightPlaces(chain).map(({ label }) => label);
      const chosen = this.chosen !== null && labels.includes(this.chosen.from) && labels.includes(this.chosen.to) ? this.chosen : null;
      return chosen === null ? weightPair(pipeline, chain) : weightPair(pipeline, chain, chosen.from, chosen.to);
    } catch (error) {
      if (AppError.is(error)) return error;
      throw error;
    }
  }

  private compute(view: PipelineView, pipeline: Pipeline, pair: WeightPair): void {
    const key = keyOf(pair, this.rank);
    if (this.shown?.key === key || this.failure?.key === key || this.work?.key === key) return;
    this.stop();
    const work = { key, share: 0, abort: new AbortController() };
    this.work = work;
    this.failure = null;
    let told = Date.now();
    const onProgress = (share: number): void => {
      work.share = share;
      if (this.work !== work || Date.now() - told < quietMs) return;
      told = Date.now();
      this.tell();
    };
    const ended = (change: () => void): void => {
      if (this.work !== work) return;
      this.work = null;
      change();
      this.tell();
    };
    this.host
      .startOptions(view)
      .then((options) => this.host.drift(pipeline.root, pair, { ...options, rank: this.rank, signal: work.abort.signal, onProgress }))
      .then(
        (drift) => ended(() => (this.shown = { key, pair: keyOf(pair, false), drift })),
        (error: unknown) => ended(() => this.fail(pair, key, error)),
      );
  }

  /** What is shown already is worth more than ranks that did not come about. */
  private fail(pair: WeightPair, key: string, error: unknown): void {
    const empty = this.failed(error);
    if (this.rank && this.shown?.key === keyOf(pair, false)) this.rank = false;
    else this.failure = { key, empty };
  }

  private failed(error: unknown): Empty {
    if (AppError.is(error, "cancelled")) return { kind: "none", title: t("The comparison was stopped"), detail: t("Nothing of it was kept."), action: "retry" };
    this.host.log.error(`Weights cannot be compared: ${messageOf(error)}`);
    return { kind: "error", title: t("The weights cannot be compared"), detail: messageOf(error), action: "retry" };
  }

  private tell(): void {
    if (this.open) this.post({ type: "state", state: this.state() });
  }

  private state(): WeightsState {
    const found = this.current();
    const pipelines = this.host.views().flatMap(({ uri, label, chain }) => (chain === null ? [] : [{ file: uri.fsPath, label }]));
    const nothing = { pipelines, pipeline: "", places: [], from: "", to: "", before: null, rank: this.rank, busy: null, drift: null, capabilities: [] };
    if (found === null) return { ...nothing, empty: { kind: "none", title: t("No pipeline"), detail: t("There is no seesaw.yaml without errors in this workspace."), action: null } };
    const { view, pipeline, chain, pair } = found;
    const places = weightPlaces(chain).map(({ label, stage, step }) => ({ label, title: stage === null ? t("{0}, the base model", label) : t("{0}, {1} at step {2}", label, stage, step ?? 0) }));
    const capabilities: CapabilityVector[] = capabilityVectors(pipeline.skills, chain);
    const base = { ...nothing, pipeline: view.uri.fsPath, places, capabilities };
    if (pair instanceof AppError) return { ...base, empty: { kind: "none", title: t("Nothing to compare yet"), detail: t("Weights are compared as soon as a stage has left a checkpoint beside the base model."), action: "runStage" } };
    const key = keyOf(pair, this.rank);
    const failure = this.failure?.key === key ? this.failure.empty : null;
    const drift = failure === null && this.shown?.pair === keyOf(pair, false) ? this.shown.drift : null;
    return { ...base, from: pair.from.label, to: pair.to.label, before: pair.before?.label ?? null, busy: this.work?.key === key ? this.work.share : null, drift, empty: failure };
  }

  private async export(what: "weights" | "capabilities"): Promise<void> {
    const found = this.current();
    if (found === null || found.pair instanceof AppError) return;
    const { view, pipeline, chain, pair } = found;
    if (what === "capabilities") return this.host.save(view, `${pipeline.name}.capabilities.csv`, capabilityCsv(capabilityVectors(pipeline.skills, chain)));
    if (this.shown?.pair !== keyOf(pair, false)) return;
    const [from, to] = [pair.from.label, pair.to.label];
    await this.host.save(view, `${pipeline.name}.${from}-${to}.weights.csv`, weightCsv(this.shown.drift, from, to));
  }
}

function keyOf({ from, to, before }: WeightPair, rank: boolean): string {
  return JSON.stringify([from.path, to.path, before?.path ?? null, rank]);
}
