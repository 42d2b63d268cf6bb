import ts from "typescript";

/** What a source says to a person: the texts that go through a translation, and the ones that bypass it. */
export interface SourceWords {
  /** Keys of the bundle. */
  wanted: string[];
  /** English that no translation sees, as `line: text`. */
  bypassing: string[];
}

/** Attributes whose value a person reads or hears. */
const spoken = /\s(?:aria-label|aria-valuetext|aria-roledescription|title|placeholder|alt)="([^"]*)"/g;
/** Two words in a row: what is one word only may be an id. */
const phrase = /\p{L}{2,}[,;:.]? \p{L}{2,}/u;
/** A word of its own beside what is filled in. */
const word = /(^|[ (,;])\p{L}{3,}([ ),;.:]|$)/u;
/** Calls whose texts nobody reads but who reads the log, or the browser. */
const silent = /(^|\.)(debug|info|warn|error|note|report|querySelector|setProperty)$/;
/** Names, signs and symbols that are the same in every language, code icons, entries of a class list. */
const universal = /^(?:Seesaw|JSON( Lines)?|gzip|zstd|Aa|log p|nats|\$\([a-z~-]+\)|[^\p{L}]|(?<!\p{L})\p{L}(?!\p{L}))*$/u;

/** Reads a source. */
export function wordsOf(name: string, text: string): SourceWords {
  const file = ts.createSourceFile(name, text, ts.ScriptTarget.Latest, true);
  const found: SourceWords = { wanted: [], bypassing: [] };
  let quiet = 0;
  const complain = (node: ts.Node, what: string): void => void (quiet === 0 && found.bypassing.push(`${name}:${file.getLineAndCharacterOfPosition(node.getStart()).line + 1}: ${what.trim().slice(0, 100)}`));
  const unheard = (nodes: readonly ts.Node[]): void => {
    quiet++;
    nodes.forEach(visit);
    quiet--;
  };

  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node) || ts.isTypeNode(node)) return;
    if (ts.isCallExpression(node)) {
      const callee = node.expression.getText();
      if (callee === "t" || callee.endsWith("l10n.t")) {
        const [first, ...rest] = node.arguments;
        if (first !== undefined && ts.isStringLiteral(first)) found.wanted.push(first.text);
        else complain(node, `a text that is no literal: ${node.getText()}`);
        return rest.forEach(visit);
      }
      if (callee === "formatPlural") {
        const [count, ...nouns] = node.arguments;
        const [one, many] = nouns.map((noun) => (ts.isStringLiteral(noun) ? noun.text : null));
        if (one == null || many === null) complain(node, `a noun that is no literal: ${node.getText()}`);
        else found.wanted.push(`{0} ${one}`, `{0} ${many ?? `${one}s`}`);
        return count === undefined ? undefined : visit(count);
      }
      if (silent.test(callee)) return unheard(node.arguments);
    }
    if (ts.isTaggedTemplateExpression(node)) {
      if (/html$/i.test(node.tag.getText())) page(node);
      return ts.isTemplateExpression(node.template) ? node.template.templateSpans.forEach(({ expression }) => visit(expression)) : undefined;
    }
    if (ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node)) {
      if (phrase.test(node.text) && !universal.test(node.text)) complain(node, node.text);
      return;
    }
    if (ts.isTemplateExpression(node)) {
      const texts = [node.head.text, ...node.templateSpans.map(({ literal }) => literal.text)];
      if (phrase.test(texts.join("{}")) || texts.some((part) => word.test(part) && !universal.test(part))) complain(node, node.getText());
    }
    node.forEachChild(visit);
  };
  /** The text nodes and the spoken attributes of a Lit template. */
  const page = ({ template }: ts.TaggedTemplateExpression): void => {
    const source = ts.isTemplateExpression(template) ? [template.head.text, ...template.templateSpans.map(({ literal }) => literal.text)].join("\u0000") : template.text;
    for (const [, value] of source.matchAll(spoken)) if (!universal.test(value ?? "")) complain(template, value ?? "");
    const outside = source.replace(/<(?:"[^"]*"|[^>"])*>/g, "\u0001");
    for (const part of outside.split(/[\u0000\u0001]/)) if (!universal.test(part)) complain(template, part);
  };
  visit(file);
  return found;
}
