/** The verifier of a skill, as written in `seesaw.yaml` and frozen into run.json. See `.github/contracts.md` §2. */
export type CheckSpec =
  | { kind: "text"; after?: string; ignore_case?: boolean }
  | { kind: "number-after"; marker: string }
  | { kind: "json-tool-call" }
  | { kind: "regex"; pattern: string; flags?: string }
  | { kind: "format" }
  | { kind: "function"; function: string; path?: string };

/** A named class of tokens; `pattern` is a regular expression over the reference text. */
export interface SegmentPattern {
  name: string;
  pattern: string;
}
