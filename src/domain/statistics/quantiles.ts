import { bisect, gammaln } from "simple-statistics";

/**
 * Distribution functions to full double precision. `simple-statistics` has `gammaln` and `bisect`, used here; its `probit`
 * and normal table are good to two or three digits only (probit(0.975) = 1.957), so they are not.
 */

/**
 * Regularised incomplete beta function I_x(a, b) by its continued fraction.
 * NIST Digital Library of Mathematical Functions, 8.17.22 (https://dlmf.nist.gov/8.17.E22), evaluated by Lentz' method.
 */
export function incompleteBeta(x: number, a: number, b: number): number {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - incompleteBeta(1 - x, b, a);
  const front = Math.exp(gammaln(a + b) - gammaln(a) - gammaln(b) + a * Math.log(x) + b * Math.log1p(-x)) / a;
  const tiny = 1e-300;
  const guard = (value: number): number => (Math.abs(value) < tiny ? tiny : value);
  let c = 1;
  let d = 1 / guard(1 - ((a + b) * x) / (a + 1));
  let fraction = d;
  for (let m = 1; m <= 500; m += 1) {
    const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
    for (const coefficient of [even, odd]) {
      d = 1 / guard(1 + coefficient * d);
      c = guard(1 + coefficient / c);
      fraction *= c * d;
    }
    if (Math.abs(c * d - 1) < 1e-15) break;
  }
  return front * fraction;
}

/** P(T ≤ t) for Student's t (DLMF 8.17 with x = df / (df + t²)). */
export function studentCdf(t: number, df: number): number {
  const tail = incompleteBeta(df / (df + t * t), df / 2, 0.5) / 2;
  return t > 0 ? 1 - tail : tail;
}

/** The value that Student's t with `df` degrees of freedom stays below with probability `p`. */
export function studentQuantile(p: number, df: number): number {
  if (!(p > 0 && p < 1)) return p === 0 ? -Infinity : p === 1 ? Infinity : NaN;
  if (p === 0.5) return 0;
  if (p < 0.5) return -studentQuantile(1 - p, df);
  let high = 2;
  while (studentCdf(high, df) < p) high *= 2;
  return bisect((t: number) => studentCdf(t, df) - p, 0, high, 200, 1e-12);
}

/** The value that a standard normal variable stays below with probability `p` (as Student's t with very many degrees of freedom). */
export function normalQuantile(p: number): number {
  if (!(p > 0 && p < 1)) return p === 0 ? -Infinity : p === 1 ? Infinity : NaN;
  if (p > 0.5) return -normalQuantile(1 - p);
  const t = Math.sqrt(-2 * Math.log(p));
  // Start: Abramowitz & Stegun 26.2.23 (error < 4.5e-4); then Newton steps on the exact distribution function.
  let z = -(t - (2.515517 + 0.802853 * t + 0.010328 * t * t) / (1 + 1.432788 * t + 0.189269 * t * t + 0.001308 * t ** 3));
  for (let round = 0; round < 4; round += 1) z -= (normalCdf(z) - p) / (Math.exp((-z * z) / 2) / Math.sqrt(2 * Math.PI));
  return z;
}

/**
 * P(Z ≤ z) for a standard normal: the series Φ(z) = ½ + φ(z) Σ z^(2k+1)/(2k+1)!! (Abramowitz & Stegun 26.2.11) near the
 * middle, the continued fraction of the upper tail (26.2.14) beyond.
 */
export function normalCdf(z: number): number {
  const density = Math.exp((-z * z) / 2) / Math.sqrt(2 * Math.PI);
  if (Math.abs(z) < 3) {
    let term = z;
    let sum = z;
    for (let k = 1; Math.abs(term) > 1e-17 * Math.abs(sum) && k < 200; k += 1) {
      term *= (z * z) / (2 * k + 1);
      sum += term;
    }
    return 0.5 + density * sum;
  }
  let fraction = 0;
  for (let k = 150; k >= 1; k -= 1) fraction = k / (Math.abs(z) + fraction);
  const tail = density / (Math.abs(z) + fraction);
  return z < 0 ? tail : 1 - tail;
}
