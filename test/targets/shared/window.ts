import { join } from "node:path";
import type { Clock } from "../../../src/targets/remote/backoff.ts";
import { RemoteWatch } from "../../../src/targets/remote/remoteWatch.ts";
import { RemoteTargets, tokenFromEnvironment } from "../../../src/targets/remote/targets.ts";
import type { Log } from "../../../src/util/log.ts";

/** What stands for a window with the workspace open. */
export interface Window {
  close(): Promise<void>;
}

/** Follows every run of the workspace that is on another machine, with what the editor and the command line use, and connections of its own. */
export function openWindow(root: string, install: string, log: Log, clock?: Clock): Window {
  const targets = new RemoteTargets({ runnerDir: join(install, "runner"), log, token: () => Promise.resolve(tokenFromEnvironment()) });
  const watch = new RemoteWatch({ target: (settings) => targets.of(settings), log, pollMs: 500, ...(clock && { clock }) });
  const stop = watch.watch(root);
  return {
    close: async () => {
      await stop();
      await watch.dispose();
      targets.dispose();
    },
  };
}
