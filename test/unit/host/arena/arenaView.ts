import { viewOf } from "../finishedRuns.ts";
import type { PipelineView } from "../../../../src/host/workspaceModel.ts";

/** A pipeline with an arena of two remedies; nothing of it has run. */
export function arenaView(): PipelineView {
  return viewOf([], `seesaw: 1
name: arena
base: m0
skills:
  math: { probes: math.jsonl, check: { kind: number-after, marker: so } }
  search: { probes: search.jsonl, check: { kind: text } }
stages:
  - { id: math, recipe: sft, data: math.jsonl, args: { max_steps: 80 } }
  - { id: search, recipe: sft, data: search.jsonl, args: { max_steps: 60 } }
arena:
  seeds: [0, 1, 2]
  remedies: [{ kind: replay }, { kind: joint }]
`);
}
