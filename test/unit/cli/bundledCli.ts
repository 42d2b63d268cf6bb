import { mkdtempSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { run, type RunOptions, type RunResult } from "../../../src/targets/spawn.ts";

export const repo = join(import.meta.dirname, "../../..");

/** The command line as it ships: one bundle, run by Node as a process of its own. */
export class BundledCli {
  readonly dir: string;

  private constructor(dir: string) {
    this.dir = dir;
  }

  /** Builds it in `.cache`, where the runner of this checkout is found. */
  static async build(): Promise<BundledCli> {
    mkdirSync(join(repo, ".cache"), { recursive: true });
    const dir = mkdtempSync(join(repo, ".cache", "test-cli-"));
    const built = await run([process.execPath, join(repo, ".config/esbuild.mjs"), "--only", "cli", "--outdir", dir]);
    if (built.code !== 0) throw new Error(built.stderr);
    return new BundledCli(dir);
  }

  argv(...args: string[]): string[] {
    return [process.execPath, join(this.dir, "cli.js"), ...args];
  }

  /** Without colours and without the person's own settings. */
  run(cwd: string, args: string[], options: RunOptions = {}): Promise<RunResult> {
    const env = { ...process.env, XDG_CACHE_HOME: join(this.dir, "cache"), NO_COLOR: "", FORCE_COLOR: undefined, SEESAW_PYTHON: undefined, ...options.env };
    return run(this.argv(...args), { ...options, cwd, env });
  }

  dispose(): void {
    rmSync(this.dir, { recursive: true, force: true });
  }
}
