import type { ReportCard } from "../../protocol/reportCard.ts";
import { atRandom } from "./card.ts";
import { differenceText, leadsText, parametersText, percent, pointsText, shareText, stepsText, table } from "./cardText.ts";
import { formatNumber } from "../format.ts";
import { bestPoint } from "./amoc.ts";
import type { BankCandidate, BankFile } from "./bank.ts";
import { bestOfFamilies, choiceRows, isVariant, ranking } from "./choose.ts";
import { bytesPerDay, costsOf } from "./costs.ts";
import { figuresOf, pairedOf, type Figures } from "./figures.ts";
import { runKinds } from "./rawRun.ts";
import { placeOf } from "./series.ts";

/** REPORT_CARD.md, from the committed JSON alone: the same files give the same text. */
export function cardMarkdown(card: ReportCard, a: BankFile, b: BankFile | null): string {
  const bank = b ?? a;
  const sections = [
    "# Report card of the early warning",
    "Made by `npm run battery` from [media/battery](media/battery); do not edit. Words and rules: [.github/battery-protocol.md](.github/battery-protocol.md), amended once before bank B was judged (it says when and why). Brackets after a share are its 95 % interval; leads are in training steps, the median first, then the middle half.",
    inShort(card),
    whatWasRun(bank),
    comparison(card, a, bank),
    detail(card),
    losses(card, bank),
    curves(bank),
    costs(card, bank),
    b === null ? null : onBankA(card, a),
    limits(bank),
  ];
  return `${sections.filter((one) => one !== null).join("\n\n")}\n`;
}

function inShort(card: ReportCard): string {
  const panel = card.panels[0] as ReportCard["panels"][number];
  const { lead } = panel;
  const leads = (of: typeof lead): string => (of.events === 0 ? "no events" : `${leadsText(withNumbers(of))} steps`);
  const lines = [
    `- **The detector**: \`${card.detector.family}\` (${parametersText(card.detector.parameters)}), ${knobText(card.detector.family, card.detector.alpha)}, on ${panel.rows} probe rows a skill. It won on bank A among the detectors that keep their false-alarm rate there.`,
    card.tested
      ? `- **The figures are from bank B**: ${card.runs.all} runs from another base, with settings fixed before.`
      : "- **Not tested yet.** The figures are from bank A, on which the detector was chosen: they flatter it. Nothing may be claimed from them, so it ships as a description only.",
    `- **False alarms**: ${shareText(panel.false_alarms)} of the healthy runs showed any; meant are at most ${percent(card.nominal)}. A/A copies: ${shareText(card.copies)}.`,
    `- **Found**: ${shareText(panel.recall)} of the losses of 5 points or more, ${shareText(lead.ahead)} before the loss crossed 5 points. The same alarms at random looks: ${shareText(card.random_ahead)}.`,
    `- **Lead** before the crossing: ${leads(lead)}; before a 200-row benchmark every 20 steps proves it: ${leads(panel.lead_benchmark)}.`,
    `- **Right when it alarms**: ${shareText(panel.precision)}, where ${percent(card.prevalence.share ?? 0)} of the watched skills were lost.`,
    `- **Against accuracy of the same rows at every look**: ${pointsText(card.against_accuracy.ahead)} more of the losses flagged before the crossing. ${againstAccuracy(card)}`,
  ];
  const loud = card.copies.hits > 0 ? "it alarmed on A/A copies" : `the upper limit of its false-alarm rate, ${percent(panel.false_alarms.high)}, is above twice the nominal one`;
  const why = (reason: string): string => (card.tested ? reason : "bank B was not run");
  const verdict = [
    card.ships === "alarm" ? "It ships as an alarm." : `It ships as a **description only**: ${why(loud)}.`,
    card.early ? "The word \"early\" may be used for it." : `The word "early" is **not** used for it: ${why("its median lead is not above 0")}.`,
    card.watch_hidden ? `Its state "drifting" is **hidden** unless asked for: ${why("fewer than half of its alarms were right")}.` : "Its state \"drifting\" is shown.",
  ];
  return `## In short\n${lines.join("\n")}\n\nBy the rules fixed before: ${verdict.join(" ")}`;
}

