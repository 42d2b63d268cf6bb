import { formatBytes, formatCount, formatDuration, formatInterval, formatNumber, formatPercent } from "../format.ts";
import { dropText, estimateText, intervalText, verdictOf } from "../evaluation/evaluationText.ts";
import type { EvaluationRow } from "../evaluation/evaluationRow.ts";
import { html, type Html } from "../report/html.ts";
import { flopsText, measuredShare, missingGroups, pText, splitName, verdictClass } from "./arenaText.ts";
import { confusionsOf, families, planeOf, routedSetsOf, shownEntries, skillsIn, sweepsOf, testOf, testedMeasures, type ConfusionTable, type Family, type TestedMeasure } from "./arenaCharts.ts";
import { dotsSvg, sweepSvg } from "./arenaDrawings.ts";
import { shapePath } from "./arenaMarks.ts";
import { planeSvg } from "./arenaPlaneSvg.ts";
import type { ArenaCost, ArenaEntry, ArenaResult, Share } from "./arenaResult.ts";

const familyNames: Readonly<Record<Family, string>> = { chain: "the chain", replay: "replay", tuning: "fine-tuning on own or specialists' answers", distill: "distillation", merge: "merging", experts: "experts and router", joint: "joint training (upper bound)" };
const measureTitles: Readonly<Record<TestedMeasure, string>> = { "old-skills": "old skills", "new-skill": "new skill", ood: "OOD" };

export function planeSection(result: ArenaResult): Html {
  const plane = planeOf(result);
  if (plane === null) return html`<section><h2>Restore the old, keep the new</h2><p class="lead">There is no system yet with both old skills and a new one.</p></section>`;
  const used = families.filter((family) => plane.points.some((point) => point.family === family));
  return html`<section><h2>Restore the old, keep the new</h2>
<p class="lead">Up and to the right is better. Lines are 95 % intervals over prompts and seeds; small points are single seeds; the area of a mark is the number of tokens that its own stages trained on (merging trains on none). Axes show the range of the data.</p>
<div class="card">${planeSvg(plane, result.oldSkills.join(", "), result.newSkill ?? "")}
<div class="legend">${used.map((family) => html`<span class="f-${family}"><svg viewBox="0 0 14 14" aria-hidden="true"><path class="shape" d="${shapePath(family, 7, 7, 5)}"/></svg><b>${familyNames[family]}</b></span>`)}</div></div></section>`;
}

/** Every system against the chain, prompt by prompt. */
export function testsSection(result: ArenaResult): Html {
  const rows = shownEntries(result);
  const tests = result.comparison?.rows.filter(({ p }) => p !== null).length ?? 0;
  return html`<section><h2>Against the chain</h2>
<p class="lead">Mean pass rates, and below them their difference to the chain in points, paired by prompt and seed; both with 95 % intervals. p* is corrected for ${tests} tests (Holm). “Sees” is the smallest drop that such a test would show four times in five, with these prompts and seeds: a smaller one mostly goes unseen. “Not shown” is no proof of none.</p>
${result.comparison === null ? html`<p class="muted">The chain and a remedy have no finished seed in common yet.</p>` : html`<div class="card"><table class="plain dense"><thead><tr><th scope="col">system</th><th scope="col" class="num">seeds</th>${testedMeasures.map((measure) => html`<th scope="col" class="group">${measureTitles[measure]}<small>pass rate, and change</small></th><th scope="col">p*<small>sees</small></th>`)}</tr></thead>
<tbody>${rows.map((entry) => html`<tr class="${entry.kind === "chain" ? "strong" : ""}"><th scope="row" class="name">${entry.title}</th><td class="num">${entry.seeds.length}</td>${testedMeasures.map((measure) => testCells(entry, measure, result))}</tr>`)}</tbody></table></div>
${notesOf(result.comparison.notes)}`}</section>`;
}

/** Many of them, while an arena is half done, are folded away. */
function notesOf(notes: readonly string[]): Html {
  const list = notes.map((note) => html`<p class="note">${note}</p>`);
  return notes.length <= 3 ? html`${list}` : html`<details class="note"><summary>${notes.length} systems were compared on fewer seeds than were run</summary>${list}</details>`;
}

function testCells(entry: ArenaEntry, measure: TestedMeasure, result: ArenaResult): Html {
  const share = measuredShare(entry, measure);
  const value = share === null ? html`–` : html`<b>${formatPercent(share.value, 0)}</b> <small>${formatInterval(share.interval, 0)}</small>`;
  if (entry.kind === "chain") return html`<td class="group thin">${value}<br><small>the baseline</small></td><td></td>`;
  const row = testOf(result, entry.id, measure);
  if (row === undefined || row.estimate === null) return html`<td class="group">${value}<br><small>${row?.why ?? "not compared"}</small></td><td></td>`;
  return html`<td class="group thin">${value}<br><span class="${verdictClass(row)}">${estimateText(row)}</span> <small>(${intervalText(row)})</small></td><td class="thin">${pText(row)} <small>${verdictOf(row)}</small><br><small>${dropText(row)}</small></td>`;
}

