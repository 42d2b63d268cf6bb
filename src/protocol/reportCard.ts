/**
 * `media/battery/card.json`: what the battery found out about the default detector, for the editor and the command line. They
 * may say no more than is in here. Made by `npm run battery`; REPORT_CARD.md is the same at length.
 */

/** Steps; "missed": no alarm; "unmatched": an alarm, and the benchmark never proved the loss; null: no such event. */
export type LeadSteps = number | "missed" | "unmatched" | null;

export interface CardShare {
  hits: number;
  of: number;
  /** null where nothing was counted. */
  share: number | null;
  /** 95 % interval. */
  low: number;
  high: number;
}

export interface CardLeads {
  events: number;
  q1: LeadSteps;
  median: LeadSteps;
  q3: LeadSteps;
  median_low: LeadSteps;
  median_high: LeadSteps;
  /** Events with an alarm before. */
  ahead: CardShare;
}

/** The detector's figures on panels of so many rows. */
export interface CardPanel {
  rows: number;
  false_alarms: CardShare;
  precision: CardShare;
  recall: CardShare;
  /** Against the step at which the true loss crosses 5 points. */
  lead: CardLeads;
  /** Against the look at which a 200-row benchmark every 20 steps proves it. */
  lead_benchmark: CardLeads;
}

/** Shares of the same losses, one minus the other. */
export interface CardDifference {
  difference: number;
  low: number;
  high: number;
}

export interface ReportCard {
  v: 1;
  /** `alpha`: what bank A has tuned, a budget of false alarms, or the points of a `limit`. */
  detector: { id: string; family: string; parameters: Record<string, string | number>; alpha: number };
  /** The bank the figures are from: A was used to choose, so its figures flatter; the others were not. */
  bank: "A" | "B" | "C";
  tested: boolean;
  runs: { all: number; healthy: number; forgetting: number; mixed: number; left_out: number; bases: string[]; steps: number };
  /** False alarms per run that the setting is meant to keep to. */
  nominal: number;
  /** First the panel that the default was chosen on. */
  panels: CardPanel[];
  /** The same detector with the nominal rate as its budget instead of the tuned one (`detector.alpha`). */
  asked?: CardPanel | null;
  by_kind: Record<string, CardShare>;
  copies: CardShare;
  /** Skills with an event among the skills that count. */
  prevalence: CardShare;
  by_speed: { abrupt: CardLeads; gradual: CardLeads };
  /**
   * Against accuracy of the same rows at every look, threshold tuned on bank A: differences with 95 % intervals. `matched`: against
   * the threshold of accuracy whose false alarms on this bank come nearest to the detector's own without being more. `beats`: both
   * are clearly above 0.
   */
  against_accuracy: { ahead: CardDifference; matched: { drop: number; false_alarms: CardShare; ahead: CardDifference } | null; beats: boolean };
  /** The detector's own alarms at random looks. */
  random_ahead: CardShare;
  ships: "alarm" | "descriptive";
  /** Whether the word "early" may be used for it. */
  early: boolean;
  /** Whether the state "drifting" is hidden unless asked for. */
  watch_hidden: boolean;
  cost: { rows: number; run_share: number; benchmark_share: number; bytes_per_token: number | null; looks: number };
}

/** null where the text is no report card of this version: then there is nothing to say. */
export function parseReportCard(text: string): ReportCard | null {
  try {
    const card = JSON.parse(text) as ReportCard | null;
    const whole = card !== null && typeof card === "object" && card.v === 1 && typeof card.detector?.id === "string" && Array.isArray(card.panels) && card.panels.length > 0 && typeof card.ships === "string";
    return whole ? card : null;
  } catch {
    return null;
  }
}