/** What bank A has tuned: a limit in points, or a budget. */
function knobText(family: string, knob: number): string {
  return family === "limit" ? `limit ${Number(knob.toPrecision(3))} points` : `budget ${percent(knob)} a run`;
}

function againstAccuracy({ against_accuracy: { ahead, matched, beats } }: ReportCard): string {
  const price = "What remains is the price: scoring needs no generation.";
  const equal = matched === null ? "" : `a drop of ${formatNumber(matched.drop * 100, 1)} points alarms as often (${shareText(matched.false_alarms)}), and against it the difference is ${pointsText(matched.ahead)}`;
  if (beats) return `That is a clear margin${equal === "" ? "" : `, also at equal false alarms: ${equal}`}.`;
  if (ahead.high < 0) return `Accuracy is clearly ahead of it. ${price}`;
  if (ahead.low > 0) return `But it alarms more often; at equal false alarms there is **no clear margin**: ${equal}. ${price}`;
  return `That is no clear margin: generating and checking the panel's answers at every look does as well. ${price}`;
}

/** "missed" and "unmatched" as the infinities they stand for. */
function withNumbers(leads: ReportCard["panels"][number]["lead"]): { events: number; q1: number; median: number; q3: number } {
  const number = (value: typeof leads.median): number => (value === null ? NaN : value === "missed" ? -Infinity : value === "unmatched" ? Infinity : value);
  return { events: leads.events, q1: number(leads.q1), median: number(leads.median), q3: number(leads.q3) };
}

function whatWasRun(bank: BankFile): string {
  const rows = runKinds.filter((kind) => bank.runs.some((run) => run.kind === kind)).map((kind) => {
    const runs = bank.runs.filter((run) => run.kind === kind);
    const count = (wanted: string): number => runs.filter((run) => run.class === wanted).length;
    const skills = runs.flatMap((run) => run.truth);
    const events = skills.filter((one) => one.class === "event");
    return [kind, runs.length, count("healthy"), count("forgetting"), count("mixed"), events.length, events.filter((one) => one.transient).length, events.filter((one) => one.speed === "abrupt").length, skills.filter((one) => one.class === "grey").length];
  });
  const left = bank.left_out.length === 0 ? "" : `\n\nLeft out: ${bank.left_out.map(({ file, why }) => `${file} (${why})`).join("; ")}`;
  const total = rows.reduce<(string | number)[]>((sums, row) => sums.map((sum, at) => (at === 0 ? sum : Number(sum) + Number(row[at]))), ["all", 0, 0, 0, 0, 0, 0, 0, 0]);
  return `## What was run\nBank ${bank.bank}, ${bank.runs.length} trainings of the sandbox's tiny model. What a run counts as is decided by 1,000 generated and checked answers a skill at every look, never by what the run was made for. Mixed runs have a grey skill (lost 2 to 5 points, or not settled) and no event; grey skills count neither for nor against anyone.\n\n${table(["kind", "runs", "healthy", "forgetting", "mixed", "skills lost", "of them undone", "of them abrupt", "grey skills"], [...rows, total])}${left}`;
}

const figureHead = ["candidate", "false alarms, healthy runs", "right when it alarms", "losses found", "before the crossing", "lead, crossing", "lead, benchmark"];

function figureRow(label: string, figures: Figures): string[] {
  return [label, shareText(figures.falseAlarms), shareText(figures.precision), shareText(figures.recall), shareText(figures.truth.ahead), leadsText(figures.truth), leadsText(figures.benchmark)];
}

