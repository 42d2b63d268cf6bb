/** Healthy runs that are needed before a run can be called unusual: with fewer, no p-value of 0.1 exists. */
export const fewestHealthyRuns = 9;

/**
 * How unusual a run is among the project's healthy ones: p = (1 + #{S_j ≥ S}) / (n + 1) for a score that is larger the more a
 * run drifts. If this run too is healthy, p ≤ α with chance at most α (Vovk, Gammerman & Shafer 2005; Bates et al. 2023, Annals of Statistics 51). null
 * below nine runs: no history yet.
 */
export function conformalP(score: number, healthy: readonly number[]): number | null {
  if (healthy.length < fewestHealthyRuns) return null;
  return (1 + healthy.filter((other) => other >= score).length) / (healthy.length + 1);
}
