import type { TargetReport } from "../../../../src/protocol/remote.ts";

/** A cluster that answers, and lacks a package. */
export const report: TargetReport = {
  target: "cluster",
  kind: "slurm",
  address: "login1 (Slurm)",
  reachable: true,
  problems: [{ reason: "packages", message: "n1 lacks peft." }],
  python: { path: "/envs/trl/bin/python", version: "3.11.2", packages: { torch: "2.4.0", peft: null } },
  gpus: [
    { name: "NVIDIA H100", total: 80e9, used: 12e9, utilisation: 40 },
    { name: "NVIDIA H100", total: 80e9, used: 0, utilisation: 0 },
  ],
  disk: { free: 20e9, total: 1e12 },
  queue: [
    { name: "gpu", state: "up", nodes: 2, gpus: "gpu:4", waiting: 5, running: 3 },
    { name: "old", state: "down", nodes: 1, gpus: null, waiting: 0, running: 0 },
  ],
  versions: { slurm: "22.05.8" },
  roundTrip: 42,
};

/** One that wants a password. */
export const unreached: TargetReport = { target: "box", kind: "ssh", address: "gpu-box", reachable: false, problems: [{ reason: "login", message: "gpu-box wants a password." }], python: null, gpus: null, disk: null, queue: null, versions: {}, roundTrip: null };