/** With what was tuned on bank A: a budget, or the threshold of a score; the exact tests' thresholds are −ln of a budget. */
function labelOf({ id, label, kind, family, knob, parameters }: BankCandidate): string {
  if (knob === null) return `${label}: no setting keeps the rate`;
  if ("alpha" in parameters || (family === "baseline" && Object.keys(parameters).length > 0)) return label;
  const tested = /^(benchmark|mcnemar)/.test(id);
  if (family === "limit") return `${label}; ${knobText(family, knob)}`;
  return `${label}; ${kind === "level" || tested ? `budget ${percent(tested ? Math.exp(-knob) : knob)}` : `above ${Number(knob.toPrecision(3))}`}`;
}

function comparison(card: ReportCard, a: BankFile, bank: BankFile): string {
  const best = bestOfFamilies(a);
  const nominal = bank.candidates.filter((one) => isVariant(one) && ("alpha" in one.parameters || one.id.startsWith(card.detector.id))).map(({ id }) => id);
  const shown = [...new Set([card.detector.id, ...best, ...nominal])];
  const baselines = bank.candidates.filter((one) => one.family === "baseline").map(({ id }) => id);
  const of = (id: string): BankCandidate => bank.candidates[placeOf(bank, id)] as BankCandidate;
  const rows = [
    ...shown.map((id) => figureRow(`${id === card.detector.id ? "**" : ""}${labelOf(of(id))}${id === card.detector.id ? "**" : ""}`, figuresOf(bank, id))),
    figureRow("The winner's own alarms at random looks", atRandom(bank, card.detector.id)),
    ...baselines.map((id) => figureRow(labelOf(of(id)), figuresOf(bank, id))),
  ];
  const rivals = [...best.filter((id) => id !== card.detector.id), ...baselines.filter((id) => of(id).knob !== null)];
  const paired = rivals.map((id) => {
    const { ahead, steps } = pairedOf(bank, card.detector.id, id);
    return [of(id).label, pointsText(ahead), `${differenceText(steps.difference)} (${differenceText(steps.low)} … ${differenceText(steps.high)})`];
  });
  return `## Every candidate\nThe best of each family and all baselines, each tuned on bank A to at most ${percent(card.nominal)} of its healthy runs with an alarm, measured on bank ${bank.bank}. "never seen": the candidate alarmed and the benchmark never proved the loss.\n\n${table(figureHead, rows)}\n\n### The winner minus each of them\nOn the same losses, whole runs resampled. Positive: the winner is ahead; ∞: only the winner alarmed, −∞: only the other.\n\n${table(["against", "losses flagged before the crossing", "median difference, steps"], paired)}`;
}

function detail(card: ReportCard): string {
  const rows = card.panels.map((panel) => [panel.rows, shareText(panel.false_alarms), shareText(panel.precision), shareText(panel.recall), shareText(panel.lead.ahead), leadsText(withNumbers(panel.lead)), leadsText(withNumbers(panel.lead_benchmark))]);
  const kinds = Object.entries(card.by_kind).map(([kind, share]) => [kind, shareText(share)]);
  const speeds = (["abrupt", "gradual"] as const).map((speed) => [speed, card.by_speed[speed].events, shareText(card.by_speed[speed].ahead), leadsText(withNumbers(card.by_speed[speed]))]);
  return `## The winner by size of the panel\n${table(["probe rows", ...figureHead.slice(1)], [...rows].sort((x, y) => Number(x[0]) - Number(y[0])))}\n\n## By speed of the loss\nAbrupt: from 1 to 5 points within a twelfth of the steps. Where the loss is abrupt nothing can be early.\n\n${table(["speed", "losses", "before the crossing", "lead, crossing"], speeds)}\n\n## False alarms by kind of healthy run\n${table(["kind", "runs with an alarm"], kinds)}`;
}

function losses(card: ReportCard, bank: BankFile): string {
  const figures = figuresOf(bank, card.detector.id);
  const rows = [
    ["losses that lasted, found", shareText(figures.recallLasting)],
    ["losses that were undone by the end, found", shareText(figures.recallTransient)],
    ["alarms on grey skills, which count neither way", shareText(figures.grey)],
    ["flagged before the look at which 1,000 rows prove the loss", shareText(figures.shown.ahead)],
    ["lead before that look", leadsText(figures.shown)],
    ["flagged before the 200-row benchmark proves it", shareText(figures.benchmark.ahead)],
  ];
  return `## More about the winner\n${table(["", ""], rows)}`;
}

