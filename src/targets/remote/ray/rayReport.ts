import type { RaySettings, TargetReport } from "../../../protocol/remote.ts";
import { t } from "../../../util/l10n.ts";
import type { StationRuns } from "../stationRuns.ts";
import type { RayClient, RayNode } from "./rayClient.ts";
import { fits } from "./rayText.ts";

/** What a cluster has for a stage. The node that is looked at closely is one that could run it. */
export async function rayReport(client: RayClient, settings: RaySettings, runsOn: (node: string | null) => StationRuns, signal?: AbortSignal): Promise<TargetReport> {
  const began = performance.now();
  const ray = await client.version(signal);
  const roundTrip = Math.round(performance.now() - began);
  const nodes = await client.nodes(signal);
  const { gpus = 0, cpus = 0, memory } = settings.resources;
  const fitting = nodes?.find((node) => fits(node, settings.resources)) ?? null;
  const found = await runsOn(gpus > 0 ? (fitting?.node_id ?? null) : null).check({ target: settings.id, kind: "ray", address: client.address }, settings.dir, signal);
  const problems = [...found.problems];
  if (nodes !== null && fitting === null) {
    problems.push({ reason: "resources", message: t("No node of the cluster at {0} has {1} GPUs, {2} CPUs and {3} of memory: a stage would wait until one joins. Correct `resources:` of this target in seesaw.yaml.", client.address, gpus, cpus, memory ?? "0G") });
  }
  // The dashboard answers, so the cluster can be reached, whatever a job on it could not do.
  return { ...found, reachable: true, problems, queue: nodes === null ? null : await queueOf(client, nodes, signal), versions: { Ray: ray, ...found.versions }, roundTrip };
}

/** One line a node; who waits, waits for the cluster. */
async function queueOf(client: RayClient, nodes: readonly RayNode[], signal?: AbortSignal): Promise<TargetReport["queue"]> {
  const jobs = (await client.jobs(signal)).filter((job) => job.metadata?.["seesaw"] !== "question");
  const waiting = jobs.filter((job) => job.status === "PENDING").length;
  return nodes.filter((node) => node.state === "ALIVE").map((node, index) => {
    const gpus = node.resources_total["GPU"];
    return {
      name: node.node_name,
      state: node.state.toLowerCase(),
      nodes: 1,
      gpus: gpus === undefined ? null : `${gpus} GPU${gpus === 1 ? "" : "s"}`,
      waiting: index === 0 ? waiting : 0,
      running: jobs.filter((job) => job.status === "RUNNING" && job.driver_node_id === node.node_id).length,
    };
  });
}
