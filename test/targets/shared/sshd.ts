import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { randomUUID } from "node:crypto";
import { run, spawnDetached } from "../../../src/targets/spawn.ts";
import { descendants, endProcess, identify, leave, sleep } from "./leftovers.ts";
import type { FarHost } from "./net.ts";

/** Why no sshd can be started here; null where it can. */
export async function noSshd(): Promise<string | null> {
  if (!existsSync("/usr/sbin/sshd")) return "/usr/sbin/sshd is not there (Debian: openssh-server)";
  const asked = await run(["ssh", "-V"], { timeout: 10_000 }).catch(() => null);
  return asked?.code === 0 ? null : "`ssh` is not there (Debian: openssh-client)";
}

export interface ServerOptions {
  /** Inside this namespace; default: on 127.0.0.1. */
  host?: FarHost;
  /** What it lets in: our key (default), nobody's key, or whoever types a password. */
  accepts?: "key" | "nothing" | "password";
  /** Its processes see another boot id, so that `reboot` can change it. */
  ownBoot?: boolean;
  /** What every process there has in its environment besides. */
  env?: Record<string, string>;
}

/** A person's own ssh settings, and hosts behind them. `PATH` gets an `ssh` that reads these settings and nobody else's. */
export class SshLab {
  readonly dir: string;
  /** Every call of ssh, one JSON list of words a line. */
  readonly calls: string;
  private readonly bin: string;
  private readonly servers: SshServer[] = [];
  private readonly pathBefore = process.env["PATH"];
  private readonly remove: () => Promise<void>;

  private constructor() {
    this.dir = mkdtempSync(join(tmpdir(), "sw-ssh-"));
    this.remove = leave({ kind: "folder", path: this.dir });
    this.calls = join(this.dir, "calls");
    this.bin = join(this.dir, "bin");
  }

  static async open(): Promise<SshLab> {
    const lab = new SshLab();
    await lab.key("id");
    mkdirSync(lab.bin);
    // The words are written down one by one, NUL between them, so that none can hide in another.
    writeFileSync(join(lab.bin, "ssh"), `#!/bin/sh\n{ printf '%s\\0' "$@"; printf '\\n'; } >> ${lab.calls}\nexec /usr/bin/ssh -F ${lab.config} "$@"\n`);
    chmodSync(join(lab.bin, "ssh"), 0o755);
    process.env["PATH"] = `${lab.bin}${delimiter}${lab.pathBefore ?? ""}`;
    lab.write();
    return lab;
  }

  get config(): string {
    return join(this.dir, "config");
  }

  get knownHosts(): string {
    return join(this.dir, "known_hosts");
  }

  /** A new key pair in the lab's folder. */
  async key(name: string, passphrase = ""): Promise<string> {
    const path = join(this.dir, name);
    const { code, stderr } = await run(["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-C", `test-${name}`, "-f", path], { timeout: 20_000 });
    if (code !== 0) throw new Error(stderr);
    return path;
  }

  /** Starts a server and gives it a name in the person's settings. */
  async server(alias: string, options: ServerOptions = {}): Promise<SshServer> {
    const server = await SshServer.make(this, alias, options);
    this.servers.push(server);
    this.write();
    await server.start();
    return server;
  }

  /** Puts lines in front of the person's settings, for a host that has no server. After the last server. */
  extra(lines: string): void {
    writeFileSync(this.config, lines + readFileSync(this.config, "utf8"));
  }

  /** The person has never seen the host at this port. */
  forget(port: number): void {
    writeFileSync(this.knownHosts, readFileSync(this.knownHosts, "utf8").split("\n").filter((line) => !line.includes(`]:${port} `)).join("\n"));
  }

  private write(): void {
    const common = ["User root", `IdentityFile ${this.dir}/id`, "IdentitiesOnly yes", `UserKnownHostsFile ${this.knownHosts}`, "GlobalKnownHostsFile /dev/null"];
    const blocks = this.servers.map(({ alias, address, port }) => `Host ${alias}\n  HostName ${address}\n  Port ${port}\n`);
    writeFileSync(this.config, `${blocks.join("")}Host *\n${common.map((line) => `  ${line}\n`).join("")}`);
    writeFileSync(this.knownHosts, this.servers.map((server) => server.knownLine()).join(""));
  }

  /** All words with which ssh was called so far. */
  words(): string[] {
    return existsSync(this.calls) ? readFileSync(this.calls, "utf8").split("\0") : [];
  }

  async close(): Promise<void> {
    for (const server of this.servers) await server.stop();
    process.env["PATH"] = this.pathBefore;
    await this.remove();
  }
}

/** One sshd with keys and settings of its own. */
export class SshServer {
  readonly alias: string;
  readonly address: string;
  readonly port: number;
  private readonly lab: SshLab;
  private readonly options: ServerOptions;
  private readonly dir: string;
  private readonly knownKey: string;
  private hostKey: string;
  private running: { who: { pid: number; start: number | null; boot: string }; release: () => Promise<void> } | null = null;