/** The four questions of every system by itself, against where the chain began and stood. */
export function questionsSection(result: ArenaResult): Html {
  const row = (entry: ArenaEntry, measure: string): Html => {
    const found = entry.questions.find((one) => one.measure === measure);
    if (found === undefined || found.estimate === null) return html`<td class="muted" title="${found?.why ?? ""}">–</td>`;
    return html`<td class="thin">${estimateText(found)} <small>${intervalText(found)}</small></td>`;
  };
  return html`<section><h2>The four questions</h2>
<p class="lead">Of every system by itself: which share of the old skills is kept since their own stages, how much the new skill gained since the checkpoint before its stage, how much more (or less) the OOD sets changed than the in-domain sets since the base, and which share of the prompts a router sent to the expert of their skill (by set of prompts). BWT: the mean change of the old skills since their own stages, in points. Intervals are 95 %.</p>
<div class="card"><table class="plain dense"><thead><tr><th scope="col">system</th><th scope="col">retention</th><th scope="col">gain of the new skill</th><th scope="col">OOD less ID change</th><th scope="col">routing</th><th scope="col">BWT</th></tr></thead>
<tbody>${shownEntries(result).map((entry) => {
    const routing = routedSetsOf(entry);
    return html`<tr class="${entry.kind === "chain" ? "strong" : ""}"><th scope="row" class="name">${entry.title}</th>${row(entry, "retention")}${row(entry, "gain")}${row(entry, "ood-shift")}<td class="thin">${routing.length === 0 ? html`<small>no router</small>` : routing.map(({ split, accuracy }) => html`<div>${accuracy.estimate === null ? html`<span title="${accuracy.why ?? ""}">–</span>` : html`${estimateText(accuracy)} <small>${intervalText(accuracy)} ${splitName(split)}</small>`}</div>`)}</td>${row(entry, "bwt")}</tr>`;
  })}</tbody></table></div></section>`;
}

export function skillsSection(result: ArenaResult): Html {
  const skills = skillsIn(result);
  return html`<section><h2>Skill by skill</h2>
<p class="lead">Pass rates on the in-domain and the OOD probes: the mean over the seeds, its 95 % interval as a bar from 0 to 100 %, and every seed as a point.</p>
<div class="card"><table class="plain"><thead><tr><th scope="col">system</th>${skills.map((skill) => html`<th scope="col" class="group">${skill}${skill === result.newSkill ? html`<small>new</small>` : null}</th>`)}</tr></thead>
<tbody>${shownEntries(result).map(({ title, kind, scores }) => html`<tr class="${kind === "chain" ? "strong" : ""}"><th scope="row" class="name">${title}</th>${skills.map((skill) => html`<td class="group">${shareCell(scores?.skills[skill]?.id ?? null, "id")}${shareCell(scores?.skills[skill]?.ood ?? null, "ood")}</td>`)}</tr>`)}</tbody></table></div>
<div class="legend"><span><i class="key"></i>in-domain</span><span><i class="key ood"></i>OOD</span></div></section>`;
}

function shareCell(share: Share | null, split: "id" | "ood"): Html | null {
  if (share === null) return null;
  return html`<div class="thin">${formatPercent(share.value, 0)} <small>${formatNumber(100 * share.interval.low, 0)} to ${formatNumber(100 * share.interval.high, 0)}${split === "ood" ? " OOD" : ""}</small></div>${dotsSvg(share, split)}`;
}

/** How the coefficient of a merge decides. */
export function sweepSection(result: ArenaResult): Html | null {
  const curves = sweepsOf(result);
  if (curves.length === 0) return null;
  return html`<section><h2>Sensitivity to the merge coefficient</h2>
<p class="lead">The same models merged with other weights, each skill's in-domain pass rate. These points are measured on the prompts of the tables: the best one, picked afterwards, would flatter the merge.</p>
<div class="charts">${curves.map((curve) => html`<div class="card"><h3>${curve.title}</h3>${sweepSvg(curve)}
<table class="plain"><thead><tr><th scope="col">weight</th>${curve.skills.map((skill) => html`<th scope="col" class="num">${skill}</th>`)}</tr></thead><tbody>${curve.points.map(({ weight, skills }) => html`<tr><th scope="row">${weight}</th>${curve.skills.map((skill) => html`<td class="num thin">${skills[skill] == null ? "–" : html`${formatPercent(skills[skill].value, 0)} <small>${formatInterval(skills[skill].interval, 0)}</small>`}</td>`)}</tr>`)}</tbody></table></div>`)}</div></section>`;
}

