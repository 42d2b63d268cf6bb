import { noSpread, resamples, type Resampled } from "./pairsBootstrap.ts";

/**
 * Group-sequential test of "the mean is at least −delta at every look" (Lan & DeMets 1983, Biometrika 70, linear spending), with
 * the joint law of the looks from the pairs bootstrap: by a look with progress p, at most alpha·p of the resampled paths may
 * have been stopped. The cut of a look is the k-th smallest studentised mean among the paths still alive; the observed one
 * alarms at or below it. earlywarning research §7.4.
 *
 * A look whose values have no spread spends nothing: exact copies of the start (a learning rate that warms up from 0) have
 * Z = 0 on every path and would stop them all. There the mean itself decides.
 */
export class GroupSequential {
  readonly #alpha: number;
  readonly #stopped = new Uint8Array(resamples);
  #spent = 0;

  /** @param alpha level of this series, over all its looks. */
  constructor(alpha: number) {
    this.#alpha = alpha;
  }

  /** Share of paths stopped so far: at most alpha but for ties. */
  get spent(): number {
    return this.#spent / resamples;
  }

  /** The next look; true: an alarm. The spending goes on after one, so that a later alarm keeps the level too. */
  look({ n, mean, variance, z }: Resampled, delta: number, progress: number): boolean {
    const k = Math.floor(this.#alpha * progress * resamples) - this.#spent;
    if (k < 1 || this.#spent >= resamples) return false;
    if (variance <= noSpread) return mean + delta < 0;
    const alive = z.filter((_, path) => this.#stopped[path] === 0).sort();
    const cut = alive[Math.min(k, alive.length) - 1] as number;
    z.forEach((value, path) => {
      if (this.#stopped[path] === 1 || value > cut) return;
      this.#stopped[path] = 1;
      this.#spent += 1;
    });
    return (mean + delta) / Math.sqrt(variance / (n - 1)) <= cut;
  }
}
