import type { BankFile } from "./bank.ts";
import { clusteredInterval, clusteredShare, exactShare, type Share } from "./clustered.ts";
import { leadBeforeBenchmark, leadOf, quantileOf } from "./leads.ts";
import { eventsOf, seriesOf, type Series } from "./series.ts";

/** A distribution of leads in steps; ±∞ as in leads.ts. */
export interface Leads {
  events: number;
  q1: number;
  median: number;
  q3: number;
  /** 95 % interval of the median, runs resampled. */
  medianInterval: { low: number; high: number };
  /** Share of the events with a lead above 0. */
  ahead: Share;
}

export interface Figures {
  id: string;
  /** Healthy runs with any alarm. */
  falseAlarms: Share;
  byKind: Record<string, Share>;
  /** Of the alarmed skills that are event or clean: those with an event. */
  precision: Share;
  /** Events among those skills, alarmed or not. */
  prevalence: Share;
  /** Events with an alarm at any time. */
  recall: Share;
  recallLasting: Share;
  recallTransient: Share;
  truth: Leads;
  /** Against the look at which the oracle's 1,000 rows prove the loss. */
  shown: Leads;
  benchmark: Leads;
  bySpeed: { abrupt: Leads; gradual: Leads };
  /** Alarms on grey skills, which count neither way. */
  grey: Share;
  /** A/A copies of the start with any alarm. */
  copies: Share;
}

const computed = new WeakMap<BankFile, Map<string, Figures>>();

/** Computed once per bank and candidate: the card and its text ask for the same ones. */
export function figuresOf(bank: BankFile, id: string): Figures {
  const known = computed.get(bank) ?? new Map<string, Figures>();
  computed.set(bank, known);
  const figures = known.get(id) ?? figuresOfSeries(bank, id, seriesOf(bank, id));
  known.set(id, figures);
  return figures;
}

export function figuresOfSeries(bank: BankFile, id: string, series: readonly Series[]): Figures {
  const alarmed = new Set(series.filter(({ alarm }) => alarm !== null).map(({ cluster }) => cluster));
  const runShare = (wanted: (run: BankFile["runs"][number]) => boolean): Share => {
    const runs = bank.runs.map((run, cluster) => ({ run, cluster })).filter(({ run }) => wanted(run));
    return exactShare(runs.filter(({ cluster }) => alarmed.has(cluster)).length, runs.length);
  };
  const healthy = bank.runs.filter((run) => run.class === "healthy");
  const events = eventsOf(series);
  const judged = series.filter(({ truth }) => truth.class !== "grey");
  const found = (units: readonly Series[]): Share => clusteredShare(units.map(({ cluster, alarm }) => ({ cluster, hit: alarm !== null })));
  const benchmarks = seriesOf(bank, "benchmark");
  const withBenchmark = series.map((one, index) => ({ ...one, lead: leadBeforeBenchmark(one.alarm, benchmarks[index]?.alarm ?? null) }));
  return {
    id,
    falseAlarms: runShare((run) => run.class === "healthy"),
    byKind: Object.fromEntries([...new Set(healthy.map((run) => run.kind))].sort().map((kind) => [kind, runShare((run) => run.class === "healthy" && run.kind === kind)])),
    precision: clusteredShare(judged.filter(({ alarm }) => alarm !== null).map(({ cluster, truth }) => ({ cluster, hit: truth.class === "event" }))),
    prevalence: clusteredShare(judged.map(({ cluster, truth }) => ({ cluster, hit: truth.class === "event" }))),
    recall: found(events),
    recallLasting: found(events.filter(({ truth }) => !truth.transient)),
    recallTransient: found(events.filter(({ truth }) => truth.transient)),
    truth: leadsOf(events.map((one) => ({ cluster: one.cluster, lead: leadOf(one) }))),
    shown: leadsOf(events.map(({ cluster, truth, alarm }) => ({ cluster, lead: alarm === null ? -Infinity : (truth.shown as number) - alarm }))),
    benchmark: leadsOf(withBenchmark.filter(({ truth }) => truth.class === "event")),
    bySpeed: {
      abrupt: leadsOf(events.filter(({ truth }) => truth.speed === "abrupt").map((one) => ({ cluster: one.cluster, lead: leadOf(one) }))),
      gradual: leadsOf(events.filter(({ truth }) => truth.speed === "gradual").map((one) => ({ cluster: one.cluster, lead: leadOf(one) }))),
    },
    grey: found(series.filter(({ truth }) => truth.class === "grey")),
    copies: runShare((run) => run.kind === "copy"),
  };
}

export function leadsOf(units: readonly { cluster: number; lead: number }[]): Leads {
  const leads = units.map(({ lead }) => lead);
  return {
    events: leads.length,
    q1: quantileOf(leads, 0.25),
    median: quantileOf(leads, 0.5),
    q3: quantileOf(leads, 0.75),
    medianInterval: clusteredInterval(units, (drawn) => quantileOf(drawn.map(({ lead }) => lead), 0.5)),
    ahead: clusteredShare(units.map(({ cluster, lead }) => ({ cluster, hit: lead > 0 }))),
  };
}

/** How one candidate does against another on the same events: positive where `a` is ahead. */
export interface Paired {
  events: number;
  /** Difference of the shares of events flagged before the crossing. */
  ahead: { difference: number; low: number; high: number };
  /** Median of the differences in steps; two misses are 0. */
  steps: { difference: number; low: number; high: number };
}

export function pairedOf(bank: BankFile, a: string, b: string): Paired {
  return pairedSeries(seriesOf(bank, a), seriesOf(bank, b));
}

export function pairedSeries(first: readonly Series[], second: readonly Series[]): Paired {
  const units = first.map((one, index) => ({ one, other: second[index] as Series })).filter(({ one }) => one.truth.class === "event").map(({ one, other }) => {
    const [mine, theirs] = [leadOf(one), leadOf(other)];
    return { cluster: one.cluster, ahead: Number(mine > 0) - Number(theirs > 0), steps: mine === theirs ? 0 : mine - theirs };
  });
  const meanAhead = (list: readonly { ahead: number }[]): number => list.reduce((sum, { ahead }) => sum + ahead, 0) / list.length;
  const middle = (list: readonly { steps: number }[]): number => quantileOf(list.map(({ steps }) => steps), 0.5);
  return {
    events: units.length,
    ahead: { difference: meanAhead(units), ...clusteredInterval(units, meanAhead) },
    steps: { difference: middle(units), ...clusteredInterval(units, middle) },
  };
}
