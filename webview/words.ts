import { setWords, type Words } from "../src/util/l10n.ts";

/** Takes over the words that the host wrote into the page (panelHtml.ts): a data block, which no browser runs. */
export function takeWords(): void {
  const text = document.getElementById("seesaw-words")?.textContent ?? "";
  if (text !== "") setWords(JSON.parse(text) as Words);
}
