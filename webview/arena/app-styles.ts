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
  h3 {
    margin: 4px 0;
  }
  .side {
    display: flex;
    flex-wrap: wrap;
    gap: 12px 48px;
  }
  .empty.error h2 {
    color: var(--vscode-errorForeground);
  }
`;
