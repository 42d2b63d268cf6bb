import { formatCount, formatDuration, formatNumber } from "../domain/format.ts";
import { runSeconds } from "../domain/run/reduceRun.ts";
import { queuedText, unreachableText } from "../domain/run/remoteText.ts";
import type { RunRecord } from "../storage/runs/runStore.ts";
import { oneLine, padTo, textWidth, type Output } from "./output.ts";

const phases: Record<string, string> = {
  preflight: "checking the inputs",
  load: "loading the model",
  probe: "scoring the probes",
  train: "training",
  eval: "running the checks",
  benchmark: "running the benchmarks",
  save: "saving a checkpoint",
};

/** Seconds between two plain lines where a line cannot be rewritten. */
const plainEverySeconds = 5;
const barWidth = 24;

/** Shows the progress of one stage: one rewritten line on a terminal, a plain line every few seconds elsewhere. */
export class ProgressLine {
  private readonly out: Output;
  private readonly width: number;
  private last = 0;
  private lastText = "";
  private run: RunRecord | null = null;
  private timer: NodeJS.Timeout | null = null;

  /** `nameWidth`: columns of the longest stage name, so that bars stand below each other. */
  constructor(out: Output, nameWidth: number) {
    this.out = out;
    this.width = nameWidth;
  }

  update(run: RunRecord): void {
    this.run = run;
    if (!this.out.live) return this.plain(run);
    this.draw();
    // The elapsed time goes on while a silent phase (loading, say) lasts.
    this.timer ??= setInterval(() => this.draw(), 500).unref();
  }

  end(): void {
    if (this.timer) clearInterval(this.timer);
    this.timer = null;
    this.run = null;
    this.out.rewrite("");
  }

  private draw(): void {
    if (!this.run) return;
    const { stage, state } = this.run;
    const { paint } = this.out;
    const share = state.total > 0 ? Math.min(1, state.step / state.total) : 0;
    const filled = Math.round(share * barWidth);
    const bar = paint("cyan", "█".repeat(filled)) + paint("dim", "░".repeat(barWidth - filled));
    const parts = [
      `${padTo(stage, this.width)}  ${bar}`,
      state.total > 0 ? `${String(state.step).padStart(String(state.total).length)}/${state.total}` : "",
      state.loss === null ? "" : `loss ${formatNumber(state.loss, 3)}`,
      state.tokensPerSecond === null ? "" : `${formatCount(state.tokensPerSecond)} tokens/s`,
      state.etaSeconds === null ? "" : `ETA ${formatDuration(state.etaSeconds)}`,
      paint("dim", phaseText(this.run)),
      paint("dim", elapsed(this.run)),
    ];
    this.out.rewrite(fit(parts.filter((part) => part !== ""), this.out.width));
  }

  private plain(run: RunRecord): void {
    const now = Date.now() / 1000;
    const text = plainText(run);
    if (now - this.last < plainEverySeconds || text === this.lastText) return;
    this.last = now;
    this.lastText = text;
    this.out.note(text);
  }
}

/** `math: step 40/80, loss 0.412, 12,345 tokens/s, ETA 9 s, training` */
export function plainText({ stage, state }: Pick<RunRecord, "stage" | "state">): string {
  const far = farText(state);
  if (far !== null) return `${stage}: ${[far, state.total > 0 ? `step ${state.step}/${state.total}` : ""].filter((part) => part !== "").join(", ")}`;
  const parts = [
    state.total > 0 ? `step ${state.step}/${state.total}` : state.status,
    state.loss === null ? "" : `loss ${formatNumber(state.loss, 3)}`,
    state.tokensPerSecond === null ? "" : `${formatCount(state.tokensPerSecond)} tokens/s`,
    state.etaSeconds === null ? "" : `ETA ${formatDuration(state.etaSeconds)}`,
    state.phase === null ? "" : (phases[state.phase] ?? state.phase),
  ];
  return `${stage}: ${parts.filter((part) => part !== "").join(", ")}`;
}

/** What only a run on another machine is: waiting in a queue, out of reach, or asked for and not begun. */
function farText({ status, remote, lastSeq }: RunRecord["state"]): string | null {
  if (remote === null) return null;
  if (status === "queued") return queuedText(remote);
  if (status === "unreachable") return unreachableText(remote, Date.now() / 1000);
  return status === "starting" && lastSeq === 0 ? `submitted to ${remote.target}` : null;
}

function phaseText({ state }: RunRecord): string {
  const far = farText(state);
  if (far !== null) return far;
  if (state.status === "stopping") return "stopping";
  return state.phase === null ? "starting" : (phases[state.phase] ?? state.phase);
}

function elapsed({ spec, state }: RunRecord): string {
  const now = Date.now() / 1000;
  return formatDuration(runSeconds(state, now) ?? Math.max(0, now - spec.created));
}

/** Joins what fits in one line; the last parts go first. */
function fit(parts: string[], width: number): string {
  for (let count = parts.length; count > 1; count--) {
    const line = parts.slice(0, count).join("  ");
    if (textWidth(line) < width) return line;
  }
  return oneLine(parts[0] ?? "", width - 1);
}
