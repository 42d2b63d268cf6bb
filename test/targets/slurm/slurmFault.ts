import { fault } from "../shared/fault.ts";
import { Lab } from "../shared/lab.ts";
import type { SlurmCluster } from "./cluster.ts";

export type SlurmFault = (lab: Lab, the: Parameters<Parameters<typeof fault>[2]>[0]) => Promise<void>;

export interface SlurmFaultOptions {
  resources?: Record<string, unknown>;
  timeout?: number;
}

/** Faults on the cluster of a test file: each with a lab of its own, and the cluster is afterwards as it was. */
export function slurmFaults(cluster: () => SlurmCluster, prefix = "", usual = 480_000): (name: string, body: SlurmFault, options?: SlurmFaultOptions) => void {
  return (name, body, { resources = { partition: "low" }, timeout = usual } = {}) => {
    fault("slurm", `${prefix}${name}`, async (the) => {
      const lab = Lab.open({ kind: "slurm", resources });
      try {
        await body(lab, the);
      } finally {
        await cluster().clear();
        await lab.close();
      }
    }, { timeout });
  };
}
