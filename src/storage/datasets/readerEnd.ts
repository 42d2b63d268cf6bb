import { toDisposable, type Disposable } from "../../util/disposable.ts";
import { t } from "../../util/l10n.ts";
import { Throttle, watchDataset } from "./fileWatch.ts";

/** What every dataset reader has in common: who listens, the watch on the file, and an end that waits for what still reads it. */
export abstract class ReaderEnd implements Disposable {
  readonly path: string;
  /** The file on disk is no longer the one that is shown. */
  protected changed = false;
  protected disposed = false;
  protected readonly throttle = new Throttle(() => this.listeners.forEach((run) => run()));
  private readonly listeners = new Set<() => void>();
  private readonly watch: Disposable;
  private readonly closeFile: () => Promise<void>;
  /** What still needs the file. */
  private readonly pending = new Set<Promise<unknown>>();

  constructor(path: string, closeFile: () => Promise<void>) {
    this.path = path;
    this.closeFile = closeFile;
    this.watch = watchDataset(path, () => {
      if (!this.disposed && !this.changed) this.look();
    });
  }

  onDidChange(run: () => void): Disposable {
    this.listeners.add(run);
    return toDisposable(() => this.listeners.delete(run));
  }

  dispose(): void {
    if (this.disposed) return;
    this.disposed = true;
    this.watch.dispose();
    this.throttle.dispose();
    this.listeners.clear();
    this.forget();
    void Promise.allSettled(this.pending).then(() => this.closeFile()).catch(() => {});
  }

  /** The file on disk was touched. */
  protected abstract look(): void;

  /** Drops what is kept in memory. */
  protected forget(): void {}

  protected tellChanged(): void {
    this.changed = true;
    this.throttle.now();
  }

  protected mustBeOpen(): void {
    if (this.disposed) throw new Error(t("{0} was closed.", this.path));
  }

  /** The file stays open until this has ended. */
  protected async holding<T>(work: Promise<T>): Promise<T> {
    this.pending.add(work);
    try {
      return await work;
    } finally {
      this.pending.delete(work);
    }
  }
}
