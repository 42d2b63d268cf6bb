import { LitElement, html, nothing, type TemplateResult } from "lit";
import { confusionsOf, planeOf, sweepsOf } from "../../src/domain/arena/arenaCharts.ts";
import type { ArenaTable } from "../../src/domain/arena/arenaCsv.ts";
import type { ArenaPageState, ArenaPlan, ArenaProgress, FromArenaPage } from "../../src/domain/arena/arenaPage.ts";
import type { ArenaResult } from "../../src/domain/arena/arenaResult.ts";
import { jobsText, missingGroups } from "../../src/domain/arena/arenaText.ts";
import { formatPlural } from "../../src/domain/format.ts";
import { t } from "../../src/util/l10n.ts";
import { controls, reportSections, shared } from "../styles.ts";
import "./arena-confusion.ts";
import "./arena-cost.ts";
import "./arena-plane.ts";
import "./arena-questions.ts";
import "./arena-skills.ts";
import "./arena-sweep.ts";
import "./arena-tests.ts";
import { appStyles } from "./app-styles.ts";
import type { ArenaEndpoint } from "./endpoint.ts";
import { noteTexts, systemName } from "./wording.ts";

/** The Arena page: how far it is, the plane with its tests, every skill, the curves of merges, what routers picked, and the cost. */
export class ArenaApp extends LitElement {
  static override properties = { data: { attribute: false } };
  declare data: ArenaPageState | null;
  private endpoint: ArenaEndpoint | undefined;

  static override styles = [shared, controls, reportSections, appStyles];

  constructor() {
    super();
    this.data = null;
  }

  /** Gives the page its way out. */
  connect(endpoint: ArenaEndpoint): void {
    this.endpoint = endpoint;
  }

  override render(): TemplateResult {
    const { data } = this;
    if (data === null) return html`<div class="bar" role="progressbar" aria-label=${t("Reading the arena")}></div>`;
    return html`<main>
      <h1 class="visually-hidden">${t("Arena")}</h1>
      ${data.empty === null ? html`${this.head(data)}${this.body(data)}` : this.empty(data.empty)}
    </main>`;
  }

  override updated(): void {
    const { data } = this;
    const progress = data?.progress ?? null;
    this.renderRoot.querySelector<HTMLElement>(".bar.share")?.style.setProperty("transform", `scaleX(${progress === null || progress.stages === 0 ? 0 : progress.done / progress.stages})`);
    this.toggleAttribute("data-ready", data !== null && !data.reading);
  }

  private head(data: ArenaPageState): TemplateResult {
    const { progress, plan } = data;
    const busy = progress !== null && (progress.running.length > 0 || progress.held);
    const more = progress !== null && progress.done < progress.stages;
    return html`<div class="head-bar">
        ${data.mayRun ? html`<button class="solid" ?disabled=${busy} @click=${() => this.send({ type: "run" })}>${progress !== null && progress.done > 0 && more ? t("Go On with the Arena") : t("Run Arena")}</button>` : nothing}
        ${data.mayRun && busy ? html`<button class="solid" @click=${() => this.send({ type: "stop" })}>${t("Stop Arena")}</button>` : nothing}
        ${data.result === null ? nothing : html`<button class="link" @click=${() => this.send({ type: "export", what: "html" })}>${t("Export HTML")}</button>`}
        ${data.output ? html`<button class="link" @click=${() => this.send({ type: "openOutput" })}>${t("Show Output")}</button>` : nothing}
        <span class="fill"></span>
        <span class="dim">${plan === null ? data.pipeline : t("{0} · {1} · budget: {2}", data.pipeline, formatPlural(plan.seeds.length, "seed"), plan.budget)}</span>
      </div>
      ${progress === null || progress.stages === 0 ? nothing : this.progress(data, progress)}
      ${data.mayRun ? nothing : html`<p class="notice" role="note">${t("This workspace is not trusted: the arena is shown, and nothing can be started.")}</p>`}`;
  }

