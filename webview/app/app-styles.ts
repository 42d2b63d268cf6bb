import { css } from "lit";

/** The page in both layouts: one column in the side bar, two in an editor tab. */
export const appStyles = css`
  :host {
    display: flex;
    flex-direction: column;
    height: 100vh;
    overflow: hidden;
    background: var(--page);
    --page: var(--vscode-sideBar-background, var(--vscode-editor-background));
  }
  .busy {
    height: 2px;
    background: var(--vscode-progressBar-background);
  }
  .idle {
    height: 2px;
  }
  /* Where there is little height the page scrolls as a whole; else the prompts stay in sight over the film. */
  main {
    flex: 1;
    min-height: 0;
    overflow-y: auto;
  }
  .side {
    display: flex;
    flex-direction: column;
  }
  seesaw-prompt-list {
    height: clamp(134px, 30vh, 244px);
    border-top: 1px solid var(--line);
  }
  @media (min-height: 860px) {
    main {
      display: flex;
      flex-direction: column;
      overflow: hidden;
    }
    .side {
      flex: none;
    }
    .film {
      flex: 1 1 0;
      min-height: 0;
      overflow-y: auto;
    }
  }
  .notes {
    margin: 0;
    padding: 3px 12px;
    font-size: 11px;
    line-height: 16px;
    color: var(--dim);
    border-top: 1px solid var(--line);
  }
  .unmeasured {
    margin: 0 0 8px;
    font-size: 11px;
    line-height: 16px;
    color: var(--dim);
  }
  .film {
    border-top: 1px solid var(--line);
  }
  section {
    padding: 10px 12px 4px;
  }
  .prompt {
    display: flex;
    gap: 8px;
    align-items: baseline;
    margin-bottom: 8px;
  }
  .prompt h2 {
    margin: 0;
    font-weight: 600;
    line-height: 16px;
    flex: 1;
    min-width: 0;
    max-height: 64px;
    overflow-y: auto;
    font-size: 12px;
    white-space: pre-wrap;
    overflow-wrap: anywhere;
    unicode-bidi: plaintext;
    letter-spacing: 0;
  }
  .legend {
    display: flex;
    flex-wrap: wrap;
    gap: 2px 14px;
    margin-top: 8px;
    font-size: 11px;
    color: var(--dim);
  }
  .parts {
    display: flex;
    gap: 12px;
    margin-top: 6px;
    font-size: 11px;
    color: var(--dim);
  }
  .legend .token {
    margin-right: 4px;
    padding: 0 5px;
    color: var(--vscode-foreground);
    font-family: var(--mono);
  }
  .keys {
    margin-left: auto;
  }
  kbd {
    padding: 0 4px;
    font-family: var(--mono);
    color: var(--vscode-foreground);
    border: 1px solid var(--vscode-widget-border, var(--vscode-contrastBorder, currentcolor));
    border-radius: 3px;
  }
  :host([layout="editor"]) {
    --page: var(--vscode-editor-background);
  }
  @media (min-width: 760px) {
    :host([layout="editor"]) main {
      display: flex;
      flex-direction: row;
      overflow: hidden;
    }
    :host([layout="editor"]) .side {
      flex: 0 0 clamp(320px, 32%, 460px);
      min-height: 0;
      border-right: 1px solid var(--line);
    }
    :host([layout="editor"]) seesaw-prompt-list {
      flex: 1 1 0;
      height: auto;
      min-height: 0;
    }
    :host([layout="editor"]) .film {
      flex: 1 1 0;
      min-width: 0;
      overflow-y: auto;
      border-top: 0;
    }
    :host([layout="editor"]) seesaw-live-bar {
      padding-inline: 17px 20px;
    }
    :host([layout="editor"]) .film section,
    :host([layout="editor"]) seesaw-drift-chart {
      padding-inline: 20px;
    }
    :host([layout="editor"]) seesaw-token-detail,
    :host([layout="editor"]) seesaw-answer-list {
      max-width: 860px;
    }
    :host([layout="editor"]) seesaw-drift-chart {
      --chart-height: 250px;
      border-top: 0;
      border-bottom: 1px solid var(--line);
    }
  }
`;
