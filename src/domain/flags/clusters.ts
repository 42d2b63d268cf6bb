/** Rows that count once together. `of`: which cluster each row is in; clusters are numbered in the order of their first rows. */
export interface Clusters {
  of: Int32Array;
  sizes: Float64Array;
  n: number;
}

/** Clusters of rows by their group; without groups, or with a negative one, a row stands alone. */
export function clustersOf(rows: number, groups: Int32Array | undefined): Clusters {
  const of = new Int32Array(rows);
  const seen = new Map<number, number>();
  const sizes: number[] = [];
  for (let row = 0; row < rows; row += 1) {
    const group = groups?.[row] ?? -1;
    let cluster = seen.get(group);
    if (cluster === undefined) {
      cluster = sizes.push(0) - 1;
      if (group >= 0) seen.set(group, cluster);
    }
    of[row] = cluster;
    sizes[cluster] = (sizes[cluster] as number) + 1;
  }
  return { of, sizes: Float64Array.from(sizes), n: sizes.length };
}

/** Mean over each cluster of a number a row. */
export function clusterMeans(values: Float64Array, clusters: Clusters): Float64Array {
  if (clusters.n === values.length) return values;
  const means = new Float64Array(clusters.n);
  values.forEach((value, row) => {
    const cluster = clusters.of[row] as number;
    means[cluster] = (means[cluster] as number) + value / (clusters.sizes[cluster] as number);
  });
  return means;
}
