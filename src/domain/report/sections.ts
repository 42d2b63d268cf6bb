import { falseAlarmText } from "../run/flagText.ts";
import { formatBytes, formatDuration, formatInterval, formatNumber, formatPercent, formatPlural, formatSigned } from "../format.ts";
import { compareCost } from "../cost/measured.ts";
import { runSeconds } from "../run/reduceRun.ts";
import { flagMark } from "../drift/skillsTable.ts";
import { minimumDetectableDifference } from "../statistics/power.ts";
import type { FlagState } from "../../protocol/journal.ts";
import { Html, html } from "./html.ts";
import { coverageText, leftOutText, nearnessText } from "../rows/bufferText.ts";
import { splitFlags } from "./unwatched.ts";
import type { FlagFact } from "../run/flagCard.ts";
import type { ReportModel } from "./reportModel.ts";

const stateNames: Record<FlagState, string> = { drifting: "drifting", confirmed: "loss confirmed", recovered: "recovered", "not-measurable": "not measurable" };

export function headerSection({ pipeline, chain, flags, skills, made, formatTime, notes }: ReportModel): Html {
  const newest = new Map(flags.map((entry) => [`${entry.run} ${entry.id}`, entry.state]));
  const count = (state: FlagState): number => [...newest.values()].filter((one) => one === state).length;
  const ready = chain.checkpoints.filter(({ status }) => status !== "missing").length;
  return html`<header>
<h1>Seesaw report: ${pipeline.name}</h1>
<p class="lead">What each stage of the chain did to every skill. Made ${formatTime(made)} from the run folders next to <code>${pipeline.file}</code>.</p>
<div class="chain"><b>M0</b> <span>base</span>${pipeline.stages.map((stage) => html`<span>→ ${stage.id}${stage.replay === null ? "" : " + replay"} →</span> <b>M${stage.index}</b>${stage.from !== null && stage.from !== pipeline.stages[stage.index - 2]?.id ? html`<span>(from ${stage.from})</span>` : null}`)}</div>
<div class="tiles">
<div class="tile"><b>${ready} of ${chain.checkpoints.length}</b><span>checkpoints there</span></div>
<div class="tile"><b>${formatPlural(skills.rows.length, "set")}</b><span>of probes, ${formatPlural(pipeline.skills.length, "skill")}</span></div>
<div class="tile ${count("confirmed") > 0 ? "bad" : "good"}"><b>${count("confirmed")}</b><span>losses confirmed by the check</span></div>
<div class="tile ${count("drifting") > 0 ? "warn" : ""}"><b>${count("drifting")}</b><span>drifting, not confirmed</span></div>
<div class="tile"><b>${count("recovered")}</b><span>recovered</span></div>
</div>
${notes.length > 0 ? html`<ul class="limits">${notes.map((note) => html`<li>${note}</li>`)}</ul>` : null}
</header>`;
}

/** Share of answers that pass, with its interval, as a heat map. */
export function skillsSection({ skills: { columns, rows } }: ReportModel): Html {
  let last = "";
  return html`<section><h2>Skills × checkpoints</h2>
<p class="lead">Share of answers that pass the skill's check, with Wilson's interval (95 % CI). Outlined: the end of the skill's own stage; before it there is nothing to lose, so no colour.</p>
<div class="card"><table class="skills"><thead><tr><th></th><th></th>${columns.map(({ label, stage, status }) => html`<th scope="col"><b>${label}</b><br>${stage ?? "base"}${status === "ready" ? null : html` <span class="muted">${status}</span>`}</th>`)}</tr></thead>
<tbody>${rows.map(({ skill, split, cells }) => {
    const first = skill !== last;
    last = skill;
    return html`<tr class="${first ? "first" : ""}"><th scope="row"><b>${first ? skill : ""}</b></th><th scope="row">${split === "id" ? "in-domain" : "OOD"}</th>${cells.map((cell, index) => {
      if (cell.accuracy === null || cell.interval === null) return html`<td><div class="cell" style="--cell:transparent;--mix:0%"><span class="muted" title="${columns[index]?.reason ?? "The check was not run here."}">–</span></div></td>`;
      const ownColumn = columns.findIndex(({ stage }) => stage === skill);
      const own = index === ownColumn;
      // Before its own stage a skill has nothing to lose: no colour.
      const [colour, mix] = index < ownColumn ? ["soft", 7] : heat(cell.accuracy);
      return html`<td><div class="cell${own ? " own" : ""}${cell.stale ? " stale" : ""}" style="--cell:var(--${colour});--mix:${mix}%" title="${`${cell.correct} of ${cell.n} passed`}"><b>${formatPercent(cell.accuracy, 0)}</b><small>${formatInterval(cell.interval, 0)}</small>${cell.flag === null || cell.flag === "not-measurable" ? null : html`<span class="mark ${cell.flag}" title="${stateNames[cell.flag]} in this stage">${flagMark(cell.flag)}</span>`}</div></td>`;
    })}</tr>`;
  })}</tbody></table></div>
<div class="legend">${(["drifting", "confirmed", "recovered"] as const).map((state) => html`<span><span class="mark ${state}">${flagMark(state)}</span> ${stateNames[state]} in the stage that ends there</span>`)}</div>
${rows.filter(({ tooFew }) => tooFew !== null).map(({ skill, split, tooFew }) => html`<p class="note">${skill} ${split}: ${tooFew}</p>`)}
${columns.filter(({ status }) => status !== "ready").map(({ label, reason }) => html`<p class="note">${label}: ${reason}</p>`)}
</section>`;
}

