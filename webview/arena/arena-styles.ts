import { css } from "lit";

/** What all tables and pictures of the arena share. Families differ by the shape of their marks; their colours only help. */
export const arenaStyles = css`
  :host {
    display: block;
    --chart-text: var(--vscode-foreground);
    --chart-line: var(--vscode-contrastBorder, var(--vscode-editorIndentGuide-background1, var(--vscode-widget-border)));
    --chart-font: var(--vscode-font-family);
    --page: var(--vscode-editor-background);
    --family-chain: var(--vscode-foreground);
    --family-replay: var(--vscode-charts-blue);
    --family-tuning: var(--vscode-charts-orange);
    --family-distill: var(--vscode-charts-purple);
    --family-merge: var(--vscode-charts-green);
    --family-experts: var(--vscode-charts-red);
    --family-joint: var(--vscode-descriptionForeground);
  }
  :host-context(.vscode-high-contrast) {
    --chart-line: color-mix(in srgb, var(--vscode-contrastBorder) 40%, transparent);
  }
  .scroll {
    overflow-x: auto;
  }
  table {
    border-collapse: collapse;
    font-size: 12px;
    line-height: 18px;
    font-variant-numeric: tabular-nums;
  }
  th,
  td {
    padding: 3px 12px 3px 0;
    font-weight: normal;
    text-align: left;
    vertical-align: top;
    white-space: nowrap;
    border-bottom: 1px solid var(--chart-line);
  }
  thead th {
    vertical-align: bottom;
    color: var(--dim);
  }
  tbody th,
  td b {
    font-weight: 600;
  }
  tr.strong > * {
    background: color-mix(in srgb, var(--vscode-foreground) 6%, transparent);
  }
  .group {
    padding-left: 12px;
    border-left: 1px solid var(--chart-line);
  }
  .number {
    text-align: right;
  }
  .gain {
    font-weight: 600;
    color: var(--passed);
  }
  .loss {
    font-weight: 600;
    color: var(--failed);
  }
`;
