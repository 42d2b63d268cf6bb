import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** A model folder with these float32 tensors, rows first: enough for what reads weights and nothing else. */
export function makeWeights(folder: string, tensors: Readonly<Record<string, { shape: number[]; value: (index: number) => number }>>, config: object = { tie_word_embeddings: true }): string {
  mkdirSync(folder, { recursive: true });
  const header: Record<string, object> = {};
  const parts: Buffer[] = [];
  let at = 0;
  for (const [name, { shape, value }] of Object.entries(tensors)) {
    const numbers = Float32Array.from({ length: shape.reduce((product, side) => product * side, 1) }, (_, index) => value(index));
    parts.push(Buffer.from(numbers.buffer));
    header[name] = { dtype: "F32", shape, data_offsets: [at, at + numbers.byteLength] };
    at += numbers.byteLength;
  }
  const text = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  writeFileSync(join(folder, "model.safetensors"), Buffer.concat([length, text, ...parts]));
  writeFileSync(join(folder, "config.json"), JSON.stringify(config));
  return folder;
}

/** A two-layer model whose numbers follow from `seed`; `push`: how far layer 1 was moved. */
export function makeModel(folder: string, push = 0): string {
  const wave = (seed: number, change = 0) => (index: number): number => Math.sin(seed * 100 + index) + change * Math.cos(index * 0.7);
  return makeWeights(folder, {
    "model.embed_tokens.weight": { shape: [32, 8], value: wave(1) },
    ...Object.fromEntries([0, 1].flatMap((layer) => ["self_attn.q_proj", "mlp.up_proj"].map((module, k) => [`model.layers.${layer}.${module}.weight`, { shape: [16, 8], value: wave(2 + layer * 2 + k, layer * push) }]))),
    "model.norm.weight": { shape: [8], value: () => 1 },
  });
}