  private progress(data: ArenaPageState, { stages, done, running, failed, held }: ArenaProgress): TemplateResult {
    const idle = running.length === 0 && !held;
    const now = running.map(({ seed, stage, step, total }) => (total > 0 ? t("{0} (seed {1}, step {2} of {3})", stage, seed, step, total) : t("{0} (seed {1})", stage, seed)));
    const state = now.length > 0 ? t("running {0}", now.join(", ")) : held ? t("the next stage is about to start") : done === stages ? t("nothing runs") : t("nothing runs now");
    return html`<div class="track"><div class="bar share" role="progressbar" aria-label=${t("Stages of the arena")} aria-valuemin="0" aria-valuemax=${stages} aria-valuenow=${done}></div></div>
      <p class="status" role="status">${t("{0} of {1} stages done, {2}.", done, stages, state)}${data.reading ? html` ${t("Reading the results …")}` : nothing}${idle && done < stages && data.mayRun && data.jobs !== null ? html` ${jobsText(data.jobs)}` : nothing}</p>
      ${failed.length === 0 ? nothing : html`<ul class="failed">${failed.map(({ seed, stage, why }) => html`<li>${t("{0}, seed {1}: {2}", stage, seed, why)}</li>`)}</ul>`}`;
  }

  private body(data: ArenaPageState): TemplateResult {
    const { result, plan } = data;
    const shown = result !== null && result.entries.some(({ scores }) => scores !== null);
    if (!shown) return this.nothingYet(data, plan);
    return html`${this.plane(result)} ${this.tests(result)} ${this.questions(result)} ${this.skills(result)} ${this.sweeps(result)} ${this.confusions(result)} ${this.cost(result)} ${this.missing(result)} ${this.notes(result)}`;
  }

  private nothingYet({ reading, progress }: ArenaPageState, plan: ArenaPlan | null): TemplateResult {
    if (reading && progress === null) return html`<section><p role="status">${t("Reading the arena …")}</p></section>`;
    return html`<section class="empty" role="status">
      <h2>${t("No system has finished yet")}</h2>
      <p>${t("Every remedy is compared with the chain on the same prompts, as soon as its last stage is done. Runs go on when this window is closed.")}</p>
      ${plan === null ? nothing : html`<p>${t("Remedies: {0}.", plan.systems.map(({ id }) => id).join(", "))}</p>`}
    </section>`;
  }

  private plane(result: ArenaResult): TemplateResult {
    const plane = planeOf(result);
    const kinds = new Map(result.entries.map(({ id, kind }) => [id, kind]));
    return html`<section>
      <div class="head"><h2>${t("Restore the old, keep the new")}</h2>${this.csv("scores")}</div>
      ${plane === null ? html`<p>${t("There is no system yet with both old skills and a new one.")}</p>` : html`<seesaw-arena-plane .plane=${plane} .kinds=${kinds} .old=${result.oldSkills} .fresh=${result.newSkill ?? ""}></seesaw-arena-plane>`}
    </section>`;
  }

  private tests(result: ArenaResult): TemplateResult {
    return html`<section>
      <div class="head"><h2>${t("Against the chain")}</h2>${result.comparison === null ? nothing : this.csv("tests")}</div>
      <seesaw-arena-tests .result=${result}></seesaw-arena-tests>
      <p>${t("Means over the seeds with 95 % intervals over prompts and seeds; below them the difference to the chain in points, paired by prompt and seed. p* is corrected for all {0} tests (Holm). “Sees” is the smallest drop that such a test would show four times in five, with these prompts and seeds. “Not shown” is no proof of none.", result.comparison?.rows.filter(({ p }) => p !== null).length ?? 0)}</p>
    </section>`;
  }

  private questions(result: ArenaResult): TemplateResult {
    return html`<section>
      <div class="head"><h2>${t("The four questions")}</h2>${this.csv("questions")}</div>
      <seesaw-arena-questions .result=${result}></seesaw-arena-questions>
      <p>${t("Of every system by itself, with 95 % intervals: the share of the old skills that is kept since their own stages; the points by which the new skill rose over the checkpoint before its stage; how much more, or less, the OOD sets changed than the in-domain ones since the base; the share of prompts that a router sent to the expert of their skill; and the mean change of the old skills since their own stages, in points.")}</p>
    </section>`;
  }