  private constructor(lab: SshLab, alias: string, options: ServerOptions, dir: string, hostKey: string, port: number) {
    this.lab = lab;
    this.alias = alias;
    this.options = options;
    this.dir = dir;
    this.knownKey = hostKey;
    this.hostKey = hostKey;
    this.port = port;
    this.address = options.host?.address ?? "127.0.0.1";
  }

  static async make(lab: SshLab, alias: string, options: ServerOptions): Promise<SshServer> {
    const dir = join(lab.dir, `server-${alias}`);
    mkdirSync(dir);
    const hostKey = await lab.key(`server-${alias}/hostkey`);
    return new SshServer(lab, alias, options, dir, hostKey, options.host === undefined ? await freePort() : 2222);
  }

  knownLine(): string {
    return `[${this.address}]:${this.port} ${readFileSync(`${this.knownKey}.pub`, "utf8").split(" ").slice(0, 2).join(" ")}\n`;
  }

  async start(): Promise<void> {
    if (process.getuid?.() === 0) mkdirSync("/run/sshd", { recursive: true });
    const { accepts = "key", host, ownBoot, env = {} } = this.options;
    const keys = join(this.dir, "authorized_keys");
    writeFileSync(keys, accepts === "key" ? readFileSync(join(this.lab.dir, "id.pub")) : "");
    chmodSync(keys, 0o644);
    const config = join(this.dir, "sshd.conf");
    writeFileSync(
      config,
      [
        `ListenAddress ${this.address}`, `Port ${this.port}`, `HostKey ${this.hostKey}`, "PidFile none", `AuthorizedKeysFile ${keys}`, "StrictModes no", `PasswordAuthentication ${accepts === "password" ? "yes" : "no"}`,
        `PubkeyAuthentication ${accepts === "password" ? "no" : "yes"}`, "KbdInteractiveAuthentication no", `PermitRootLogin ${accepts === "password" ? "yes" : "prohibit-password"}`, "UsePAM no", "Subsystem sftp internal-sftp",
        "ClientAliveInterval 5", "ClientAliveCountMax 6", "MaxStartups 50:30:100", "MaxSessions 20",
        // A home of its own: the start-up files of whoever runs the tests take time, print things and are none of our business.
        `SetEnv ${Object.entries({ HOME: this.dir, ...env }).map(([name, value]) => `${name}=${value}`).join(" ")}`, "",
      ].join("\n"),
    );
    let argv = ["/usr/sbin/sshd", "-D", "-f", config, "-E", join(this.dir, "log")];
    if (ownBoot === true) {
      // A mount namespace of its own, in which the kernel's boot id is a file of ours.
      writeFileSync(join(this.dir, "boot"), `${randomUUID()}\n`);
      argv = ["unshare", "--mount", "--propagation", "slave", "sh", "-c", 'mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"', join(this.dir, "boot"), ...argv];
    }
    const pid = await spawnDetached(host === undefined ? argv : host.inside(argv), { log: join(this.dir, "out") });
    const who = identify(pid);
    if (who === null) throw new Error(`sshd for ${this.alias} ended at once: ${this.log()}`);
    this.running = { who, release: leave({ kind: "process", ...who, what: `sshd ${this.alias}` }) };
    const deadline = Date.now() + 20_000;
    while (!this.log().includes("Server listening on")) {
      if (identify(pid) === null || Date.now() > deadline) throw new Error(`sshd for ${this.alias} does not listen: ${this.log()}`);
      await sleep(20);
    }
  }

  /** Ends it and every session, as a machine that is switched off. What the agents started goes on: they belong to no session. */
  async stop(): Promise<void> {
    const { running } = this;
    this.running = null;
    if (running === null) return;
    await endProcess(running.who, 500);
    await running.release();
    writeFileSync(join(this.dir, "log"), "");
  }

  /** Comes up again as another boot of the same machine; the caller has ended the processes of the one before. */
  async reboot(): Promise<void> {
    await this.stop();
    await this.start();
  }

  /** The processes that serve its connections now. Stopped, they are a network that holds everything back. */
  sessions(): { pid: number; start: number | null; boot: string }[] {
    const isSession = (pid: number): boolean => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, "utf8").startsWith("sshd: ");
      } catch {
        return false;
      }
    };
    return this.running === null ? [] : descendants(this.running.who.pid).filter(({ pid }) => isSession(pid));
  }

  /** From now on it has another host key than the one that is known. */
  async changeHostKey(): Promise<void> {
    await this.stop();
    this.hostKey = await this.lab.key(`server-${this.alias}/hostkey-${Date.now()}`);
    await this.start();
  }

  log(): string {
    const read = (name: string): string => (existsSync(join(this.dir, name)) ? readFileSync(join(this.dir, name), "utf8") : "");
    return read("out") + read("log");
  }
}

/** A port of 127.0.0.1 that nobody uses now. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}
