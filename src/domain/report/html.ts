/** Markup that is safe to put into a page. Only `html` makes it, and `html` escapes every text it is given. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

export type HtmlValue = Html | string | number | null | undefined | false | readonly HtmlValue[];

/** Builds markup: values are escaped unless they are markup themselves. Correct inside elements and in quoted attributes. */
export function html(parts: TemplateStringsArray, ...values: HtmlValue[]): Html {
  return new Html(parts.map((part, index) => part + show(values[index])).join(""));
}

function show(value: HtmlValue): string {
  if (value === null || value === undefined || value === false) return "";
  if (value instanceof Html) return value.text;
  if (Array.isArray(value)) return value.map(show).join("");
  return escapeText(String(value));
}

const entities: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

/** Text for an element or a quoted attribute. Control characters, which HTML forbids, become U+FFFD. */
export function escapeText(text: string): string {
  return wellFormed(text)
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g, "\ufffd")
    .replace(/[&<>"']/g, (character) => entities[character] ?? "");
}

/** JSON for a `<script type="application/json">`: nothing in it can end the element. */
export function scriptJson(value: unknown): Html {
  return new Html(wellFormed(JSON.stringify(value)).replace(/[<>&\u2028\u2029]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`));
}

/** Unpaired surrogates cannot be written as UTF-8. */
function wellFormed(text: string): string {
  return text.replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, "\ufffd");
}
