/**
 * The words of the surfaces, keyed by their English sentence, as in `l10n/bundle.l10n.*.json`. One wording for the editor,
 * its pages and the command line: whoever shows texts in another language hands its table in once; without one (the command
 * line, tests) every text is English. Texts for models and for files stay English through `inEnglish`.
 */
export type Words = Readonly<Record<string, string>>;

/** On the global object: the extension is several bundles, each with its own copy of this module. */
const held = globalThis as { [key: symbol]: Words | undefined };
const key = Symbol.for("seesaw.words");

/** Hands in the table of the person's language; undefined: English. */
export function setWords(words: Words | undefined): void {
  held[key] = words;
}

/** The text in the person's language with `{0}`, `{1}` … filled in. Only literals: the test of the bundle looks them up. */
export function t(text: string, ...values: (string | number)[]): string {
  const words = held[key];
  const found = words !== undefined && Object.hasOwn(words, text) ? words[text] as string : text;
  return values.length === 0 ? found : found.replace(/\{(\d+)\}/g, (place, index: string) => String(values[Number(index)] ?? place));
}

/** Runs something in English, whatever the person's language: what it returns goes to a model or into a file. */
export function inEnglish<T>(run: () => T): T {
  const words = held[key];
  held[key] = undefined;
  try {
    return run();
  } finally {
    held[key] = words;
  }
}
