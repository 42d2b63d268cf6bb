import { isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument, type Document, type Node, type Pair, type YAMLMap } from "yaml";
import { t } from "../../util/l10n.ts";
import type { SourceRange } from "./pipelineModel.ts";

/** A problem of the YAML text itself. */
export interface YamlProblem {
  severity: "error" | "warning";
  code: string;
  message: string;
  range: SourceRange;
}

/** A YAML file as plain values, and where each of them stands. */
export interface YamlSource {
  value: unknown;
  problems: YamlProblem[];
  /** Place of the value a JSON pointer leads to, or of its key; the nearest enclosing one when it is not in the file. */
  rangeOf(pointer: string, part?: "key" | "value"): SourceRange;
}

/** Reads YAML 1.2 with anchors, aliases and merge keys. `value` is undefined when the text is no YAML. */
export function readYaml(written: string): YamlSource {
  // A CR that ends the file without its LF would be read as text.
  const text = written.replace(/\r$/, "\n");
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, logLevel: "error", merge: true, uniqueKeys: true });
  const rangeAt = (from: number, to: number): SourceRange => {
    const start = lines.linePos(from);
    const end = lines.linePos(Math.max(from, to));
    return { line: Math.max(1, start.line), column: Math.max(1, start.col), endLine: Math.max(1, end.line), endColumn: Math.max(1, end.col) };
  };
  const problems: YamlProblem[] = [...document.errors, ...document.warnings].map((error) => ({
    severity: error.name === "YAMLWarning" ? "warning" : "error",
    code: error.code === "DUPLICATE_KEY" ? "duplicate-key" : "yaml",
    message: error.code === "DUPLICATE_KEY" ? duplicateText(text, error.pos[0]) : error.code === "MULTIPLE_DOCS" ? t("The file has several documents, parted by `---`: keep one of them.") : t("This is not valid YAML: {0}.", error.message.replace(/\.?\s*$/, "")),
    range: rangeAt(error.pos[0], error.pos[1]),
  }));
  let value: unknown;
  if (document.errors.length === 0) {
    try {
      value = document.toJS({ maxAliasCount: 200 });
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      problems.push({ severity: "error", code: "yaml", message: t("This YAML cannot be read: {0}.", why), range: rangeAt(0, 0) });
    }
  }
  const rangeOf = (pointer: string, part: "key" | "value" = "value"): SourceRange => {
    const found = locate(document, segmentsOf(pointer));
    const node = part === "key" ? found.key ?? found.value : isScalar(found.value) ? found.value : found.key ?? found.value;
    const [from, to] = node?.range ?? [0, 0];
    return rangeAt(from, isScalar(node) ? to : from);
  };
  return { value, problems, rangeOf };
}

/** Parts of a JSON pointer (RFC 6901). */
export function segmentsOf(pointer: string): string[] {
  return pointer.split("/").slice(1).map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** The JSON pointer of these parts. */
export function pointerOf(...segments: (string | number)[]): string {
  return segments.map((segment) => `/${String(segment).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

interface Place {
  key: Node | null;
  value: Node | null;
}

function locate(document: Document, segments: string[]): Place {
  let place: Place = { key: null, value: document.contents };
  for (const segment of segments) {
    const container = resolve(document, place.value);
    const next = isMap(container) ? inMap(document, container, segment) : isSeq(container) ? { key: null, value: (container.items[Number(segment)] as Node | undefined) ?? null } : null;
    if (next === null || (next.key === null && next.value === null)) return place;
    place = next;
  }
  return place;
}

function inMap(document: Document, map: YAMLMap, name: string): Place | null {
  const pairs = map.items as Pair<Node, Node | null>[];
  const own = pairs.find((pair) => isScalar(pair.key) && String(pair.key.value) === name);
  if (own !== undefined) return { key: own.key, value: own.value };
  for (const pair of pairs) {
    if (!isScalar(pair.key) || pair.key.value !== "<<") continue;
    const source = resolve(document, pair.value);
    for (const part of isSeq(source) ? source.items : [source]) {
      const merged = resolve(document, part as Node | null);
      const found = isMap(merged) ? inMap(document, merged, name) : null;
      if (found !== null) return found;
    }
  }
  return null;
}

function resolve(document: Document, node: Node | null): Node | null {
  return isAlias(node) ? node.resolve(document) ?? null : node;
}

function duplicateText(text: string, at: number): string {
  const key = /^["']?([^\s:"']+)/.exec(text.slice(at))?.[1] ?? "";
  return t("The key \"{0}\" is written twice in one block: keep one of them.", key);
}
