import { isCollection, isMap, isScalar, isSeq, parseDocument, type Document, type Node, type Pair, type Scalar, type YAMLMap } from "yaml";

/** One change of a text; offsets count UTF-16 units of the text before any change. */
export interface TextChange {
  offset: number;
  length: number;
  text: string;
}

/** A block or flow map of a YAML file, to be changed where it stands: everything else in the file, comments included, stays as it is. */
export interface MapPlace {
  map: YAMLMap<Node, Node | null>;
  text: string;
}

/** The map a path leads to; null where there is none, or where it stands elsewhere (an alias, a merge key). */
export function mapAt(text: string, path: readonly (string | number)[]): MapPlace | null {
  const document = parseDocument(text, { logLevel: "error" }) as Document<Node>;
  if (document.errors.length > 0) return null;
  let node: Node | null = document.contents;
  for (const segment of path) {
    node = isMap(node) ? (pairOf(node as MapPlace["map"], String(segment))?.value ?? null) : isSeq(node) ? ((node.items[Number(segment)] as Node | undefined) ?? null) : null;
  }
  return isMap(node) ? { map: node as MapPlace["map"], text } : null;
}

/** The value of a key of the map itself, when it is a plain value; null otherwise. */
export function scalarIn({ map }: MapPlace, key: string): (Scalar & { range: [number, number, number] }) | null {
  const value = pairOf(map, key)?.value;
  return isScalar(value) && value.range ? (value as Scalar & { range: [number, number, number] }) : null;
}

/** Sets a key: replaces its value, or adds it after the last one. `value` is YAML on one line. */
export function setKey(place: MapPlace, key: string, value: string): TextChange {
  const { map, text } = place;
  const pair = pairOf(map, key);
  if (pair?.value?.range) {
    const [start] = pair.value.range;
    return { offset: start, length: endOf(pair.value, text) - start, text: value };
  }
  if (pair?.key.range) return { offset: text.indexOf(":", pair.key.range[1]) + 1, length: 0, text: ` ${value}` };
  const [start, end] = map.range ?? [0, 0, 0];
  if (map.flow === true) {
    const inner = text.slice(start + 1, end - 1);
    const at = start + 1 + inner.trimEnd().length;
    return { offset: at, length: end - 1 - at, text: `${map.items.length === 0 ? " " : `${inner.trimEnd().endsWith(",") ? "" : ","} `}${key}: ${value} ` };
  }
  const last = map.items.at(-1) as Pair<Node, Node | null> | undefined;
  const at = lineEnd(text, last?.value?.range ? endOf(last.value, text) : (last?.key.range?.[1] ?? end));
  return { offset: at, length: 0, text: `${newline(text)}${" ".repeat(columnOf(text, (map.items[0] as Pair<Node> | undefined)?.key.range?.[0] ?? start))}${key}: ${value}` };
}

/** A map on one line; values are YAML already. */
export function flowMap(entries: Readonly<Record<string, string | number | boolean>>): string {
  return `{ ${Object.entries(entries).map(([key, value]) => [key, String(value)].join(": ")).join(", ")} }`;
}

/** The text with the changes made. */
export function applyChanges(text: string, changes: readonly TextChange[]): string {
  return [...changes].sort((a, b) => b.offset - a.offset).reduce((now, { offset, length, text: put }) => now.slice(0, offset) + put + now.slice(offset + length), text);
}

/** Where the text of a value ends, without the comment after it. */
export function endOf(node: Node, text: string): number {
  if (isCollection(node) && node.flow !== true) {
    const last = node.items.at(-1) as Node | Pair<Node, Node | null> | undefined;
    if (last !== undefined && "key" in last) return last.value?.range ? endOf(last.value, text) : (last.key.range?.[1] ?? node.range?.[1] ?? 0);
    if (last !== undefined) return endOf(last as Node, text);
  }
  const end = node.range?.[1] ?? 0;
  // A block scalar holds its own line end.
  return text[end - 1] === "\n" ? end - 1 : end;
}

/** The end of the line that holds an offset, before its line break. */
export function lineEnd(text: string, offset: number): number {
  const at = text.indexOf("\n", offset);
  const end = at < 0 ? text.length : at;
  return text[end - 1] === "\r" ? end - 1 : end;
}

/** The line break that the file uses. */
export function newline(text: string): string {
  return text.includes("\r\n") ? "\r\n" : "\n";
}

export function columnOf(text: string, offset: number): number {
  return offset - (text.lastIndexOf("\n", offset - 1) + 1);
}

function pairOf(map: MapPlace["map"], key: string): Pair<Node, Node | null> | undefined {
  return (map.items as Pair<Node, Node | null>[]).find((pair) => isScalar(pair.key) && String(pair.key.value) === key);
}
