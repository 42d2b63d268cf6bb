/**
 * The first places by their keys, the largest key first; equal keys keep their order. Keys are no NaN. Of a hundred thousand
 * a list shows two thousand: those are picked in one pass around the key that divides them, and only they are sorted.
 */
export function firstByKey(places: Uint32Array, keys: Float64Array, limit = Infinity): Uint32Array {
  const compare = (a: number, b: number): number => (keys[b] as number) - (keys[a] as number) || a - b;
  if (limit >= places.length) return places.slice().sort(compare);
  // Plain loops: they run a hundred thousand times.
  const values = new Float64Array(places.length);
  for (let i = 0; i < places.length; i++) values[i] = keys[places[i] as number] as number;
  const least = nthLargest(values, limit);
  const [found, same] = [new Uint32Array(limit), new Uint32Array(limit)];
  let [more, equal] = [0, 0];
  for (let i = 0; i < places.length; i++) {
    const place = places[i] as number;
    const key = keys[place] as number;
    if (key > least) found[more++] = place;
    else if (key === least && equal < limit) same[equal++] = place;
  }
  found.set(same.subarray(0, limit - more), more);
  return found.sort(compare);
}

/** The n-th largest value, n from 1; 0: more than any. The values are put into another order. */
function nthLargest(values: Float64Array, n: number): number {
  if (n < 1) return Infinity;
  let [low, high] = [0, values.length - 1];
  const wanted = n - 1;
  while (low < high) {
    const pivot = middleOf(values[low] as number, values[(low + high) >> 1] as number, values[high] as number);
    let [left, right] = [low, high];
    while (left <= right) {
      while ((values[left] as number) > pivot) left++;
      while ((values[right] as number) < pivot) right--;
      if (left > right) break;
      const value = values[left] as number;
      values[left++] = values[right] as number;
      values[right--] = value;
    }
    if (wanted <= right) high = right;
    else if (wanted >= left) low = left;
    else break;
  }
  return values[wanted] as number;
}

function middleOf(a: number, b: number, c: number): number {
  return Math.max(Math.min(a, b), Math.min(Math.max(a, b), c));
}
