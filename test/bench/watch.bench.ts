// What the early warning costs a stage of usual length: the sample's model, every setting of `probe` and `flags` as it is by
// default, a stage of 1,500 steps after one that taught a skill. Two to three minutes.
import { execFileSync } from "node:child_process";
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const repo = join(import.meta.dirname, "../..");
const sample = join(repo, "media/sample");

interface Cost {
  type: string;
  share: number;
  probe_s: number;
  stage_s: number;
  after_loading_s: number;
}

/** The probes' seconds over the stage's: all of it, and without start and loading. `python`: with the runner's packages. */
export function bench(python: string): object[] {
  const root = mkdtempSync(join(tmpdir(), "seesaw-watch-"));
  try {
    mkdirSync(join(root, "data"));
    mkdirSync(join(root, ".git"));
    cpSync(join(sample, "models"), join(root, "models"), { recursive: true });
    const skills = ["math", "search", "tool", "format"];
    for (const skill of skills) for (const kind of ["train", "probe", "ood"]) copyFileSync(join(sample, "data", `${skill}.${kind}.jsonl`), join(root, "data", `${skill}.${kind}.jsonl`));
    const args = (steps: number): string => `{ max_steps: ${steps}, learning_rate: 3.0e-4, per_device_train_batch_size: 32, train_sampling_strategy: group_by_length, adam_beta2: 0.98 }`;
    writeFileSync(join(root, "seesaw.yaml"), `seesaw: 1
base: models/m0
skills:
  math: { probes: data/math.probe.jsonl, ood: data/math.ood.jsonl, check: { kind: number-after, marker: so } }
  search: { probes: data/search.probe.jsonl, ood: data/search.ood.jsonl, check: { kind: text, after: answer } }
  tool: { probes: data/tool.probe.jsonl, ood: data/tool.ood.jsonl, check: { kind: json-tool-call } }
  format: { probes: data/format.probe.jsonl, ood: data/format.ood.jsonl, check: { kind: format } }
stages:
  - { id: math, recipe: sft, data: data/math.train.jsonl, args: ${args(200)} }
  - { id: tool, recipe: sft, data: data/tool.train.jsonl, args: ${args(1500)} }
`);
    execFileSync(process.execPath, [join(repo, "src/cli.ts"), "run", "--all", "--file", root], { env: { ...process.env, SEESAW_PYTHON: python }, stdio: ["ignore", "ignore", "inherit"] });
    const runs = join(root, ".seesaw/runs");
    const journal = readFileSync(join(runs, readdirSync(runs).find((name) => name.startsWith("tool-")) as string, "journal.jsonl"), "utf8");
    const events = journal.split("\n").filter(Boolean).map((line) => JSON.parse(line) as Cost);
    const cost = events.findLast(({ type }) => type === "probe.cost") as Cost;
    const looks = new Set(events.filter(({ type }) => type === "probe.scored").map((event) => (event as unknown as { step: number }).step)).size - 1;
    const percent = (share: number): number => Number((100 * share).toFixed(1));
    return [
      { name: `watch: probes' share of a stage of 1,500 steps (${looks} looks)`, value: percent(cost.share), unit: "%", target: "≤ 5" },
      { name: "watch: the same without start and loading", value: percent(cost.probe_s / cost.after_loading_s), unit: "%" },
    ];
  } finally {
    rmSync(root, { recursive: true, force: true, maxRetries: 5 });
  }
}
