import { existsSync, mkdirSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { RayClient, RayNode } from "../../../src/targets/remote/ray/rayClient.ts";
import { run, spawnDetached } from "../../../src/targets/spawn.ts";
import { descendants, endProcess, identify, leave, signalIt } from "../shared/leftovers.ts";
import { gcsPort, keeper, ray, settings, type RayHead } from "./head.ts";
import { until } from "./rayLab.ts";

/** Lays folders of this machine over others, for this process and what it starts alone: DISK PLACE … -- PROGRAM … */
const ownDisk = [
  "import os,subprocess,sys",
  "words=sys.argv[1:]",
  "end=words.index('--')",
  "for disk,place in zip(words[:end:2],words[1:end:2]): subprocess.check_call(['mount','--bind',disk,place])",
  "os.execvp(words[end+1],words[end+1:])",
].join("\n");

export interface WorkerOptions {
  gpus?: number;
  cpus?: number;
  /** Folders that this node has for itself: what lies there is on no other node. */
  own?: string[];
}

/** A second node of a cluster: an address of its own beside the head's, made-up GPUs, and folders that only it sees. */
export class RayWorker {
  readonly node: RayNode;
  private readonly disks: ReadonlyMap<string, string>;
  private readonly who: { pid: number; start: number | null; boot: string };
  private readonly undo: (() => Promise<void>)[];

  private constructor(node: RayNode, who: RayWorker["who"], disks: RayWorker["disks"], undo: RayWorker["undo"]) {
    this.node = node;
    this.who = who;
    this.disks = disks;
    this.undo = undo;
  }

  static async open(head: RayHead, client: RayClient, { gpus = 1, cpus = 2, own = [] }: WorkerOptions = {}): Promise<RayWorker> {
    const temp = mkdtempSync(join(tmpdir(), "sww-"));
    const undo = [leave({ kind: "folder", path: temp })];
    // Ray's own files too: two nodes on one disk would share sockets and logs.
    const disks = new Map([...own, head.temp].map((place, at) => [place, join(temp, String(at))]));
    for (const [place, disk] of disks) for (const folder of [place, disk]) mkdirSync(folder, { recursive: true });
    const address = await head.host.another();
    const argv = [
      "unshare", "--mount", "--propagation", "private", "python3", "-c", ownDisk, ...[...disks].flatMap(([place, disk]) => [disk, place]), "--",
      "python3", "-c", keeper, ray, "start", "--address", `${head.host.address}:${gcsPort}`, "--node-ip-address", address,
      "--dashboard-agent-listen-port", "52366", "--dashboard-agent-grpc-port", "52367", "--runtime-env-agent-port", "52368", "--metrics-export-port", "52369",
      "--disable-usage-stats", "--num-cpus", String(cpus), "--num-gpus", String(gpus), "--object-store-memory", "100000000",
    ];
    const log = join(temp, "worker.log");
    try {
      const pid = await spawnDetached(head.host.inside(argv), { env: { ...process.env, ...settings, ...head.secret }, log });
      const who = identify(pid);
      if (who === null) throw new Error(`The Ray node ended at once: ${said(log)}`);
      undo.push(leave({ kind: "process", ...who, what: "ray node" }));
      let node: RayNode | undefined;
      await until("the second node is in the cluster", async () => {
        if (identify(pid) === null) throw new Error(`The Ray node does not come up: ${said(log).slice(-1_500)}`);
        node = (await client.nodes())?.find((one) => one.node_name === address && one.state === "ALIVE");
        return node !== undefined;
      }, 300);
      return new RayWorker(node as RayNode, who, disks, undo);
    } catch (error) {
      for (const one of undo.reverse()) await one();
      throw error;
    }
  }

  /** Where a file of this node's own folders lies for us. */
  seen(path: string): string {
    for (const [place, disk] of this.disks) if (path.startsWith(`${place}/`)) return disk + path.slice(place.length);
    return path;
  }

  /** Everything on it ends at once, trainings too, as when its power fails. */
  powerOff(): void {
    for (const one of [...descendants(this.who.pid), this.who]) signalIt(one, "SIGKILL");
  }

  async close(): Promise<void> {
    await endProcess(this.who, 10_000);
    for (const one of this.undo.reverse()) await one();
  }
}

/** Why folders of its own cannot be had; null where they can. */
export async function noOwnDisk(): Promise<string | null> {
  const tried = await run(["unshare", "--mount", "--propagation", "private", "true"], { timeout: 10_000 }).catch(() => null);
  return tried?.code === 0 ? null : "mount namespaces cannot be made here";
}

const said = (log: string): string => (existsSync(log) ? readFileSync(log, "utf8") : "");
