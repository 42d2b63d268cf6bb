import type { CardDifference, CardLeads, CardPanel, CardShare, LeadSteps, ReportCard } from "../../protocol/reportCard.ts";
import { alarmsIn } from "./alarmText.ts";
import { atRandomLooks } from "./baselines/chance.ts";
import type { BankCandidate, BankFile } from "./bank.ts";
import { choiceRows, decide, ranking } from "./choose.ts";
import type { Share } from "./clustered.ts";
import { costsOf } from "./costs.ts";
import { figuresOf, figuresOfSeries, pairedOf, type Figures, type Leads } from "./figures.ts";
import { placeOf, seriesOfAlarms } from "./series.ts";
import { allowedRate } from "./tune.ts";

/**
 * The report card. The detector is the one that wins on bank A; the figures are those of bank B where it was run, and of bank A, said so, where it was not.
 * Throws where bank A has no detector that keeps its false-alarm rate: then there is no default to report on.
 */
export function reportCard(a: BankFile, b: BankFile | null, bytesPerToken: number | null): ReportCard {
  const winner = ranking(a)[0];
  if (winner === undefined) throw new Error("On bank A no detector keeps the false-alarm rate, so there is none to report on. Look at media/battery/bank-A.json and at the detectors.");
  const bank = b ?? a;
  const chosen = a.candidates[placeOf(a, winner.id)] as BankCandidate;
  const figures = figuresOf(bank, winner.id);
  const decisions = decide(figures, allowedRate);
  const accuracy = pairedOf(bank, winner.id, `drop-n${choiceRows}`);
  const matched = matchedAccuracy(bank, figures);
  const cost = costsOf(bank, choiceRows);
  const classes = (wanted: string): number => bank.runs.filter((run) => run.class === wanted).length;
  return {
    v: 1,
    detector: { id: winner.id, family: chosen.family, parameters: chosen.parameters, alpha: chosen.knob as number },
    bank: bank.bank,
    tested: b !== null,
    runs: { all: bank.runs.length, healthy: classes("healthy"), forgetting: classes("forgetting"), mixed: classes("mixed"), left_out: bank.left_out.length, bases: [...new Set(bank.runs.map(({ base }) => base))].sort(), steps: bank.runs[0]?.looks.at(-1) ?? 0 },
    nominal: allowedRate,
    panels: [chosen, ...sameSetting(bank, chosen)].map(({ id, rows }) => panelOf(rows as number, figuresOf(bank, id))),
    asked: askedFor(bank, chosen),
    by_kind: Object.fromEntries(Object.entries(figures.byKind).map(([kind, share]) => [kind, cardShare(share)])),
    copies: cardShare(figures.copies),
    prevalence: cardShare(figures.prevalence),
    by_speed: { abrupt: cardLeads(figures.bySpeed.abrupt), gradual: cardLeads(figures.bySpeed.gradual) },
    against_accuracy: { ahead: roundAll(accuracy.ahead), matched, beats: accuracy.ahead.low > 0 && (matched === null || matched.ahead.low > 0) },
    random_ahead: cardShare(atRandom(bank, winner.id).truth.ahead),
    // Bank A has chosen this detector, so what A says about it proves nothing.
    ships: b === null ? "descriptive" : decisions.ships,
    early: b !== null && decisions.early,
    watch_hidden: b === null || decisions.watchHidden,
    cost: { rows: cost.rows, run_share: round(cost.run_share), benchmark_share: round(cost.benchmark_share), bytes_per_token: bytesPerToken === null ? null : round(bytesPerToken), looks: cost.looks },
  };
}

/**
 * Accuracy at the detector's own rate of false alarms: more alarms flag more losses whoever raises them, so a margin over a
 * threshold that alarms less proves nothing. Only thresholds that were fixed before the bank was opened; null where none alarms as seldom.
 */
function matchedAccuracy(bank: BankFile, winner: Figures): ReportCard["against_accuracy"]["matched"] {
  const rates = bank.candidates
    .filter(({ id, rows, knob }) => /^drop-/.test(id) && rows === choiceRows && knob !== null)
    .map((candidate) => ({ candidate, figures: figuresOf(bank, candidate.id) }))
    .filter(({ figures }) => figures.falseAlarms.hits <= winner.falseAlarms.hits)
    .sort((a, b) => b.figures.falseAlarms.hits - a.figures.falseAlarms.hits);
  const [nearest] = rates;
  if (nearest === undefined) return null;
  return { drop: nearest.candidate.knob as number, false_alarms: cardShare(nearest.figures.falseAlarms), ahead: roundAll(pairedOf(bank, winner.id, nearest.candidate.id).ahead) };
}

/** The same detector at the nominal budget itself, untuned. */
function askedFor(bank: BankFile, chosen: BankCandidate): CardPanel | null {
  const found = bank.candidates.find((one) => one.id === `${chosen.id}@${allowedRate}`);
  return found === undefined ? null : panelOf(found.rows as number, figuresOf(bank, found.id));
}

/** The same detector with the same parameters on panels of other sizes. */
function sameSetting(bank: BankFile, chosen: BankCandidate): BankCandidate[] {
  const wanted = JSON.stringify(chosen.parameters);
  return bank.candidates.filter((one) => one.family === chosen.family && one.id !== chosen.id && JSON.stringify(one.parameters) === wanted);
}

/** A candidate's alarms at random looks: what its rate of alarms alone would give. */
export function atRandom(bank: BankFile, id: string): Figures {
  const place = placeOf(bank, id);
  const moved = bank.runs.map((run) => atRandomLooks(alarmsIn(run.alarms[place] as string), run.id, run.looks.length));
  return figuresOfSeries(bank, id, seriesOfAlarms(bank, moved));
}

function panelOf(rows: number, figures: Figures): CardPanel {
  return {
    rows,
    false_alarms: cardShare(figures.falseAlarms),
    precision: cardShare(figures.precision),
    recall: cardShare(figures.recall),
    lead: cardLeads(figures.truth),
    lead_benchmark: cardLeads(figures.benchmark),
  };
}

function cardShare({ hits, of, share, low, high }: Share): CardShare {
  return { hits, of, share: Number.isNaN(share) ? null : round(share), low: round(low), high: round(high) };
}

function cardLeads(leads: Leads): CardLeads {
  return {
    events: leads.events,
    q1: steps(leads.q1),
    median: steps(leads.median),
    q3: steps(leads.q3),
    median_low: steps(leads.medianInterval.low),
    median_high: steps(leads.medianInterval.high),
    ahead: cardShare(leads.ahead),
  };
}

function steps(lead: number): LeadSteps {
  if (Number.isNaN(lead)) return null;
  if (!Number.isFinite(lead)) return lead > 0 ? "unmatched" : "missed";
  return Math.round(lead * 10) / 10;
}

const round = (value: number): number => Math.round(value * 10_000) / 10_000;
/** Without an event everything is possible. */
function roundAll({ difference, low, high }: CardDifference): CardDifference {
  return { difference: Number.isNaN(difference) ? 0 : round(difference), low: Number.isNaN(low) ? -1 : round(low), high: Number.isNaN(high) ? 1 : round(high) };
}