function heat(accuracy: number): [string, number] {
  if (accuracy >= 0.8) return ["good", Math.round(10 + 60 * (accuracy - 0.8))];
  if (accuracy >= 0.4) return ["warn", Math.round(8 + 30 * Math.abs(0.6 - accuracy))];
  return ["bad", Math.round(10 + 35 * (0.4 - accuracy))];
}

function factList(facts: readonly FlagFact[]): Html | null {
  return facts.length === 0 ? null : html`<dl class="facts">${facts.map(({ label, text }) => html`<dt>${label}</dt><dd>${text}</dd>`)}</dl>`;
}

export function flagsSection({ flags: all, pipeline, cards, early, facts }: ReportModel): Html {
  const { flags, unwatched } = splitFlags(all);
  return html`<section><h2>${early ? "Early warnings" : "Warnings"}, in time order</h2>
<p class="lead">${falseAlarmText(pipeline.flags.alpha, facts?.card ?? null)}</p>
<div class="card">${
    flags.length === 0
      ? html`<p class="muted">No flags were raised.</p>`
      : html`<ol class="flags">${flags.map((flag) => html`<li><span class="mark ${flag.state}">${flagMark(flag.state)}</span><span class="at">${flag.stage} · step ${flag.step}</span><div><b>${flag.title}</b><p>${flag.text}</p>${factList(cards.get(flag) ?? [])}</div></li>`)}</ol>`
  }</div>
${unwatched.map((sentence) => html`<p class="note">${sentence}</p>`)}</section>`;
}

export function segmentsSection({ segments, chain }: ReportModel): Html | null {
  const labels = chain.checkpoints.map(({ label }) => label);
  const filled = segments.filter(({ lines }) => lines.some(({ kind }) => kind === "segment"));
  if (filled.length === 0) return null;
  return html`<section><h2>Which kind of token goes first</h2>
<p class="lead">Change of a token's mean log-probability in each stage, in nats, per kind of token (in-domain probes). −0.69 means half as likely.</p>
<div class="card"><table class="plain"><thead><tr><th>skill</th><th>tokens</th><th class="num">n</th>${labels.map((label) => html`<th class="num">${label}</th>`)}</tr></thead><tbody>
${filled.map(({ skill, lines }) => lines.filter(({ kind }) => kind !== "tag").map(({ kind, name, tokens, cells }, index) => html`<tr><td><b>${index === 0 ? skill : ""}</b></td><td>${kind === "all" ? "all" : name}</td><td class="num muted">${tokens}</td>${labels.map((label) => {
    const cell = cells.find((one) => one.label === label);
    const change = cell?.deltaPerToken ?? null;
    return html`<td class="num"${change === null ? null : html` title="perplexity ${formatNumber(cell?.perplexity, 3)}"`}><span class="${change !== null && change < -0.1 ? "mark confirmed" : change === null ? "muted" : ""}">${change === null ? "–" : formatSigned(change)}</span></td>`;
  })}</tr>`))}
</tbody></table></div></section>`;
}

