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
