import * as vscode from "vscode";
import { messageOf } from "../util/errors.ts";
import { t } from "../util/l10n.ts";
import type { Log } from "../util/log.ts";

/** A Python that another extension would use for a folder: one more place in the chain, never more than that. */
export interface PythonCandidate {
  command: string;
  how: string;
  /** What to look at again when it changes. */
  dependsOn: string;
}

/** What we ask of an extension that knows Python environments. Both known ones are optional. */
interface EnvironmentProvider {
  readonly id: string;
  /** The interpreter chosen for the folder, or null. */
  active(folder: vscode.Uri): Promise<string | null>;
}

/** The part of ms-python.python's API that is used. */
interface PythonApi {
  readonly environments: {
    getActiveEnvironmentPath(resource?: vscode.Uri): { readonly path: string };
    resolveEnvironment(path: { readonly path: string }): Promise<{ readonly executable: { readonly uri?: vscode.Uri } } | undefined>;
  };
}

/** The part of ms-python.vscode-python-envs' API that is used. */
interface PythonEnvsApi {
  getEnvironment(scope: vscode.Uri): Promise<{ readonly execInfo?: { readonly run?: { readonly executable?: string } } } | undefined>;
}

const providers: readonly EnvironmentProvider[] = [
  {
    id: "ms-python.vscode-python-envs",
    async active(folder) {
      const api = await apiOf<PythonEnvsApi>(this.id);
      return (await api?.getEnvironment(folder))?.execInfo?.run?.executable ?? null;
    },
  },
  {
    id: "ms-python.python",
    async active(folder) {
      const environments = (await apiOf<PythonApi>(this.id))?.environments;
      if (environments === undefined) return null;
      const resolved = await environments.resolveEnvironment(environments.getActiveEnvironmentPath(folder));
      return resolved?.executable.uri?.fsPath ?? null;
    },
  },
];

/** What the installed Python extensions would use for `folder`. One that is missing, slow or broken is only logged. */
export async function pythonCandidates(folder: string, log: Log): Promise<PythonCandidate[]> {
  const found = await Promise.all(
    providers.map(async (provider) => {
      try {
        const command = await withTimeout(provider.active(vscode.Uri.file(folder)), 5_000);
        if (command === null) return null;
        return { command, how: t("the interpreter chosen in {0}", provider.id), dependsOn: `extension:${provider.id}` };
      } catch (error) {
        log.warn(`${provider.id} did not say which Python to use: ${messageOf(error)}`);
        return null;
      }
    }),
  );
  return found.filter((candidate) => candidate !== null);
}

async function apiOf<T>(id: string): Promise<T | undefined> {
  const extension = vscode.extensions.getExtension<T>(id);
  return extension === undefined ? undefined : await extension.activate();
}

function withTimeout<T>(work: Promise<T>, ms: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${ms / 1000} s`)), ms);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}
