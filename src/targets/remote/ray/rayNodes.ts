import { basename } from "node:path";
import type { RemoteFile } from "../../../protocol/remote.ts";
import { AppError } from "../../../util/errors.ts";
import { t } from "../../../util/l10n.ts";
import type { RemotePlan } from "../port.ts";
import type { Station } from "../station.ts";
import { fits, submissionId } from "./rayText.ts";
import type { RayClient, RayNode } from "./rayClient.ts";

/** How a job of ours says which run it is of. */
export const runKey = "seesaw_run";

/** A station on one node; null: on whichever node Ray takes. */
export type StationOn = (node: string | null) => Station;

const living = (nodes: readonly RayNode[] | null): RayNode[] | null => nodes?.filter((node) => node.state === "ALIVE") ?? null;

/** The node that has a run's files, as far as its newest job that got one tells; null: not known, or gone. */
export async function nodeOfRun(client: RayClient, run: RemoteFile, signal?: AbortSignal): Promise<string | null> {
  for (const { attempt, nonce, job } of [...run.attempts].reverse()) {
    const found = (await client.job(job?.id ?? submissionId(basename(run.dir), attempt, nonce), signal))?.driver_node_id ?? null;
    if (found !== null) return stillThere(found, await client.nodes(signal));
  }
  return null;
}

function stillThere(node: string, nodes: readonly RayNode[] | null): string | null {
  return (living(nodes)?.some((one) => one.node_id === node) ?? true) ? node : null;
}

/**
 * The node on which an attempt has to run, because it needs what earlier runs left; null: any. Where the folder is on a disk
 * that other nodes see, none is better than another. AppError("bad-input") where the files are out of reach for good: a
 * training that starts again elsewhere would be another one.
 */
export async function nodeFor(client: RayClient, plan: RemotePlan, stationOn: StationOn, signal?: AbortSignal): Promise<string | null> {
  const needed = neededRuns(plan);
  if (needed.length === 0) return null;
  const seenFrom = async (node: string | null): Promise<boolean> => {
    const { items } = await stationOn(node).call({ verb: "have", items: needed.map((path) => ({ path })) }, signal === undefined ? {} : { signal });
    return (items as { there: boolean }[]).every(({ there }) => there);
  };
  const nodes = living(await client.nodes(signal)) ?? [];
  const owners = await ownersOf(client, needed, signal);
  const [owner] = owners;
  const known = owners.length === 1 && owner !== undefined && (nodes.length === 0 || nodes.some((one) => one.node_id === owner)) ? owner : null;
  const head = (list: readonly RayNode[]): RayNode | undefined => list.find((one) => one.is_head_node) ?? list[0];
  const others = nodes.filter((one) => one.node_id !== known);
  if (known !== null) return others.length === 0 || !(await seenFrom(head(others)?.node_id ?? null)) ? known : null;
  // Whose files they were is gone or not known. A node that could run it is asked first: to be tied to another one is to wait for ever.
  const able = head(others.filter((one) => fits(one, plan.spec.target.resources)));
  const second = head(others.filter((one) => one !== able));
  if (await seenFrom((able ?? second)?.node_id ?? null)) {
    if (able === undefined) return null; // it waits for a node with what is asked for, which then looks whether the files are there
    return second === undefined || !(await seenFrom(second.node_id)) ? able.node_id : null;
  }
  throw new AppError("bad-input", t("{0} is not on the Ray cluster any more: the node that had it is gone. Start the stage anew, or give the target a `dir` on a disk that all nodes share.", needed.join(", ")));
}

/** Run folders that an attempt reads: its own, if there was an attempt before, and those its paths lead into. */
export function neededRuns({ remote, spec, attempt }: Pick<RemotePlan, "remote" | "spec" | "attempt">): string[] {
  const runs = remote.dir.slice(0, remote.dir.length - basename(remote.dir).length);
  const found = new Set<string>(attempt > 1 ? [remote.dir] : []);
  for (const part of JSON.stringify(spec).split(runs).slice(1)) {
    const id = /^[^/"\\]+/.exec(part)?.[0];
    if (id !== undefined && runs + id !== remote.dir) found.add(runs + id);
  }
  return [...found].sort();
}

/** The nodes on which the newest jobs of these runs were. */
async function ownersOf(client: RayClient, folders: readonly string[], signal?: AbortSignal): Promise<string[]> {
  const jobs = await client.jobs(signal);
  const owners = new Set<string>();
  for (const folder of folders) {
    const mine = jobs.filter((job) => job.metadata?.[runKey] === basename(folder) && job.driver_node_id !== null);
    const newest = mine.reduce<(typeof mine)[number] | null>((best, job) => (best === null || (job.start_time ?? 0) >= (best.start_time ?? 0) ? job : best), null);
    if (newest?.driver_node_id != null) owners.add(newest.driver_node_id);
  }
  return [...owners];
}
