import { formatPlural } from "../format.ts";
import { Html, html } from "../report/html.ts";
import { styles } from "../report/styles.ts";
import { inEnglish } from "../../util/l10n.ts";
import { skillsIn } from "./arenaCharts.ts";
import { arenaStyles } from "./arenaHtmlStyles.ts";
import type { ArenaResult } from "./arenaResult.ts";
import { confusionSection, costSection, missingSection, notesSection, planeSection, questionsSection, skillsSection, sweepSection, testsSection } from "./arenaSections.ts";

/**
 * The arena as one HTML file that opens anywhere: no request leaves it (its own policy forbids any, scripts too), every text
 * from files is escaped, and it prints. Like every report it is in English.
 */
export function arenaHtml(result: ArenaResult): string {
  return inEnglish(() => page(result)).text;
}

function page(result: ArenaResult): Html {
  const there = result.entries.filter(({ scores }) => scores !== null).length;
  return html`<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="referrer" content="no-referrer">
<title>Seesaw arena: ${result.pipeline}</title>
<style>${new Html(styles)}${new Html(arenaStyles)}</style></head>
<body><main>
<header><h1>Seesaw arena: ${result.pipeline}</h1>
<p class="lead">What every remedy restores of the old skills and keeps of the new one, from the same chain, the same rows and the same budget (${result.budget}).</p>
<div class="tiles">
<div class="tile"><b>${there} of ${result.entries.length}</b><span>systems with results</span></div>
<div class="tile"><b>${result.seeds.length}</b><span>${result.seeds.length === 1 ? "seed" : "seeds"}: ${result.seeds.join(", ")}</span></div>
<div class="tile"><b>${skillsIn(result).length}</b><span>skills${result.newSkill === null ? "" : `; new: ${result.newSkill}; old: ${result.oldSkills.join(", ")}`}</span></div>
<div class="tile"><b>${(result.comparison?.rows ?? []).filter(({ p }) => p !== null).length}</b><span>paired tests, corrected together</span></div>
</div></header>
${there === 0 ? html`<section><h2>Nothing has finished yet</h2><p class="lead">Run <code>seesaw arena</code>: ${formatPlural(result.entries.length, "system")} will be compared.</p></section>` : html`${planeSection(result)}${testsSection(result)}${questionsSection(result)}${skillsSection(result)}${sweepSection(result)}${confusionSection(result)}${costSection(result)}`}
${missingSection(result)}
${notesSection(result)}
<footer>Made by Seesaw. This page holds everything it shows; nothing is loaded from elsewhere.</footer>
</main></body></html>
`;
}
