import type { Arena } from "../arena/arenaModel.ts";
import type { CheckSpec, SegmentPattern } from "../../protocol/checks.ts";
import type { RemoteSettings } from "../../protocol/remote.ts";
import type { BenchmarkSpec, DecisionSpec, DiversitySpec, FlagSpec, LaunchSpec, NearSpec, OnFlag, ProbeSpec, QualitySpec, Resources } from "../../protocol/runSpec.ts";

/** Where something stands in `seesaw.yaml`; lines and columns count from 1. */
export interface SourceRange {
  line: number;
  column: number;
  endLine: number;
  endColumn: number;
}

/** One finding about a file, with its place and, where there is one, the fix. */
export interface Diagnostic {
  severity: "error" | "warning" | "info";
  code: string;
  /** A sentence that names the thing and the fix. */
  message: string;
  file: string;
  range: SourceRange;
}

export interface Skill {
  id: string;
  /** Paths as absolute paths. */
  probes: { id: string; ood?: string };
  check: CheckSpec;
  segments: SegmentPattern[];
  /** What a run does when a loss of it is confirmed; absent: what `flags` says. */
  on_flag?: OnFlag;
  /** The tokens that decide whether an answer is right; absent: what the check decides by. */
  decision?: DecisionSpec;
  /** lm-eval tasks that measure it; absent: none is named. */
  benchmark?: string[];
  range: SourceRange;
}

export interface StageReplay {
  buffer: string;
  ratio: number;
}

export interface Stage {
  id: string;
  /** 1-based position: the stage's last checkpoint is M<index>. */
  index: number;
  recipe: string;
  /** Null for a recipe that needs no rows of its own. */
  data: string | null;
  /** For the recipe's trainer, as written. */
  args: Record<string, unknown>;
  /** The recipe's own settings, paths absolute. */
  options: Record<string, unknown>;
  /** The checkpoints that `options` or the reward model of its buffer names: `math`, `math@40`, `base` or a folder. */
  references: readonly string[];
  adapter: Record<string, unknown> | null;
  launch: LaunchSpec;
  probe: ProbeSpec;
  save_every: number | null;
  replay: StageReplay | null;
  /** Id of the stage it starts from, or null for the base model. */
  from: string | null;
  /** The step of `from` whose checkpoint it starts from; absent or null: the last one. */
  fromStep?: number | null;
  on: string;
  /** What the scheduler of its target is asked for, the target's own included; absent where there is no scheduler. */
  resources?: Resources;
  env: Record<string, string>;
  range: SourceRange;
}

export interface Buffer {
  id: string;
  from: string[];
  rows: number;
  quality: QualitySpec | null;
  diversity: DiversitySpec | null;
  /** Rows of each stage in `from`; absent or null: even shares. */
  quotas?: Record<string, number> | null;
  /** Rows whose nearest ones are taken first; absent or null: none. */
  near?: NearSpec | null;
  range: SourceRange;
}

/** This machine. */
export interface LocalSettings {
  id: string;
  kind: "local";
  python: string | null;
}

export type Target = LocalSettings | RemoteSettings;

/** `seesaw.yaml`, checked, with every default filled in and every path absolute. */
export interface Pipeline {
  file: string;
  /** Folder of the file; runs are in `<root>/.seesaw/runs`. */
  root: string;
  name: string;
  base: string;
  seed: number;
  skills: Skill[];
  stages: Stage[];
  buffers: Buffer[];
  targets: Target[];
  flags: FlagSpec;
  /** Benchmarks, and after which stages they run. Null or absent: none. */
  benchmark?: (BenchmarkSpec & { every: "stage" | "end" }) | null;
  /** What is compared with the chain; null or absent: nothing. */
  arena?: Arena | null;
  /** Where each value stands in the file, by JSON pointer (`/stages/0/data`). Absent in pipelines built by hand. */
  ranges?: Readonly<Record<string, SourceRange>>;
}
