import { copyFileSync, cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Diagnostic, Pipeline } from "../../../src/domain/pipeline/pipelineModel.ts";
import { createServices, type Services } from "../../../src/services.ts";
import { loadPipeline, requirePipeline } from "../../../src/targets/pipelineFile.ts";
import { silentLog } from "../../../src/util/log.ts";

const repo = join(import.meta.dirname, "../../..");

/** A workspace with two stages, and an installation whose recipe is a stand-in; the agent is the real one. */
export class FakeWorkspace {
  readonly dir = mkdtempSync(join(tmpdir(), "seesaw-launch-"));
  readonly root = join(this.dir, "work");
  readonly install = join(this.dir, "install");
  readonly runsDir = join(this.root, ".seesaw", "runs");
  services: Services;

  constructor() {
    cpSync(join(import.meta.dirname, "fake"), join(this.install, "runner"), { recursive: true });
    copyFileSync(join(repo, "runner/seesaw_runner/agent.py"), join(this.install, "runner/seesaw_runner/agent.py"));
    mkdirSync(join(this.root, "base"), { recursive: true });
    mkdirSync(join(this.root, ".git"));
    writeFileSync(join(this.root, "base/model.safetensors"), "weights");
    writeFileSync(join(this.root, "base/config.json"), "{}");
    for (const name of ["a", "b", "probe"]) writeFileSync(join(this.root, `${name}.jsonl`), `{"text": "${name}"}\n`);
    this.services = this.freshServices();
  }

  /** What another window would have. */
  freshServices(): Services {
    return createServices({ log: silentLog, extensionDir: this.install, storageDir: join(this.dir, "storage") });
  }

  /** Writes seesaw.yaml with these arguments for the stages `a` and `b` and reads it back. */
  async pipeline(a: object = {}, b: object = {}): Promise<{ pipeline: Pipeline; diagnostics: Diagnostic[] }> {
    const stage = (id: string, args: object): string => `  - { id: ${id}, recipe: sft, data: ${id}.jsonl, args: ${JSON.stringify(args)} }\n`;
    writeFileSync(join(this.root, "seesaw.yaml"), `seesaw: 1\nbase: base\nskills:\n  s: { probes: probe.jsonl, check: { kind: text } }\nstages:\n${stage("a", a)}${stage("b", b)}`);
    const loaded = await loadPipeline(join(this.root, "seesaw.yaml"));
    return { pipeline: requirePipeline(loaded), diagnostics: loaded.diagnostics };
  }

  dispose(): void {
    this.services.dispose();
    rmSync(this.dir, { recursive: true, force: true, maxRetries: 5 });
  }
}
