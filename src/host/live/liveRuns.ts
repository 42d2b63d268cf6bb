import type { Scorer } from "../../inference/scorer.ts";
import type { TraceStore } from "../../storage/traces/traceStore.ts";
import { AppError, messageOf } from "../../util/errors.ts";
import type { LivePlan } from "./livePlan.ts";
import type { LiveShow } from "./liveShow.ts";
import { noiseFloor } from "./noiseFloor.ts";
import { scoreRows, unscored, type EditedRow } from "./scoreRows.ts";

/** What scoring needs, and where its rows are shown. */
export interface LiveDeps {
  /** Starts no thread before the first request. */
  scorer(): Promise<Scorer>;
  traces(): Promise<TraceStore>;
  /** Shows rows in Token Drift; null: what was recorded again. */
  show(show: LiveShow | null): void;
}

/** The rows of a file that are asked for together. */
export interface LiveAsk {
  file: string;
  name: string;
  edited: boolean;
  rows: readonly EditedRow[];
  /** More than `rows` when they were too many. */
  selected: number;
  plan: LivePlan;
}

/** What was there stays this long: a row that is scored again at once does not blink. */
const patienceMs = 150;

/** One scoring at a time: a newer one ends the one before, whose rows are then never shown. */
export class LiveRuns {
  private readonly deps: LiveDeps;
  private running: AbortController | null = null;

  constructor(deps: LiveDeps) {
    this.deps = deps;
  }

  /** Settles when the rows are shown, or others took their place. What fails is shown, not thrown. */
  async score({ plan, rows, ...about }: LiveAsk): Promise<void> {
    this.running?.abort();
    const abort = (this.running = new AbortController());
    const show = (one: LiveShow | null): void => {
      if (this.running === abort) this.deps.show(one);
    };
    const of = rows.length * plan.checkpoints.length;
    const before: LiveShow = { ...about, checkpoints: plan.checkpoints, rows: rows.map(unscored), progress: { done: 0, of }, failure: null, noise: null };
    let done = 0;
    let late = false;
    const tell = (): void => show({ ...before, progress: { done, of } });
    const timer = setTimeout(() => {
      late = true;
      tell();
    }, patienceMs);
    const onScored = (count: number): void => {
      done = count;
      if (late) tell();
    };
    try {
      const noise = noiseFloor(plan.traces, () => this.deps.traces());
      const scored = await scoreRows(rows, plan, noise, await this.deps.scorer(), abort.signal, onScored);
      show({ ...before, rows: scored, progress: null, noise: await noise });
    } catch (error) {
      show(AppError.is(error, "cancelled") ? null : { ...before, progress: null, failure: messageOf(error) });
    } finally {
      clearTimeout(timer);
      if (this.running === abort) this.running = null;
    }
  }

  /** Ends what is being scored; the recorded prompts are shown again. */
  cancel(): void {
    this.running?.abort();
  }
}
