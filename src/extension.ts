import { endOfLoading, startOfActivate, type ActivationTime } from "./host/activationClock.ts";
import * as vscode from "vscode";
import { registerCommands } from "./commands.ts";
import { editorFindsProxies } from "./config.ts";
import { createHost, type Host } from "./host/createHost.ts";
import { createLogChannel } from "./host/logChannel.ts";
import { raySecret } from "./host/targets/raySecret.ts";
import { createServices } from "./services.ts";
import { tokenFromEnvironment } from "./targets/remote/targets.ts";
import { DisposableStore } from "./util/disposable.ts";
import { messageOf } from "./util/errors.ts";
import { setWords } from "./util/l10n.ts";

/** What `activate` gives back: for tests, and for extensions that build on this one. */
export interface SeesawApi {
  /** Our own time: loading and `activate`. */
  activation: ActivationTime;
  /** Why activation failed, or null. */
  failure: string | null;
  host: Host | null;
}

let store: DisposableStore | undefined;
endOfLoading();

/** Log, services, surfaces, commands. Starts no process, loads nothing native, reads no file before it returns. */
export function activate(context: vscode.ExtensionContext): SeesawApi {
  const time = startOfActivate();
  setWords(vscode.l10n.bundle);
  store = new DisposableStore();
  const log = store.add(createLogChannel());
  try {
    const services = createServices({ log, extensionDir: context.extensionUri.fsPath, storageDir: context.globalStorageUri.fsPath, token: async ({ address }) => (await context.secrets.get(raySecret(address))) ?? tokenFromEnvironment(), editorFindsProxies });
    store.add(services);
    const host = createHost(services, log, context.extensionUri, context.secrets, store);
    store.add(registerCommands(host, log));
    const activation = time();
    log.info(`Activated in ${activation.wallMs.toFixed(1)} ms (${activation.cpuMs.toFixed(1)} ms of work).`);
    return { activation, failure: null, host };
  } catch (error) {
    const failure = messageOf(error);
    log.error(error instanceof Error ? (error.stack ?? failure) : failure);
    store.add(registerCommands(null, log, failure));
    void vscode.window.showErrorMessage(vscode.l10n.t("Seesaw could not start: {0}", failure));
    return { activation: time(), failure, host: null };
  }
}

/** Runs go on; only this window's view of them is closed. */
export function deactivate(): void {
  store?.dispose();
}
