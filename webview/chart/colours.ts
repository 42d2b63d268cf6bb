/** What the chart is painted with, as the theme has it now. A canvas knows no CSS variables: they are read each time. */
export interface Colours {
  text: string;
  dim: string;
  line: string;
  accent: string;
  id: string;
  ood: string;
  drifting: string;
  confirmed: string;
  recovered: string;
  background: string;
  font: string;
}

const variables: Record<keyof Colours, string> = {
  text: "--chart-text",
  dim: "--dim",
  line: "--chart-line",
  accent: "--chart-accent",
  id: "--chart-id",
  ood: "--chart-ood",
  drifting: "--chart-drifting",
  confirmed: "--failed",
  recovered: "--passed",
  background: "--page",
  font: "--chart-font",
};

export function readColours(element: Element): Colours {
  const style = getComputedStyle(element);
  return Object.fromEntries(Object.entries(variables).map(([name, variable]) => [name, style.getPropertyValue(variable).trim() || "currentcolor"])) as unknown as Colours;
}

/** Calls back when VS Code changes the theme: it then rewrites the variables and the classes of the document. */
export function onThemeChange(run: () => void): () => void {
  const observer = new MutationObserver(() => run());
  observer.observe(document.documentElement, { attributes: true, attributeFilter: ["style", "class"] });
  observer.observe(document.body, { attributes: true, attributeFilter: ["class", "data-vscode-theme-id"] });
  return () => observer.disconnect();
}