  private skills(result: ArenaResult): TemplateResult {
    return html`<section>
      <div class="head"><h2>${t("Skill by skill")}</h2>${this.csv("scores")}</div>
      <seesaw-arena-skills .result=${result}></seesaw-arena-skills>
      <p>${t("Pass rates in-domain and, dashed, OOD: the bar is the mean, the line its 95 % interval, points are single seeds.")}</p>
    </section>`;
  }

  private sweeps(result: ArenaResult): TemplateResult | typeof nothing {
    const curves = sweepsOf(result);
    if (curves.length === 0) return nothing;
    return html`<section>
      <div class="head"><h2>${t("Sensitivity to the merge coefficient")}</h2>${this.csv("sweep")}</div>
      ${curves.map((curve) => html`<h3>${systemName({ kind: "merge", title: curve.title })}</h3><seesaw-arena-sweep .curve=${curve}></seesaw-arena-sweep>`)}
    </section>`;
  }

  private confusions(result: ArenaResult): TemplateResult | typeof nothing {
    const tables = confusionsOf(result);
    if (tables.length === 0) return nothing;
    const kindOf = (id: string): "experts" | "together" => (result.entries.find((entry) => entry.id === id)?.kind === "together" ? "together" : "experts");
    return html`<section>
      <div class="head"><h2>${t("What the routers picked")}</h2>${this.csv("routing")}</div>
      <div class="side">${tables.map((table) => html`<div><h3>${systemName({ kind: kindOf(table.id), title: table.title })}</h3><seesaw-arena-confusion .table=${table} .name=${systemName({ kind: kindOf(table.id), title: table.title })}></seesaw-arena-confusion></div>`)}</div>
      <p>${t("Share of each skill's prompts, all sets together, that went to each expert: means over the seeds. Outlined: the skill's own expert.")} ${t("Below, by set of prompts and with 95 % intervals: the share that went to their own skill's expert, the same with every skill counting alike, and the regret, the points that the best expert for each prompt would have got besides.")}</p>
    </section>`;
  }

  private cost(result: ArenaResult): TemplateResult {
    return html`<section>
      <div class="head"><h2>${t("Cost")}</h2>${this.csv("cost")}</div>
      <seesaw-arena-cost .result=${result}></seesaw-arena-cost>
      <p>${t("Means over the seeds of a system's own stages; what it shares with others, such as specialists that are its teachers, stands apart. FLOPs by the rules 6ND and 2ND, seconds of training, memory of the largest stage.")}</p>
    </section>`;
  }

  private missing({ entries }: ArenaResult): TemplateResult | typeof nothing {
    const missing = missingGroups(entries);
    if (missing.length === 0) return nothing;
    return html`<section><h2>${t("What is not there")}</h2><ul>${missing.map(({ entries: of, text }) => html`<li>${of.map(systemName).join("; ")}: ${text}</li>`)}</ul></section>`;
  }

  private notes(result: ArenaResult): TemplateResult {
    return html`<section><h2>${t("What this shows, and what not")}</h2><ul>${noteTexts(result).map((note) => html`<li>${note}</li>`)}</ul></section>`;
  }

  private empty({ kind, title, detail, action }: NonNullable<ArenaPageState["empty"]>): TemplateResult {
    return html`<section class="empty ${kind}" role=${kind === "error" ? "alert" : "status"}>
      <h2>${title}</h2>
      <p>${detail}</p>
      ${action === "retry" ? html`<button class="solid" @click=${() => this.send({ type: "retry" })}>${t("Try Again")}</button>` : nothing}
      ${action === "openPipeline" ? html`<button class="solid" @click=${() => this.send({ type: "openPipeline" })}>${t("Open seesaw.yaml")}</button>` : nothing}
      ${kind === "error" ? html`<button class="solid" @click=${() => this.send({ type: "showLog" })}>${t("Show Log")}</button>` : nothing}
    </section>`;
  }

  private csv(what: ArenaTable): TemplateResult {
    return html`<button class="link" @click=${() => this.send({ type: "export", what })}>${t("Export as CSV")}</button>`;
  }

  private send(message: FromArenaPage): void {
    this.endpoint?.post(message);
  }
}
