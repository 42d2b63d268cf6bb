import type { Command } from "commander";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Pipeline } from "../domain/pipeline/pipelineModel.ts";
import { createServices, type Services } from "../services.ts";
import type { StartOptions } from "../targets/launcher.ts";
import { findPipelineFile, loadPipeline, requirePipeline, type LoadedPipeline } from "../targets/pipelineFile.ts";
import type { Log } from "../util/log.ts";
import type { GlobalOptions } from "./globalOptions.ts";
import { terminalOutput, wantsColour, type Output } from "./output.ts";

/** What a command works with; made once per process, its services only when asked for. */
export class CommandContext {
  readonly out: Output;
  readonly json: boolean;
  readonly cwd: string = process.cwd();
  readonly log: Log;
  private readonly options: GlobalOptions;
  private made: Services | null = null;

  constructor(options: GlobalOptions) {
    this.options = options;
    this.json = options.json === true;
    this.out = terminalOutput(wantsColour(options.color, process.env, process.stdout.isTTY === true));
    this.log = stderrLog(this.out, options.verbose === true);
  }

  get services(): Services {
    this.made ??= createServices({ log: this.log, extensionDir: installDir(), storageDir: cacheDir(process.env) });
    return this.made;
  }

  /** seesaw.yaml as it is, errors and all. `files`: also whether the files it names are there. */
  load(options?: { files: boolean }): Promise<LoadedPipeline> {
    return loadPipeline(findPipelineFile(this.cwd, this.options.file), options);
  }

  async pipeline(): Promise<Pipeline> {
    return requirePipeline(await this.load());
  }

  /** Typing a command is consent: unlike a window, the command line always trusts the folder it works on. */
  startOptions(python: string | undefined, signal?: AbortSignal): StartOptions {
    const named = python ?? process.env["SEESAW_PYTHON"];
    const explicit = named ? { command: named, setting: python !== undefined ? "--python" : "SEESAW_PYTHON" } : undefined;
    return { trusted: true, ...(explicit ? { python: { explicit } } : {}), ...(signal ? { signal } : {}) };
  }

  dispose(): void {
    this.out.rewrite("");
    this.made?.dispose();
    this.made = null;
  }
}

/** Makes the context from the global options of a command that was called. */
export type ContextOf = (command: Command) => CommandContext;

function stderrLog(out: Output, verbose: boolean): Log {
  const write = (text: string): void => out.note(out.paint("dim", text));
  return { debug: verbose ? write : () => {}, info: verbose ? write : () => {}, warn: (text) => out.note(out.paint("yellow", text)), error: (text) => out.note(out.paint("red", text)) };
}

/** Where caches of the command line live; everything in it can be deleted. */
export function cacheDir(env: NodeJS.ProcessEnv): string {
  const base = env["XDG_CACHE_HOME"] || (process.platform === "win32" ? env["LOCALAPPDATA"] : undefined) || join(homedir(), ".cache");
  return join(base, "seesaw");
}

/** The folder of this installation: the one with the bundled runner in it. */
export function installDir(): string {
  for (let folder = dirname(fileURLToPath(import.meta.url)); dirname(folder) !== folder; folder = dirname(folder)) {
    if (existsSync(join(folder, "runner", "probe.py"))) return folder;
  }
  throw new Error("The runner folder is missing from this installation of Seesaw: install it again.");
}
