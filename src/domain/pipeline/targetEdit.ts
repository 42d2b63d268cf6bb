import type { RemoteKind } from "../../protocol/remote.ts";
import { applyChanges, flowMap, mapAt, newline, setKey, type TextChange } from "./yamlEdits.ts";

/** A new target in `seesaw.yaml`, with what the person has to fill in. */
export interface TargetEdit {
  id: string;
  changes: TextChange[];
  /** Where, in the text with the changes made, the host or address to be filled in stands. */
  fill: { offset: number; length: number };
}

const names: Record<RemoteKind, string> = { ssh: "box", slurm: "cluster", ray: "ray" };
const blanks: Record<RemoteKind, string> = { ssh: "your-gpu-box", slurm: "your-login-node", ray: "http://your-head:8265" };

/** Adds a target of this kind under a name that is free; null where the text has errors that leave no place for it. */
export function targetEdit(text: string, kind: RemoteKind): TargetEdit | null {
  if (mapAt(text, []) === null) return null;
  const place = mapAt(text, ["targets"]);
  const taken = new Set(place?.map.items.map(({ key }) => String((key as { value?: unknown }).value)));
  let id = names[kind];
  for (let next = 2; taken.has(id) || id === "local"; next++) id = `${names[kind]}-${next}`;
  const value = flowMap(fieldsOf(kind));
  const root = mapAt(text, []);
  // `targets:` with nothing under it, or something that is no map, is replaced as a whole.
  const line = newline(text);
  const entry = ["  ", id, ": ", value].join("");
  const changes: TextChange[] = [];
  if (place !== null) changes.push(setKey(place, id, value));
  else if (root?.map.items.some(({ key }) => String((key as { value?: unknown }).value) === "targets")) changes.push(setKey(root, "targets", [line, entry].join("")));
  else changes.push({ offset: text.length, length: 0, text: [text.endsWith("\n") ? "" : line, "targets:", line, entry, line].join("") });
  const after = applyChanges(text, changes);
  return { id, changes, fill: { offset: after.indexOf(blanks[kind], after.indexOf(value)), length: blanks[kind].length } };
}

function fieldsOf(kind: RemoteKind): Record<string, string> {
  switch (kind) {
    case "ssh":
      return { kind, host: blanks.ssh, python: "~/envs/trl/bin/python", dir: "~/seesaw" };
    case "slurm":
      return { kind, host: blanks.slurm, python: "/shared/envs/trl/bin/python", dir: "/shared/seesaw", resources: flowMap({ gpus: 1, time: '"04:00:00"' }) };
    case "ray":
      return { kind, address: `"${blanks.ray}"`, python: "python3", dir: "/shared/seesaw", resources: flowMap({ gpus: 1 }) };
  }
}
