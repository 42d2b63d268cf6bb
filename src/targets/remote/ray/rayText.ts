import type { SchedulerWord } from "../../../protocol/remote.ts";
import type { Resources } from "../../../protocol/runSpec.ts";
import { runnerPackages } from "../stationRuns.ts";
import { ended, type RayJob, type RayJobRequest, type RayNode } from "./rayClient.ts";
import { lastLine } from "./rayErrors.ts";

/** The name of an attempt's job. Of the nonce, so that asking twice makes one job. */
export function submissionId(runId: string, attempt: number, nonce: string): string {
  return `seesaw-${runId}-${attempt}-${nonce}`.replace(/[^A-Za-z0-9_.-]/g, "-");
}

/** What a job holds while it runs. Without GPUs or CPUs said, it runs on the head and holds nothing. */
export function entrypointResources(resources: Resources | undefined): Pick<RayJobRequest, "entrypoint_num_cpus" | "entrypoint_num_gpus" | "entrypoint_memory"> {
  const memory = memoryBytes(resources?.memory);
  return {
    ...(resources?.cpus !== undefined && { entrypoint_num_cpus: resources.cpus }),
    ...(resources?.gpus !== undefined && { entrypoint_num_gpus: resources.gpus }),
    ...(memory !== null && { entrypoint_memory: memory }),
  };
}

/** `32G` in bytes; a bare number counts megabytes, as in Slurm. null: nothing said. */
export function memoryBytes(text: string | undefined): number | null {
  const [, count, unit = "M"] = /^(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?$/i.exec(text ?? "") ?? [];
  if (count === undefined) return null;
  return Math.round(Number(count) * 1024 ** ("KMGT".indexOf((unit || "M").toUpperCase()) + 1));
}

/** What Ray says of a job in the words of all schedulers. `said`: the sentence the job itself printed before it gave up. */
export function wordOf(job: RayJob | null, nodes: readonly RayNode[] | null, said: string | null, asked: Resources | undefined): SchedulerWord {
  if (job === null) return { state: "not-found", reason: null };
  const node = nodes?.find((one) => one.node_id === job.driver_node_id)?.node_name ?? null;
  if (job.status === "PENDING") return { state: "queued", reason: pendingReason(nodes, asked), nodes: null };
  if (!ended(job)) return { state: "running", reason: null, nodes: node };
  const why = said ?? unstartable(job, node);
  return { state: "ended", end: endOf(job), reason: why ?? endReason(job), ...(why !== null && { said: why }), nodes: node };
}

function endOf(job: RayJob): NonNullable<SchedulerWord["end"]> {
  if (job.status === "SUCCEEDED") return "exited";
  if (job.status === "STOPPED") return "cancelled";
  if (job.error_type === "JOB_SUPERVISOR_ACTOR_DIED") return "node-failure";
  // Ray's memory monitor kills the worker; the kernel's leaves this exit code.
  if (/OutOfMemory|out of memory/i.test(job.message ?? "")) return "out-of-memory";
  return "failed";
}

/** A shell's exit codes for a program that is not there, or is none: the target's Python on the job's node. In English, as ray_job.py says it. */
function unstartable(job: RayJob, node: string | null): string | null {
  if (job.status !== "FAILED" || (job.driver_exit_code !== 127 && job.driver_exit_code !== 126)) return null;
  return `On ${node ?? "the job's node"}, the Python of this target cannot be started. Make Python 3.10 or newer with ${runnerPackages.join(", ")} available there, or name another with \`python:\` of this target.`;
}

function endReason(job: RayJob): string | null {
  if (job.status === "STOPPED") return "STOPPED";
  if (job.status === "SUCCEEDED") return null;
  const code = job.driver_exit_code;
  return [job.error_type, code === null ? null : `exit code ${code}`, code === null ? lastLine(job.message ?? "") || null : null].filter((part) => part !== null).join(": ") || "FAILED";
}

/** Whether a node is there and has, when nothing else runs on it, what is asked for. */
export function fits({ state, resources_total: has }: RayNode, { gpus = 0, cpus = 0, memory }: Resources = {}): boolean {
  return state === "ALIVE" && (has["GPU"] ?? 0) >= gpus && (has["CPU"] ?? 0) >= cpus && (has["memory"] ?? 0) >= (memoryBytes(memory) ?? 0);
}

/** Why a job waits: Ray itself only says that it does. In English, as a scheduler's own words are. */
export function pendingReason(nodes: readonly RayNode[] | null, asked: Resources | undefined): string {
  const wanted = [["GPU", asked?.gpus ?? 0, ""], ["CPU", asked?.cpus ?? 0, ""], ["memory", memoryBytes(asked?.memory) ?? 0, " bytes"]] as const;
  const words = wanted.filter(([, count]) => count > 0).map(([name, count, unit]) => (unit === "" ? `${count} ${name}${count === 1 ? "" : "s"}` : `${count}${unit} of memory`));
  if (words.length === 0) return "PENDING";
  if (nodes !== null && !nodes.some((node) => fits(node, asked))) return `no node of the cluster has ${words.join(" and ")}`;
  return `waits for ${words.join(" and ")}`;
}