export function confusionSection(result: ArenaResult): Html | null {
  const tables = confusionsOf(result);
  if (tables.length === 0) return null;
  return html`<section><h2>What the routers picked</h2>
<p class="lead">Share of each skill's prompts, all sets together, that went to each expert: means over the seeds. Outlined: the skill's own expert. Below, by set of prompts and with 95 % intervals: the share that went to their own skill's expert, the same with every skill counting alike, and the regret, the points that the best expert for each prompt would have got besides.</p>
<div class="charts">${tables.map(confusionCard)}</div></section>`;
}

function confusionCard({ title, skills, rows, sets }: ConfusionTable): Html {
  const cell = (row: EvaluationRow | null): Html => (row === null || row.estimate === null ? html`<td class="num" title="${row?.why ?? ""}">–</td>` : html`<td class="num thin">${estimateText(row)}<br><small>${intervalText(row)}</small></td>`);
  return html`<div class="card"><h3>${title}</h3><table class="plain"><thead><tr><th scope="col">expert</th>${skills.map((skill) => html`<th scope="col" class="num">${skill}</th>`)}</tr></thead>
<tbody>${rows.map(({ expert, shares }) => html`<tr><th scope="row">${expert}</th>${shares.map((share, index) => html`<td class="heat${skills[index] === expert ? " right" : ""}" style="--share:${formatNumber(share, 3)}">${formatPercent(share, 0)}</td>`)}</tr>`)}</tbody></table>
<table class="plain routed"><thead><tr><th scope="col">set</th><th scope="col" class="num">prompts</th><th scope="col" class="num">own expert</th><th scope="col" class="num">mean of skills</th><th scope="col" class="num">regret</th></tr></thead>
<tbody>${sets.map(({ split, accuracy, balanced, regret }) => html`<tr><th scope="row">${splitName(split)}</th><td class="num">${accuracy.n === 0 ? "–" : formatCount(accuracy.n)}</td>${cell(accuracy)}${cell(balanced)}${cell(regret)}</tr>`)}</tbody></table></div>`;
}

export function costSection(result: ArenaResult): Html {
  return html`<section><h2>Cost</h2>
<p class="lead">Means over the seeds: of a system's own stages, and, apart from them, of what it shares with others, such as specialists that are its teachers. FLOPs are counted by the rules 6ND and 2ND; seconds are those of training; memory is the peak of its largest stage.</p>
<div class="card"><table class="plain"><thead><tr><th scope="col">system</th><th scope="col" class="num">steps</th><th scope="col" class="num">tokens</th><th scope="col" class="num">FLOPs</th><th scope="col" class="num">training</th><th scope="col" class="num">peak memory</th><th scope="col" class="num group">shared tokens</th><th scope="col" class="num">shared FLOPs</th><th scope="col" class="num">shared training</th></tr></thead>
<tbody>${shownEntries(result).map(({ title, kind, cost: { own, shared } }) => html`<tr class="${kind === "chain" ? "strong" : ""}"><th scope="row" class="name">${title}</th><td class="num">${own === null ? "–" : formatNumber(own.optimizerSteps, 0)}</td>${spent(own)}<td class="num">${own === null ? "–" : formatBytes(own.peakMemory)}</td>${spent(shared, "group")}</tr>`)}</tbody></table></div></section>`;
}

function spent(cost: ArenaCost | null, first = ""): Html {
  return html`<td class="num ${first}">${cost === null ? "–" : formatCount(cost.tokens)}</td><td class="num">${cost === null ? "–" : flopsText(cost.flops)}</td><td class="num thin">${cost === null ? "–" : cost.seconds === 0 ? "0" : formatDuration(cost.seconds)}</td>`;
}

export function missingSection({ entries }: ArenaResult): Html | null {
  const missing = missingGroups(entries);
  if (missing.length === 0) return null;
  return html`<section><h2>What is not there</h2><div class="card"><table class="plain"><tbody>${missing.map(({ entries: of, text }) => html`<tr><th scope="row">${of.map(({ title }) => html`<div class="name">${title}</div>`)}</th><td class="wrap">${text}</td></tr>`)}</tbody></table></div></section>`;
}

export function notesSection({ notes, seeds }: ArenaResult): Html {
  return html`<section><h2>What this shows, and what not</h2><ul class="limits">
<li>All systems start from the same chain, answer the same prompts and are judged by the same checks, under the seeds ${seeds.join(", ")}. A difference is one between these remedies with these settings, on this model, these skills and this data.</li>
<li>It does not say how they would rank on another model, at another size, with more data or with settings tuned for each: an untuned remedy may lose to a tuned one.</li>
<li>Probes are not the benchmark: run one before a release.</li>
${notes.map((note) => html`<li>${note}</li>`)}</ul></section>`;
}
