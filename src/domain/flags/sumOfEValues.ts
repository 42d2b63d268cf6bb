/** Stakes of the bet, as shares of the largest safe one; their average needs no tuning. */
const stakes = Array.from({ length: 12 }, (_, i) => 0.02 * (0.95 / 0.02) ** (i / 11));

/**
 * Strict mode: exact for any number of rows, any dependence between looks and any stopping. Each look gives a betting
 * e-value of "the mean of z is at least −delta" (Waudby-Smith & Ramdas 2024, JRSS B 86: Π(1 − λ(z + delta)), averaged over λ); the
 * running sum with weights that add to 1 has expectation ≤ 1 and never falls, so P(ever ≥ 1/alpha) ≤ alpha by Markov.
 * z = n·w·d with the intercept's weights w, fixed by the start: independent over rows, |z| ≤ bound. earlywarning research §7.4.
 */
export class SumOfEValues {
  readonly #stakes: readonly number[];
  readonly #delta: number;
  #sum = 0;
  #progress = 0;

  constructor(bound: number, delta: number) {
    this.#stakes = stakes.map((stake) => stake / (bound + delta));
    this.#delta = delta;
  }

  /** The sum after the next look. */
  look(z: Float64Array, progress: number): number {
    const logs = this.#stakes.map((stake) => z.reduce((sum, value) => sum + Math.log1p(-stake * (value + this.#delta)), 0));
    const top = Math.max(...logs);
    const mean = logs.reduce((sum, value) => sum + Math.exp(value - top), 0) / logs.length;
    this.#sum += (progress - this.#progress) * Math.exp(Math.min(top, 50)) * mean;
    this.#progress = progress;
    return this.#sum;
  }
}
