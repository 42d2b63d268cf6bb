/** A source of numbers in [0, 1), the same for the same seed everywhere: sfc32 (PractRand, Doty-Humphrey), state from the seed by splitmix32. */
export function seededRandom(seed: number): () => number {
  let mix = seed >>> 0;
  const split = (): number => {
    mix = (mix + 0x9e3779b9) | 0;
    let t = mix ^ (mix >>> 16);
    t = Math.imul(t, 0x21f0aaad);
    t ^= t >>> 15;
    t = Math.imul(t, 0x735a2d97);
    return (t ^ (t >>> 15)) | 0;
  };
  let [a, b, c, counter] = [split(), split(), split(), 1];
  const next = (): number => {
    const out = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (c << 21) | (c >>> 11);
    c = (c + out) | 0;
    return (out >>> 0) / 4294967296;
  };
  for (let round = 0; round < 12; round += 1) next();
  return next;
}
