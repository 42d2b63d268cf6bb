import { css } from "lit";

/** The frame of the arena page. */
export const appStyles = css`
  :host {
    display: block;
    min-height: 100vh;
    background: var(--vscode-editor-background);
  }
  .head-bar {
    display: flex;
    flex-wrap: wrap;
    gap: 6px 16px;
    align-items: center;
    padding: 8px 16px;
    border-bottom: 1px solid var(--line);
  }
  .fill {
    flex: 1;
  }
  .track {
    height: 2px;
    background: var(--line);
  }
  .bar {
    height: 2px;
    background: var(--vscode-progressBar-background, var(--vscode-focusBorder));
    transform-origin: left;
  }
  .status,
  .notice {
    margin: 6px 16px 0;
  }
  .failed {
    margin-left: 16px;
    color: var(--vscode-errorForeground);
  }
  button.solid:disabled {
    color: var(--vscode-disabledForeground);
    background: transparent;
    border-color: var(--line);
    cursor: default;
  }
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
  h3 {
    margin: 4px 0;
  }
  .side {
    display: flex;
    flex-wrap: wrap;
    gap: 12px 48px;
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
  .empty.error h2 {
    color: var(--vscode-errorForeground);
  }
`;
