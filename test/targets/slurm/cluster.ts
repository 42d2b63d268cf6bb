import { spawn, type ChildProcess } from "node:child_process";
import { appendFileSync, chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { randomBytes } from "node:crypto";
import { createServer } from "node:net";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { run, spawnDetached, type RunResult } from "../../../src/targets/spawn.ts";
import { startDatabase } from "./database.ts";

/** Debian packages that the cluster is made of. */
export const packages = ["slurmctld", "slurmd", "slurm-client", "munge", "slurm-wlm-basic-plugins"];

export interface ClusterOptions {
  /** Seconds that slurmctld remembers an ended job. */
  minJobAge?: number;
  /** A slurmdbd with a MariaDB, for `sacct`. */
  accounting?: boolean;
}

/** What is missing here for a cluster, as a sentence; null: nothing. */
export function missing(options: ClusterOptions = {}): string | null {
  const programs = ["slurmctld", "slurmd", "sbatch", "munged", ...(options.accounting === true ? ["slurmdbd", "mariadbd"] : [])];
  const lacks = programs.filter((name) => !["/usr/sbin", "/usr/bin"].some((folder) => existsSync(join(folder, name))));
  if (lacks.length > 0) return `LEFT OUT: ${lacks.join(", ")} not installed. apt-get install --no-install-recommends ${[...packages, ...(options.accounting === true ? ["slurmdbd", "mariadb-server"] : [])].join(" ")}`;
  return process.getuid?.() === 0 ? null : "LEFT OUT: the test's Slurm makes device files and needs root.";
}

/**
 * A Slurm of the test's own on this machine: munged, slurmctld and two slurmd (n1, n2) with two fake GPUs each, all below one
 * temporary folder, on free ports of 127.0.0.1. While it runs, this process's environment points Slurm's programs to it.
 * A guard process ends everything by recorded pid when the test ends, however it ends.
 */
export class SlurmCluster {
  readonly dir: string;
  readonly env: NodeJS.ProcessEnv;
  private readonly guard: ChildProcess;
  private readonly pids = new Map<string, number>();
  private readonly mark: string;
  private stopping: Promise<void> | null = null;

  private constructor() {
    this.dir = mkdtempSync(join(tmpdir(), "slurm-"));
    chmodSync(this.dir, 0o755);
    this.mark = `SEESAW_TEST_SLURM=${this.dir}`;
    this.guard = spawn("/usr/bin/python3", [join(import.meta.dirname, "guard.py"), this.dir, this.mark], { detached: true, stdio: ["pipe", "ignore", "ignore"] });
    // The pipe may not keep the test alive: it closes by itself when the test is over.
    this.guard.unref();
    (this.guard.stdin as unknown as { unref(): void }).unref();
    Object.assign(process.env, { SLURM_CONF: join(this.dir, "slurm.conf"), SEESAW_TEST_SLURM: this.dir });
    this.env = process.env;
  }

  static async start(options: ClusterOptions = {}): Promise<SlurmCluster> {
    const cluster = new SlurmCluster();
    try {
      await cluster.configure(options);
      await cluster.startMunge();
      if (options.accounting === true) await startDatabase(cluster);
      await cluster.startController(["-c"]);
      for (const node of ["n1", "n2"]) await cluster.startNode(node);
      await cluster.until("both nodes are idle", async () => (await cluster.sinfo()).filter((state) => state === "idle").length === 2);
      return cluster;
    } catch (error) {
      const logs = ["slurmctld", "slurmd-n1", "munged"].map((name) => `${name}: ${cluster.log(name).split("\n").slice(-12).join("\n")}`);
      await cluster.stop();
      throw new Error(`The cluster did not start: ${String(error)}\n${logs.join("\n")}`, { cause: error });
    }
  }

  /** Ends every process of the cluster and of its jobs, and removes its folder. */
  stop(): Promise<void> {
    this.stopping ??= new Promise((resolve) => {
      delete process.env["SLURM_CONF"];
      delete process.env["SEESAW_TEST_SLURM"];
      this.guard.ref();
      this.guard.once("exit", () => resolve());
      this.guard.stdin?.end();
    });
    return this.stopping;
  }

  async startMunge(): Promise<void> {
    const folder = join(this.dir, "munge");
    const file = (name: string): string => join(folder, name);
    await this.daemon("munged", ["/usr/sbin/munged", "--foreground", "--force", `--key-file=${file("key")}`, `--socket=${file("munge.sock")}`, `--pid-file=${file("pid")}`, `--log-file=${file("log")}`, `--seed-file=${file("seed")}`]);
    await this.until("munged listens", () => Promise.resolve(existsSync(file("munge.sock"))));
  }

  startController(args: string[] = []): Promise<void> {
    return this.daemon("slurmctld", ["/usr/sbin/slurmctld", "-D", ...args]);
  }

  /** `over`: what the node and its jobs find at some paths instead of what is there on this machine, as on disks of its own. */
  startNode(node: string, over: Readonly<Record<string, string>> = {}): Promise<void> {
    const argv = ["/usr/sbin/slurmd", "-D", "-N", node];
    const mount = 'while [ "$1" != -- ]; do mount --bind "$2" "$1" || exit 1; shift 2; done; shift; exec "$@"';
    const own = Object.keys(over).length === 0 ? [] : ["unshare", "--mount", "--propagation", "slave", "sh", "-c", mount, "sh", ...Object.entries(over).flat(), "--"];
    return this.daemon(`slurmd-${node}`, [...own, ...argv], { SEESAW_TEST_NODE: node });
  }

  /** Starts a program that outlives the test unless it is ended, and records it for the guard. */
  async daemon(name: string, argv: string[], env: NodeJS.ProcessEnv = {}): Promise<void> {
    const pid = await spawnDetached(argv, { env: { ...process.env, ...env }, log: join(this.dir, "log", `${name}.out`) });
    this.pids.set(name, pid);
    appendFileSync(join(this.dir, "pids"), `${pid} ${startOf(pid) ?? "-"} ${name}\n`);
  }

  /** Ends one daemon by its pid and waits until it is gone. */
  async end(name: string, signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
    const pid = this.pids.get(name);
    if (pid === undefined || startOf(pid) === null) return;
    process.kill(pid, signal);
    await this.until(`${name} is gone`, () => Promise.resolve(startOf(pid) === null));
    this.pids.delete(name);
  }

  /** Kills a node as a power cut would, but for the training: slurmd and its slurmstepd, by pid. Their jobs' processes live on. */
  async loseNode(node: string): Promise<void> {
    const steps = (await run(["/usr/bin/pgrep", "-x", "slurmstepd"])).stdout.split("\n").filter(Boolean).map(Number);
    await this.end(`slurmd-${node}`, "SIGKILL");
    for (const step of steps.filter((step) => inherited(step, this.mark, `SEESAW_TEST_NODE=${node}`))) process.kill(step, "SIGKILL");
  }

  /** One of Slurm's programs, never a shell. */
  client(argv: string[], timeout = 60_000): Promise<RunResult> {
    return run(argv, { env: this.env, timeout });
  }

  async ok(argv: string[]): Promise<string> {
    const result = await this.client(argv);
    if (result.code !== 0) throw new Error(`${argv.join(" ")}: ${result.code} ${result.stderr}`);
    return result.stdout.trim();
  }

  /** States of the nodes. */
  async sinfo(): Promise<string[]> {
    return (await this.client(["sinfo", "-h", "-N", "-o", "%T"])).stdout.split("\n").filter(Boolean).slice(0, 2);
  }

  /** `NAME=value` of one job. */
  async job(id: string, name: string): Promise<string | null> {
    const { stdout } = await this.client(["scontrol", "show", "job", "-o", id]);
    return new RegExp(`(?:^| )${name}=(\\S*)`).exec(stdout)?.[1] ?? null;
  }

  /** Waits until a job's state is one of these. */
  async waitFor(id: string, states: string[], seconds = 180): Promise<string> {
    let state: string | null = null;
    await this.until(`job ${id} is ${states.join(" or ")} (it is ${String(state)})`, async () => states.includes((state = await this.job(id, "JobState")) ?? ""), seconds);
    return state ?? "";
  }

  /** Fills both nodes, so that whatever comes next waits; gives the job's id. */
  async fill(partition = "low"): Promise<string> {
    const id = await this.ok(["sbatch", "--parsable", "--output=/dev/null", "--no-requeue", "--exclusive", "--nodes=2", `--partition=${partition}`, "--wrap=sleep 900"]);
    await this.waitFor(id, ["RUNNING"]);
    return id;
  }

  /** Everything as at the start: no jobs, both nodes up. For the next test. */
  async clear(): Promise<void> {
    await this.ok(["scancel", "--me"]);
    for (const node of ["n1", "n2"]) if (!this.pids.has(`slurmd-${node}`)) await this.startNode(node);
    const idle = async (): Promise<boolean> => {
      const { stdout } = await this.client(["sinfo", "-h", "-N", "-o", "%N %T", "-p", "low"]);
      for (const [, node] of stdout.matchAll(/^(n\d) (?:down|drain)/gm)) if (node !== undefined) await this.client(["scontrol", "update", `nodename=${node}`, "state=resume"]);
      return [...stdout.matchAll(/^n\d idle$/gm)].length === 2;
    };
    await this.until("both nodes are idle again", idle, 240);
  }

  /** A requeued job may not start for two minutes; this starts it at once. */
  async hurry(id: string): Promise<void> {
    await this.until(`job ${id} waits again`, async () => (await this.job(id, "JobState")) === "PENDING" && Number(await this.job(id, "Restarts")) > 0);
    // Credentials are dated in seconds: one of the second in which the last one was revoked is refused ("Job credential revoked").
    await new Promise((resolve) => setTimeout(resolve, 2000));
    await this.ok(["scontrol", "update", `jobid=${id}`, "StartTime=now"]);
  }

  async until(what: string, condition: () => Promise<boolean>, seconds = 180): Promise<void> {
    const end = Date.now() + seconds * 1000;
    while (!(await condition())) {
      if (Date.now() > end) throw new Error(`After ${seconds} s it is still not so that ${what}.`);
      await new Promise((resolve) => setTimeout(resolve, 150));
    }
  }

  log(name: string): string {
    const file = join(this.dir, "log", `${name}.out`);
    return existsSync(file) ? readFileSync(file, "utf8") : "";
  }

  private async configure(options: ClusterOptions): Promise<void> {
    for (const folder of ["state", "spool", "log", "run", "munge"]) mkdirSync(join(this.dir, folder), { mode: 0o755 });
    writeFileSync(join(this.dir, "munge", "key"), randomBytes(128), { mode: 0o400 });
    for (const gpu of ["gpu0", "gpu1"]) await run(["/usr/bin/mknod", join(this.dir, gpu), "c", "1", "3"]);
    const ports = await freePorts(4);
    const host = hostname().split(".")[0] ?? "localhost";
    writeFileSync(join(this.dir, "gres.conf"), `Name=gpu File=${this.dir}/gpu[0-1]\n`);
    writeFileSync(join(this.dir, "slurm.conf"), configuration(this.dir, host, ports, options));
    this.accountingPort = ports[3] ?? 0;
  }

  accountingPort = 0;
}

function configuration(dir: string, host: string, ports: number[], options: ClusterOptions): string {
  const accounting = options.accounting === true
    ? `AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=127.0.0.1\nAccountingStoragePort=${ports[3]}\nAccountingStoragePass=${dir}/munge/munge.sock\nAccountingStoreFlags=job_comment`
    : "AccountingStorageType=accounting_storage/none";
  return `ClusterName=ci
SlurmctldHost=${host}(127.0.0.1)
SlurmctldPort=${ports[0]}
SlurmdPort=${ports[1]}
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=${dir}/munge/munge.sock
CredType=cred/munge
StateSaveLocation=${dir}/state
SlurmdSpoolDir=${dir}/spool/%n
SlurmctldPidFile=${dir}/run/slurmctld.pid
SlurmdPidFile=${dir}/run/slurmd-%n.pid
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,sched_min_interval=0,batch_sched_delay=0
${accounting}
JobCompType=jobcomp/none
MinJobAge=${options.minJobAge ?? 300}
KillWait=5
InactiveLimit=0
MessageTimeout=10
SlurmdTimeout=300
JobRequeue=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
GresTypes=gpu
NodeName=n1 NodeHostname=${host} NodeAddr=127.0.0.1 Port=${ports[1]} CPUs=4 RealMemory=2000 Gres=gpu:2 State=UNKNOWN
NodeName=n2 NodeHostname=${host} NodeAddr=127.0.0.1 Port=${ports[2]} CPUs=4 RealMemory=2000 Gres=gpu:2 State=UNKNOWN
PartitionName=low Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1 PreemptMode=REQUEUE GraceTime=10
PartitionName=high Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF
PartitionName=short Nodes=n2 MaxTime=00:10:00 State=UP PriorityTier=1
`;
}

/** When a process began; null when it is gone or a zombie. */
function startOf(pid: number): string | null {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "latin1").split(")").at(-1)?.trim().split(" ") ?? [];
    return fields[0] === "Z" || fields[0] === "X" ? null : (fields[19] ?? null);
  } catch {
    return null;
  }
}

/** Whether a process has all these in its environment. slurmstepd writes its title over the first ones: ours are the last. */
function inherited(pid: number, ...marks: string[]): boolean {
  try {
    const environment = readFileSync(`/proc/${pid}/environ`, "latin1").split("\0");
    return marks.every((mark) => environment.includes(mark));
  } catch {
    return false;
  }
}

async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, () => new Promise<import("node:net").Server>((resolve) => {
      const server = createServer();
      server.listen(0, "127.0.0.1", () => resolve(server));
    })),
  );
  const ports = servers.map((server) => (server.address() as import("node:net").AddressInfo).port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}
