import { LitElement, css, html, nothing, type TemplateResult } from "lit";
import { weightMeasures, type WeightMeasure } from "../../src/domain/weights/weightGrid.ts";
import type { FromWeightsPage, WeightsState } from "../../src/protocol/weightsPage.ts";
import { t } from "../../src/util/l10n.ts";
import { controls, reportSections, shared } from "../styles.ts";
import "./capability-chart.ts";
import type { WeightsEndpoint } from "./endpoint.ts";
import "./heat-map.ts";
import { measureHelp, measureName } from "./wording.ts";

/** The Compare Weights page: which two checkpoints, the heat map of their difference, and what every checkpoint can do. */
export class WeightsApp extends LitElement {
  static override properties = { data: { attribute: false }, measure: { state: true } };
  declare data: WeightsState | null;
  declare private measure: WeightMeasure;
  private endpoint: WeightsEndpoint | undefined;

  static override styles = [
    shared,
    controls,
    reportSections,
    css`
      :host {
        display: block;
        min-height: 100vh;
        background: var(--vscode-editor-background);
      }
      .bar {
        height: 2px;
        background: var(--vscode-progressBar-background);
        transform-origin: left;
      }
      .choices {
        display: flex;
        flex-wrap: wrap;
        gap: 6px 16px;
        align-items: center;
        padding: 8px 16px;
        border-bottom: 1px solid var(--line);
      }
      .choices label {
        display: flex;
        gap: 6px;
        align-items: center;
      }
      .empty.error h2 {
        color: var(--vscode-errorForeground);
      }
    `,
  ];

  constructor() {
    super();
    this.data = null;
    this.measure = "relative";
  }

  /** Gives the page its way out. */
  connect(endpoint: WeightsEndpoint): void {
    this.endpoint = endpoint;
    this.measure = endpoint.remembered() ?? "relative";
  }

  override render(): TemplateResult {
    const { data } = this;
    if (data === null) return html`<div class="bar" role="progressbar" aria-label=${t("Reading the checkpoints")}></div>`;
    return html`<main>
      <h1 class="visually-hidden">${t("Compare Weights")}</h1>
      ${data.places.length < 2 && data.pipelines.length < 2 ? nothing : this.choices(data)} ${data.busy === null ? nothing : this.progress(data)}
      ${data.empty !== null ? this.empty(data.empty) : data.drift === null ? nothing : this.weights(data, data.drift)}
      ${data.capabilities.length === 0 ? nothing : this.capabilities(data)}
    </main>`;
  }

  override updated(): void {
    const { data } = this;
    this.renderRoot.querySelector<HTMLElement>(".bar.share")?.style.setProperty("transform", `scaleX(${Math.max(0.02, data?.busy ?? 0)})`);
    this.toggleAttribute("data-ready", data !== null && data.busy === null);
  }

  private choices(data: WeightsState): TemplateResult {
    const pick = (label: string, chosen: string, choose: (value: string) => void): TemplateResult =>
      html`<label>${label}
        <select .value=${chosen} @change=${(event: Event) => choose((event.target as HTMLSelectElement).value)}>
          ${data.places.map((place) => html`<option value=${place.label} ?selected=${place.label === chosen}>${place.title}</option>`)}
        </select>
      </label>`;
    return html`<div class="choices">
      ${data.pipelines.length < 2
        ? nothing
        : html`<label>${t("Pipeline")}
            <select @change=${(event: Event) => this.send({ type: "pipeline", file: (event.target as HTMLSelectElement).value })}>
              ${data.pipelines.map(({ file, label }) => html`<option value=${file} ?selected=${file === data.pipeline}>${label}</option>`)}
            </select>
          </label>`}
      ${pick(t("From"), data.from, (from) => this.send({ type: "choose", from, to: data.to === from ? data.from : data.to }))}
      ${pick(t("To"), data.to, (to) => this.send({ type: "choose", from: data.from === to ? data.to : data.from, to }))}
      <label>${t("Show")}
        <select @change=${(event: Event) => this.show((event.target as HTMLSelectElement).value as WeightMeasure)}>
          ${weightMeasures.map((measure) => html`<option value=${measure} ?selected=${measure === this.measure}>${measureName(measure)}</option>`)}
        </select>
      </label>
    </div>`;
  }

  private progress(data: WeightsState): TemplateResult {
    const percent = Math.round((data.busy ?? 0) * 100);
    return html`<div class="bar share" role="progressbar" aria-label=${t("Comparing {0} and {1}", data.from, data.to)} aria-valuenow=${percent}></div>
      <section><p role="status">${t("Comparing {0} and {1}: {2} %", data.from, data.to, percent)}</p><button class="solid" @click=${() => this.send({ type: "cancel" })}>${t("Cancel")}</button></section>`;
  }

  private empty({ kind, title, detail, action }: NonNullable<WeightsState["empty"]>): TemplateResult {
    return html`<section class="empty ${kind}" role=${kind === "error" ? "alert" : "status"}>
      <h2>${title}</h2>
      <p>${detail}</p>
      ${action === "retry" ? html`<button class="solid" @click=${() => this.send({ type: "retry" })}>${t("Try Again")}</button>` : nothing}
      ${action === "runStage" ? html`<button class="solid" @click=${() => this.send({ type: "runStage" })}>${t("Run Stage")}</button>` : nothing}
      ${kind === "error" ? html`<button class="solid" @click=${() => this.send({ type: "showLog" })}>${t("Show Log")}</button>` : nothing}
    </section>`;
  }

  private weights(data: WeightsState, drift: NonNullable<WeightsState["drift"]>): TemplateResult {
    const notes = [
      ...drift.notes,
      ...(drift.only_a.length > 0 ? [t("Only in {0}: {1}", data.from, drift.only_a.join(", "))] : []),
      ...(drift.only_b.length > 0 ? [t("Only in {0}: {1}", data.to, drift.only_b.join(", "))] : []),
    ];
    return html`<section>
      <div class="head">
        <h2>${t("Weights of {0} against {1}", data.to, data.from)}</h2>
        <button class="link" @click=${() => this.send({ type: "export", what: "weights" })}>${t("Export as CSV")}</button>
      </div>
      <seesaw-heat-map .drift=${drift} .measure=${this.measure}></seesaw-heat-map>
      <p>${measureHelp(this.measure, data.before, data.from)}</p>
      ${notes.length === 0 ? nothing : html`<ul>${notes.map((note) => html`<li>${note}</li>`)}</ul>`}
    </section>`;
  }

  private capabilities(data: WeightsState): TemplateResult {
    return html`<section>
      <div class="head">
        <h2>${t("What every checkpoint can do")}</h2>
        <button class="link" @click=${() => this.send({ type: "export", what: "capabilities" })}>${t("Export as CSV")}</button>
      </div>
      <seesaw-capability-chart .vectors=${data.capabilities} .strong=${[data.from, data.to]}></seesaw-capability-chart>
    </section>`;
  }

  private show(measure: WeightMeasure): void {
    this.measure = measure;
    this.endpoint?.remember(measure);
    // Ranks take much longer than the rest: they are computed when somebody looks at them.
    if (measure === "effective_rank" && this.data?.rank === false) this.send({ type: "rank", wanted: true });
  }

  private send(message: FromWeightsPage): void {
    this.endpoint?.post(message);
  }
}
