import { unwatchFile, watchFile } from "node:fs";
import type { Disposable } from "../../util/disposable.ts";

/** Looks at a file once a second: works on every disk, also where the system reports no changes. Keeps no process alive. */
export function watchDataset(path: string, run: () => void): Disposable {
  const listener = (): void => run();
  watchFile(path, { interval: 1000, persistent: false }, listener);
  return { dispose: () => unwatchFile(path, listener) };
}

/** Calls `run` at most about ten times a second, and once more after the last request. */
export class Throttle implements Disposable {
  private readonly run: () => void;
  private timer: NodeJS.Timeout | null = null;
  private disposed = false;

  constructor(run: () => void) {
    this.run = run;
  }

  request(): void {
    if (this.disposed) return;
    this.timer ??= setTimeout(() => {
      this.timer = null;
      this.run();
    }, 100);
  }

  now(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    if (!this.disposed) this.run();
  }

  dispose(): void {
    this.disposed = true;
    if (this.timer !== null) clearTimeout(this.timer);
  }
}
