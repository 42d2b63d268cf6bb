/** An accelerator as its maker describes it; what a training gets of it is another question (see `hours.ts`). */
export interface Device {
  name: string;
  cuda: boolean;
  /** Memory a process can use, in bytes; null: not known. */
  memory: number | null;
  /** Dense multiply-adds in bf16 (V100: fp16), in FLOP/s; for a CPU float32. */
  flops: number;
  /** Bytes of memory read in a second. */
  bandwidth: number;
}

const gib = 2 ** 30;

/**
 * NVIDIA's data sheets: dense tensor-core rates without sparsity, and the memory that nvidia-smi shows (an "80 GB" card has
 * 79.3 GiB). The first name that a device's own name contains decides; consumer cards with their float32 accumulation.
 */
const table: readonly (readonly [name: string, gibOfMemory: number, teraflops: number, terabytesPerSecond: number])[] = [
  ["B200", 178, 2250, 8.0],
  ["H200", 139.8, 989, 4.8],
  ["H100 PCIe", 79.1, 756, 2.0],
  ["H100", 79.1, 989, 3.35],
  ["H800", 79.1, 989, 3.35],
  ["H20", 95.6, 148, 4.0],
  ["A100-SXM4-80GB", 79.3, 312, 2.04],
  ["A100 80GB", 79.3, 312, 1.94],
  ["A100", 39.4, 312, 1.56],
  ["A800", 79.3, 312, 2.04],
  ["L40S", 44.5, 362, 0.86],
  ["L40", 44.5, 181, 0.86],
  ["A6000", 47.5, 155, 0.77],
  ["L4", 22.0, 121, 0.3],
  ["A10", 22.0, 125, 0.6],
  ["V100-SXM2-32GB", 31.7, 125, 0.9],
  ["V100", 15.8, 125, 0.9],
  ["RTX 5090", 31.4, 209, 1.79],
  ["RTX 4090", 23.5, 165, 1.01],
  ["RTX 3090", 23.7, 71, 0.94],
  ["T4", 14.6, 65, 0.32],
];

/** The sizes that are always answered, and the card that each stands for. */
export const sizeClasses: readonly { label: string; device: Device }[] = ([["24 GB", "RTX 4090"], ["40 GB", "A100"], ["80 GB", "A100 80GB"], ["141 GB", "H200"]] as const).map(([label, name]) => ({ label, device: known(name) as Device }));

/** The device that a run named in its journal (`NVIDIA H200`, `CPU (2 threads)`); null for one that the table does not have. */
export function known(name: string): Device | null {
  const cpu = /^CPU(?: \((\d+) threads?\))?/.exec(name);
  // One core of today does some 30 GFLOP/s in float32 with the vector units of a laptop or a cloud machine.
  if (cpu !== null) return { name, cuda: false, memory: null, flops: 30e9 * Number(cpu[1] ?? 1), bandwidth: 20e9 };
  const plain = name.toLowerCase().replaceAll("-", " ");
  const row = table.find(([key]) => plain.includes(key.toLowerCase().replaceAll("-", " ")));
  return row === undefined ? null : { name: row[0], cuda: true, memory: row[1] * gib, flops: row[2] * 1e12, bandwidth: row[3] * 1e12 };
}

/**
 * What `--device` asks for: a size (`80GB`, `80`), a name of the table (`H100`), or `cpu`. A size that no card has takes the
 * rates of the next smaller one. null for what is neither.
 */
export function askedDevice(text: string): Device | null {
  const size = /^(\d+(?:\.\d+)?)\s*(?:g|gb|gib)?$/i.exec(text.trim());
  if (size === null) return /^cpu$/i.test(text.trim()) ? known("CPU") : known(text);
  const gigabytes = Number(size[1]);
  if (!(gigabytes > 0)) return null;
  const exact = sizeClasses.find(({ label }) => label === `${gigabytes} GB`);
  if (exact !== undefined) return exact.device;
  const like = sizeClasses.findLast(({ label }) => Number(label.split(" ")[0]) <= gigabytes) ?? (sizeClasses[0] as (typeof sizeClasses)[number]);
  return { ...like.device, name: `${gigabytes} GB (as fast as ${like.device.name})`, memory: gigabytes * 0.985 * gib };
}

/** Taken by the CUDA context and libraries before a first tensor is made. */
export const contextBytes = 0.6 * gib;

export type Fit = "yes" | "tight" | "no";

/** Whether a peak fits: `tight` where only a part of the range does. */
export function fits(peak: { peak: number; high: number }, device: Device): Fit | null {
  if (device.memory === null) return null;
  const room = device.memory - (device.cuda ? contextBytes : 0);
  return peak.high <= room ? "yes" : peak.peak <= room ? "tight" : "no";
}
