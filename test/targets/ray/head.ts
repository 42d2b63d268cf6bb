import { existsSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { get } from "node:http";
import { run, spawnDetached } from "../../../src/targets/spawn.ts";
import { descendants, endProcess, identify, leave, repo, signalIt, sleep } from "../shared/leftovers.ts";
import { FarHost, noNamespaces } from "../shared/net.ts";

export const ray = join(repo, ".cache", "ray-venv", "bin", "ray");
const dashboardPort = 8299;
/** Where the other nodes of the cluster join. */
export const gcsPort = 6399;
/** On a busy machine everything takes long; Ray's own limits are for idle ones. No workers that nobody waits for. */
export const settings = {
  RAY_enable_worker_prestart: "0",
  RAY_DASHBOARD_SUBPROCESS_MODULE_WAIT_READY_TIMEOUT: "1200",
  RAY_DASHBOARD_STARTUP_TIMEOUT_S: "1200",
  RAY_agent_register_timeout_ms: "900000",
  RAY_worker_register_timeout_seconds: "300",
  RAY_health_check_timeout_ms: "30000",
};

/**
 * Ray's daemons stay children of this one, whatever started them, so that they are found and ended by it. Not `ray start --block`: that
 * ends everything when one part that nobody needs (the client server) was slower than its fixed limit.
 */
export const keeper = [
  "import ctypes,os,subprocess,sys,time",
  "ctypes.CDLL(None).prctl(36,1,0,0,0)",
  "code=subprocess.call(sys.argv[1:])",
  "code and sys.exit(code)",
  "while True:",
  " try: os.wait()",
  " except ChildProcessError: time.sleep(1)",
].join("\n");

/** What is missing here for a Ray head, as a sentence; null: nothing. */
export async function noRay(): Promise<string | null> {
  if (!existsSync(ray)) return `${ray} is not there: node .config/scripts/ray-venv.mjs`;
  return noNamespaces();
}

export interface HeadOptions {
  cpus?: number;
  /** Requests must carry it. */
  token?: string;
  /** Checks that a node may miss, three seconds apart, before it is gone (30). */
  misses?: number;
  /** false: no dashboard, so no Jobs API. */
  dashboard?: boolean;
}

/**
 * A Ray head with dashboard in a network namespace, so that no port can collide and its listeners on 0.0.0.0 are nobody's
 * business. Files and processes are this machine's. Everything it starts ends with it, by recorded identity.
 */
export class RayHead {
  readonly host: FarHost;
  readonly address: string;
  /** A folder of its own, short: the paths of sockets may not be longer than 107 bytes. */
  readonly temp: string;
  private readonly options: HeadOptions;
  private readonly forget: () => Promise<void>;
  private running: { who: { pid: number; start: number | null; boot: string }; release: () => Promise<void> } | null = null;

  private crashed = false;

  private constructor(host: FarHost, options: HeadOptions) {
    this.host = host;
    this.options = options;
    this.address = `http://${host.address}:${dashboardPort}`;
    this.temp = mkdtempSync(join(tmpdir(), "swr-"));
    this.forget = leave({ kind: "folder", path: this.temp });
  }

  static async open(options: HeadOptions = {}): Promise<RayHead> {
    const head = new RayHead(await FarHost.open(), options);
    try {
      await head.start();
    } catch (error) {
      await head.close();
      throw error;
    }
    return head;
  }

  /** Comes up as a new cluster: an earlier one's jobs are gone. Some limits of Ray's parts cannot be set, so a busy machine may need a second try. */
  async start(): Promise<void> {
    if (this.crashed) await this.stop();
    this.crashed = false;
    try {
      await this.startOnce();
    } catch {
      await this.stop();
      await this.startOnce();
    }
  }

  private async startOnce(): Promise<void> {
    const { cpus = 2, misses = 30, token, dashboard = true } = this.options;
    const argv = [
      "python3", "-c", keeper, ray, "start", "--head", "--node-ip-address", this.host.address, "--port", String(gcsPort), "--dashboard-host", this.host.address, "--dashboard-port", String(dashboardPort),
      "--include-dashboard", String(dashboard), "--disable-usage-stats", "--num-cpus", String(cpus), "--num-gpus", "0", "--object-store-memory", "100000000", "--temp-dir", this.temp,
    ];
    const env = { ...process.env, ...settings, RAY_health_check_failure_threshold: String(misses), ...this.secret };
    const pid = await spawnDetached(this.host.inside(argv), { env, log: this.log });
    const who = identify(pid);
    if (who === null) throw new Error(`The Ray head ended at once: ${this.said()}`);
    this.running = { who, release: leave({ kind: "process", ...who, what: "ray head" }) };
    const deadline = Date.now() + 900_000;
    const ready = dashboard ? async (): Promise<boolean> => (await status(`${this.address}/api/version`, token)) === 200 && (await status(`http://${this.host.address}:52365/api/local_raylet_healthz`, token)) === 200 : async (): Promise<boolean> => (await sleep(1_000), this.said().includes("Ray runtime started"));
    while (!(await ready())) {
      if (identify(pid) === null || Date.now() > deadline) throw new Error(`The Ray head does not come up: ${this.said().slice(-1_500)}`);
      await sleep(200);
    }
  }

  /** What lets a process into the cluster. */
  get secret(): Record<string, string> {
    const { token } = this.options;
    return token === undefined ? {} : { RAY_AUTH_MODE: "token", RAY_AUTH_TOKEN: token };
  }

  /** Kills everything that is Ray's own, as a head that ran out of memory. What its jobs have started is left to itself. */
  async crash(): Promise<void> {
    if (this.running === null) return;
    const mine = descendants(this.running.who.pid).filter(({ pid }) => /ray-venv|^ray::|\/raylet|gcs_server/.test(commandOf(pid)) && !commandOf(pid).includes("seesaw_runner"));
    for (const one of mine) signalIt(one, "SIGKILL");
    this.crashed = true;
  }

  async stop(): Promise<void> {
    await this.end(10_000);
  }

  private async end(gentleMs: number): Promise<void> {
    const { running } = this;
    this.running = null;
    if (running === null) return;
    await endProcess(running.who, gentleMs);
    await running.release();
  }

  /** Memory of all its processes, in bytes: what is theirs alone, and their share of what is common. */
  async memory(): Promise<number> {
    const { stdout } = await run(["ip", "netns", "pids", this.host.namespace], { timeout: 20_000 });
    let total = 0;
    for (const pid of stdout.trim().split("\n")) {
      try {
        total += 1024 * Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"))?.[1] ?? 0);
      } catch {
        // it ended while we looked
      }
    }
    return total;
  }

  async close(): Promise<void> {
    await this.stop();
    await this.host.close();
    await this.forget();
  }

  said(): string {
    return existsSync(this.log) ? readFileSync(this.log, "utf8") : "";
  }

  private get log(): string {
    return join(this.temp, "head.log");
  }
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "latin1").replaceAll("\0", " ");
  } catch {
    return "";
  }
}

function status(url: string, token: string | undefined): Promise<number> {
  return new Promise((resolve) => {
    const request = get(url, { timeout: 5_000, agent: false, ...(token !== undefined && { headers: { authorization: `Bearer ${token}` } }) }, (answer) => {
      answer.resume();
      resolve(answer.statusCode ?? 0);
    });
    request.on("timeout", () => request.destroy());
    request.on("error", () => resolve(0));
  });
}
