import { css } from "lit";

/** What all elements share. Colours come from the theme only. */
export const shared = css`
  :host {
    color: var(--vscode-foreground);
    font-family: var(--vscode-font-family);
    font-size: var(--vscode-font-size);
    --dim: var(--vscode-descriptionForeground);
    --line: var(--vscode-contrastBorder, var(--vscode-panel-border, var(--vscode-widget-border, transparent)));
    --passed: var(--vscode-seesaw-checkPassed);
    --failed: var(--vscode-seesaw-checkFailed);
    --mono: var(--vscode-editor-font-family, monospace);
  }
  :host([hidden]),
  [hidden] {
    display: none;
  }
  *,
  *::before,
  *::after {
    box-sizing: border-box;
  }
  h3 {
    margin: 0;
    font-size: 11px;
    font-weight: 600;
    line-height: 16px;
    letter-spacing: 0.02em;
    color: var(--vscode-sideBarSectionHeader-foreground, var(--vscode-foreground));
  }
  .dim {
    color: var(--dim);
    font-weight: normal;
  }
  .number {
    text-align: right;
    font-variant-numeric: tabular-nums;
    white-space: nowrap;
  }
  .passed {
    color: var(--passed);
  }
  .failed {
    color: var(--failed);
  }
  .not-run,
  .before {
    color: var(--dim);
  }
  :focus {
    outline: none;
  }
  :focus-visible {
    outline: 1px solid var(--vscode-focusBorder);
    outline-offset: -1px;
  }
  .visually-hidden {
    position: absolute;
    width: 1px;
    height: 1px;
    margin: -1px;
    overflow: hidden;
    clip-path: inset(50%);
    white-space: nowrap;
  }
`;

/** How a token class looks: a background and a line of its own kind, so that the hue is never alone. */
export const tokenClasses = css`
  .token {
    border-bottom: 2px solid transparent;
  }
  .token.weakened {
    background: var(--vscode-seesaw-tokenWeakenedBackground);
    border-bottom: 2px dotted var(--vscode-seesaw-tokenWeakenedLine);
  }
  .token.lost {
    background: var(--vscode-seesaw-tokenLostBackground);
    border-bottom: 2px solid var(--vscode-seesaw-tokenLostLine);
  }
  /* Without backgrounds the lines must differ on their own. */
  :host-context(.vscode-high-contrast) .token.lost {
    border-bottom: 4px double var(--vscode-seesaw-tokenLostLine);
  }
`;

/** What one presses and writes in: links among text, buttons, and fields as VS Code draws them. */
export const controls = css`
  button.link {
    flex: none;
    padding: 0;
    font: inherit;
    font-size: 11px;
    color: var(--vscode-textLink-foreground);
    background: none;
    border: 0;
    cursor: pointer;
  }
  button.link:hover {
    text-decoration: underline;
  }
  button.link:disabled {
    color: var(--vscode-disabledForeground);
    cursor: default;
    text-decoration: none;
  }
  button.solid {
    padding: 1px 10px;
    font: inherit;
    color: var(--vscode-button-foreground);
    background: var(--vscode-button-background);
    border: 1px solid var(--vscode-button-border, var(--vscode-contrastBorder, transparent));
    border-radius: 2px;
    cursor: pointer;
  }
  button.solid:hover {
    background: var(--vscode-button-hoverBackground);
  }
  input,
  select {
    min-width: 0;
    height: 24px;
    font: inherit;
    border-radius: 2px;
  }
  input {
    padding: 0 6px;
    color: var(--vscode-input-foreground);
    background: var(--vscode-input-background);
    border: 1px solid var(--vscode-input-border, var(--vscode-contrastBorder, transparent));
  }
  input::placeholder {
    color: var(--vscode-input-placeholderForeground);
    opacity: 1;
  }
  select {
    padding: 0 2px;
    color: var(--vscode-dropdown-foreground);
    background: var(--vscode-dropdown-background);
    border: 1px solid var(--vscode-dropdown-border, transparent);
    text-overflow: ellipsis;
  }
  input:focus,
  select:focus {
    outline: 1px solid var(--vscode-focusBorder);
    outline-offset: -1px;
  }
`;

/** Pages that read like a report: sections with a heading, notes below. */
export const reportSections = css`
  section {
    padding: 12px 16px;
  }
  section + section {
    border-top: 1px solid var(--line);
  }
  .head {
    display: flex;
    gap: 16px;
    align-items: baseline;
    margin-bottom: 8px;
  }
  h2 {
    margin: 0;
    font-size: 13px;
    font-weight: 600;
    line-height: 20px;
  }
  p {
    max-width: 100ch;
    margin: 6px 0;
    line-height: 18px;
    color: var(--dim);
  }
  ul {
    max-width: 100ch;
    margin: 6px 0 0;
    padding-left: 18px;
    line-height: 18px;
    color: var(--dim);
  }
`;
