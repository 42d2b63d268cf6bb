import { t } from "../../util/l10n.ts";
import type { Pipeline, Target } from "../pipeline/pipelineModel.ts";

/** Where a target is, for people: `gpu-box`, `login1 (Slurm)`, `http://head:8265`. */
export function targetAddress(target: Target): string {
  switch (target.kind) {
    case "local":
      return t("this machine");
    case "ssh":
      return target.host;
    case "slurm":
      return target.host === null ? t("this machine (Slurm)") : `${target.host} (Slurm)`;
    case "ray":
      return target.address;
  }
}

/** The host that `ssh` logs in to for a target; null where none is needed. */
export function loginHost(target: Target): string | null {
  return target.kind === "ssh" || target.kind === "slurm" ? target.host : null;
}

/** Whether a target starts runs of several seeds at once, as one job array. */
export function startsTogether({ kind }: Pick<Target, "kind">): boolean {
  return kind === "slurm";
}

/** The stages that run on a target, in the order of the chain. */
export function stagesOn(pipeline: Pick<Pipeline, "stages">, target: string): string[] {
  return pipeline.stages.filter(({ on }) => on === target).map(({ id }) => id);
}
