import type { Pipeline } from "../../domain/pipeline/pipelineModel.ts";
import type { RaySettings, RemoteSettings } from "../../protocol/remote.ts";
import { AppError } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";
import type { Log } from "../../util/log.ts";
import type { RemoteTarget } from "./port.ts";

/** What every adapter is made with, besides its own settings: `new SshTarget(settings, deps)` and so on. */
export interface AdapterDeps {
  /** Folder that holds `seesaw_runner`. */
  runnerDir: string;
  log: Log;
  /** The token of a Ray cluster, asked for at every use, so that a new one counts at once; null: none. Never written anywhere. */
  token(settings: RaySettings): Promise<string | null>;
  /** Whether the editor we run in finds the proxy of every request, asked for at every use; default: no, the environment names it. */
  editorFindsProxies?: (() => boolean) | undefined;
}

/** The token that the command line's environment holds. */
export function tokenFromEnvironment(env: NodeJS.ProcessEnv = process.env): string | null {
  return env["SEESAW_RAY_TOKEN"] || env["RAY_AUTH_TOKEN"] || null;
}

/** Other machines, each made once. An adapter's code is loaded when the first stage, check or run needs it. */
export class RemoteTargets {
  private readonly deps: AdapterDeps;
  private readonly make: (settings: RemoteSettings, deps: AdapterDeps) => Promise<RemoteTarget>;
  /** By everything that is said of them: two files that mean the same machine share its connection. */
  private readonly made = new Map<string, Promise<RemoteTarget>>();
  private disposed = false;

  constructor(deps: AdapterDeps, make: (settings: RemoteSettings, deps: AdapterDeps) => Promise<RemoteTarget> = adapter) {
    this.deps = deps;
    this.make = make;
  }

  /** The target of a pipeline with this name. AppError("not-found" | "usage"). */
  async ofPipeline(pipeline: Pick<Pipeline, "file" | "targets">, id: string): Promise<RemoteTarget> {
    const found = pipeline.targets.find((one) => one.id === id);
    if (found === undefined) throw new AppError("not-found", t("There is no target `{0}` in {1}: there are {2}.", id, pipeline.file, pipeline.targets.map((one) => one.id).join(", ")));
    if (found.kind === "local") throw new AppError("usage", t("The target `{0}` is this machine, which needs no connection.", id));
    return this.of(found);
  }

  /** The machine that these settings describe; those of a run are in its remote.json. Makes no connection yet. */
  of(settings: RemoteSettings): Promise<RemoteTarget> {
    if (this.disposed) return Promise.reject(new AppError("cancelled", t("Seesaw is being closed.")));
    const key = JSON.stringify(settings);
    const known = this.made.get(key);
    if (known !== undefined) return known;
    const target = this.make(settings, this.deps);
    this.made.set(key, target);
    // Code that could not be loaded once is tried again.
    target.catch(() => this.made.delete(key));
    return target;
  }

  dispose(): void {
    this.disposed = true;
    for (const target of this.made.values()) void target.then((one) => one.dispose(), () => {});
    this.made.clear();
  }
}

async function adapter(settings: RemoteSettings, deps: AdapterDeps): Promise<RemoteTarget> {
  switch (settings.kind) {
    case "ssh":
      return new (await import("./sshTarget.ts")).SshTarget(settings, deps);
    case "slurm":
      return new (await import("./slurm/slurmTarget.ts")).SlurmTarget(settings, deps);
    case "ray":
      return new (await import("./ray/rayTarget.ts")).RayTarget(settings, deps);
  }
}