export function replaySection({ replay }: ReportModel): Html {
  return html`<section><h2>Replay</h2>${
    replay.length === 0
      ? html`<p class="lead">No stage of this chain replays rows of earlier stages.</p>`
      : html`<div class="card"><table class="plain"><thead><tr><th>stage</th><th>buffer</th><th class="num">rows</th><th>from</th><th class="num">share</th><th class="num">draws</th><th class="num">distinct rows drawn</th><th>left out</th></tr></thead><tbody>${replay.map((one) => html`<tr><td>${one.stage}</td><td>${one.buffer}</td><td class="num">${one.rows}</td><td>${one.sources.map(({ stage, rows }) => `${stage} ${rows}`).join(", ")}</td><td class="num">${formatPercent(one.ratio, 0)}</td><td class="num">${one.draws}</td><td class="num">${one.distinct}</td><td>${leftOutText(one.dropped)}${(one.nearness ?? []).map((line) => html`<br>${nearnessText(line)}`)}${(one.coverage ?? []).map((line) => html`<br>${coverageText(line)}`)}</td></tr>`)}</tbody></table></div>`
  }</section>`;
}

export function environmentSection({ runs, formatTime, made }: ReportModel): Html {
  return html`<section><h2>Runs and their environment</h2>
<p class="lead">Two stages with the same fingerprint have the same recipe, arguments, data, start weights, probes and checks.</p>
<div class="card"><table class="plain"><thead><tr><th>run</th><th>started</th><th class="num">took</th><th class="num">steps</th><th class="num">probing</th><th class="num">peak memory</th><th>device</th><th>start</th><th>fingerprint</th></tr></thead><tbody>
${runs.map(({ id, stage, spec, state }) => html`<tr><td class="mono">${id}${state.attempt > 1 ? html` <small>(attempt ${state.attempt})</small>` : null}</td><td>${state.startedAt === null ? "–" : formatTime(state.startedAt * 1000)}</td><td class="num">${took(state, made)}</td><td class="num">${state.step}</td><td class="num">${formatPercent(state.probeShare, 0)}</td><td class="num">${peakCell({ id, stage, spec, state })}</td><td>${state.device ?? "–"}</td><td>${spec.start.label}</td><td class="mono">${spec.fingerprint.slice(0, 12)}</td></tr>`)}
</tbody></table></div>
${[...byPackages(runs)].map(([packages, stages]) => html`<p class="note">${stages.length === runs.length ? "All runs" : stages.join(", ")}: ${packages}</p>`)}</section>`;
}

/** The measured peak without Python itself, and what was predicted before the start. */
function peakCell(run: Parameters<typeof compareCost>[0]): Html {
  const memory = compareCost(run)?.rows.find(({ what }) => what === "memory");
  if (memory === undefined) return html`–`;
  return html`${formatBytes(memory.measured)}${memory.predicted === null ? null : html` <small>(predicted ${formatBytes(memory.predicted.expected)})</small>`}`;
}

function took(state: ReportModel["runs"][number]["state"], made: number): string {
  const seconds = runSeconds(state, made / 1000);
  return seconds === null ? "–" : formatDuration(seconds);
}

/** The stages by the packages they ran with: mostly all with the same. */
function byPackages(runs: ReportModel["runs"]): Map<string, string[]> {
  const groups = new Map<string, string[]>();
  for (const { stage, spec } of runs) {
    const packages = ["python", "torch", "transformers", "trl", "peft", "accelerate", "datasets", "safetensors"].flatMap((name) => (spec.versions[name] ? [`${name} ${spec.versions[name]}`] : [])).join(", ");
    groups.set(packages, [...(groups.get(packages) ?? []), stage]);
  }
  return groups;
}

/** What a reader must not conclude. */
export function limitsSection({ skills, pipeline, runs }: ReportModel): Html {
  const sizes = skills.rows.flatMap(({ cells }) => cells.flatMap(({ n }) => n ?? []));
  const smallest = sizes.length === 0 ? null : Math.min(...sizes);
  const single = runs.length > 0;
  return html`<section><h2>What this data does not show</h2><ul class="limits">
${smallest === null ? null : html`<li>The smallest set has ${formatPlural(smallest, "prompt")}: if one answer in five changes either way, the paired test will probably (80 %) see a loss only from ${Math.ceil(100 * minimumDetectableDifference(smallest, 0.2))} points on. “Unchanged” means that no larger change was seen.</li>`}
${single ? html`<li>Every stage was run once, with seed ${pipeline.seed}. How much another seed would change is not known from here.</li>` : null}
<li>Log-probabilities are those of the reference answers. A model may write another right answer: then the check passes although the reference became less likely, and the other way round.</li>
<li>A flag says that reference answers became less likely, or that the check fails more often, in that stage. It does not say which rows of its data caused it.</li>
<li>The prompts shown token by token are the ones that drifted most: they are the extreme, not the rule. The table above is the rule.</li>
<li>Skills without probes are not watched at all.</li>
</ul></section>`;
}