function curves(bank: BankFile): string {
  const rates = [0, 0.05, 0.1, 0.2, 0.3, 0.5];
  const rows = bank.amoc.map((curve) => [
    bank.candidates[placeOf(bank, curve.id)]?.label ?? curve.id,
    ...rates.map((rate) => {
      const point = bestPoint(curve, rate);
      return point === null ? "–" : `${percent(point.ahead)}; ${point.delay === null ? "missed" : stepsText(point.delay)}`;
    }),
  ]);
  return `## Delay against false alarms (AMOC)\nAt each false-alarm rate per healthy run: the share of losses flagged before the crossing, and the median delay in steps after it (negative: before; missed: more than half were). Tuned on bank ${bank.bank} itself, so it compares the candidates at equal rates and says nothing about how a setting carries over. A budget has a grid, so a detector may stay below the rate it is allowed.\n\n![Losses flagged before their crossing, over the rate of false alarms](media/battery/curves.svg)\n\n${table(["candidate", ...rates.map((rate) => `≤ ${percent(rate)}`)], rows)}`;
}

function costs(card: ReportCard, bank: BankFile): string {
  const rows = [choiceRows, 128, 256].map((n) => costsOf(bank, n)).map((one) => [one.rows, percent(one.look_share), percent(one.run_share), percent(one.answers_share), percent(one.benchmark_share)]);
  const bytes = card.cost.bytes_per_token;
  const tokens = costsOf(bank, choiceRows).tokens;
  const storage = bytes === null ? "" : `\n\nStorage: ${bytes.toFixed(0)} bytes for each scored token (measured on the sample's traces, everything kept). ${choiceRows} rows of each watched skill are about ${tokens.toFixed(0)} tokens here; a look every 10 minutes keeps ${(bytesPerDay(tokens, bytes, 10) / 1e6).toFixed(1)} MB a day.`;
  return `## What watching costs\nProcessor seconds against those of the training itself, ${card.cost.looks.toFixed(0)} looks in ${card.runs.steps} steps of a model that trains in seconds: far denser than a real run's. Scoring here includes the exact KL, which only baselines need.\n\n${table(["probe rows a skill", "one look, per 100 steps of training", "scoring, all looks", "with answers generated as well", "200-row benchmark every 20 steps"], rows)}${storage}`;
}

function onBankA(card: ReportCard, a: BankFile): string {
  const rows = ranking(a).slice(0, 12).map((figures) => figureRow(labelOf(a.candidates[placeOf(a, figures.id)] as BankCandidate), figures));
  return `## On bank A, where it was chosen\nThe twelve best of ${a.candidates.filter((one) => one.family !== "baseline" && one.rows === choiceRows && !isVariant(one)).length} settings on ${choiceRows} rows; the gap between these figures and bank B's is what choosing has flattered.\n\n${table(figureHead, rows)}\n\nChosen: \`${card.detector.id}\`.`;
}

function limits(bank: BankFile): string {
  const [bases, starts] = [new Set(bank.runs.map(({ base }) => base)).size, new Set(bank.runs.map(({ start }) => start)).size];
  return `## What this does not show
- Anything about large models: these have under a million weights, four made-up skills with one right answer each, and trainings of seconds. The rates and leads are those of this sandbox.
- Independent runs: the bank's ${bank.runs.length} runs start from ${starts} checkpoints of ${bases === 1 ? "one base" : `${bases} bases`} and share their held-out rows, so the intervals are too narrow for "another base".
- A loss that is only in free generation: detectors score verified answers. The truth here is generated, so such losses count as missed.
- The user's own prevalence: how often an alarm is right depends on how often skills are lost, and here that was arranged.
- That a false alarm is false: a loss below 2 points is real and counts as none.`;
}
