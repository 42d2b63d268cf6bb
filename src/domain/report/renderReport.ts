import { skillChart } from "./chart.ts";
import { filmGrid, type CellDetail } from "./filmGrid.ts";
import { Html, html, scriptJson } from "./html.ts";
import { reportModel, type ReportInput, type ReportModel } from "./reportModel.ts";
import { environmentSection, flagsSection, headerSection, limitsSection, replaySection, segmentsSection, skillsSection } from "./sections.ts";
import { script, styles } from "./styles.ts";

/**
 * The report as one HTML file that opens anywhere: no request leaves it (its own policy forbids any), every text from
 * models, data or files is escaped, and it prints.
 */
export function renderReport(input: ReportInput): string {
  const model = reportModel(input);
  const details: CellDetail[] = [];
  const films = model.films.map((film) => filmGrid(film, details));
  const page = html`<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="referrer" content="no-referrer">
<title>Seesaw report: ${model.pipeline.name}</title>
<style>${new Html(styles)}</style></head>
<body><main>
${headerSection(model)}
${skillsSection(model)}
${chartsSection(model)}
${flagsSection(model)}
<section><h2>Token by token</h2>
<p class="lead">For each skill the prompt that drifted most. <span class="token weakened">weakened</span> rank 2–3, or much less likely; <span class="token lost">lost</span> rank 4 or below; only falls beyond the rescoring noise are marked. Point at a token, or tab to it, for its numbers and what the checkpoint would rather write.</p>
${films.length === 0 ? html`<p class="muted">No two comparable checkpoints have been scored yet.</p>` : films}</section>
${segmentsSection(model)}
${replaySection(model)}
${environmentSection(model)}
${limitsSection(model)}
<footer>Made by Seesaw. This page holds everything it shows; nothing is loaded from elsewhere.</footer>
</main>
<div id="tip" role="tooltip" hidden></div>
<script type="application/json" id="details">${scriptJson(details)}</script>
<script>${new Html(script)}</script>
</body></html>
`;
  return page.text;
}

function chartsSection({ curves, spans }: ReportModel): Html {
  return html`<section><h2>The seesaw</h2>
<p class="lead">Above: share of answers that pass. Below: how the log-probability of the reference answers changed since M0. Shaded: the skill's own stage; marks: flags.</p>
<div class="charts">${curves.map((one) => html`<div class="card"><h3>${one.skill}</h3>${skillChart(one, spans)}</div>`)}</div>
<div class="legend"><span><i class="key"></i>in-domain (band: 95 % CI)</span><span><i class="key ood"></i>OOD</span></div></section>`;
}
