import { lstatSync, mkdirSync, mkdtempSync, readFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { AppError } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";
import { run } from "../spawn.ts";
import { explainSsh, hidesJump, keyIsLocked } from "./sshErrors.ts";
import { bootstrap, PipeStation, type CallEnd, type Reach } from "./station.ts";

/**
 * The system's own ssh with the person's own configuration: aliases, agent, jump hosts and hardware keys work as in their
 * terminal. Added is only what a program needs that nobody sits at: no questions, no terminal, signs of life, and one shared
 * connection. Nothing is said of host keys, so nothing there is weaker than what they chose.
 */

const windows = process.platform === "win32";

/** Without a person: never asks, and notices within 15 seconds that the other side is gone. */
const quiet = [
  "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3",
  // What an alias sets up for a terminal must not run, nor fail, here.
  "-o", "ClearAllForwardings=yes", "-o", "RemoteCommand=none", "-o", "PermitLocalCommand=no", "-o", "ForwardX11=no", "-o", "LogLevel=INFO",
];

/** How long a shared connection waits for its next use: a login in a terminal then serves for as long. */
const persistSeconds = 600;

/** ssh over one host, with a shared connection where the system can. */
export class SshCommand {
  readonly host: string;
  private readonly program: readonly string[];
  private shared: Promise<string[]> | null = null;
  private identities: string[] = [];

  /** `program`: the command and options that come before all of ours, e.g. `ssh -F config` in tests. */
  constructor(host: string, program: readonly string[] = ["ssh"]) {
    this.host = checkedHost(host);
    this.program = program;
  }

  /** The command whose pipes are those of a station's Python there. The words after the host are all that a shell there reads. */
  async stationArgv(python: string): Promise<string[]> {
    return [...this.program, ...quiet, ...(await this.sharing()), "--", this.host, stationWords(python)];
  }

  /** The command with which a person logs in to the same shared connection, in a terminal that can ask. */
  async loginArgv(): Promise<string[]> {
    return [...this.program, ...(await this.sharing()), "--", this.host];
  }

  station(runnerDir: string, python: string): PipeStation {
    return new PipeStation({
      name: this.host,
      argv: () => this.stationArgv(python),
      runnerDir,
      explain: (end) => this.explain(python, end),
    });
  }

  private async explain(python: string, end: CallEnd): Promise<Reach> {
    this.shared = null; // the person may log in meanwhile, with a connection of their own
    if (end.silent) void this.drop();
    let { stderr } = end;
    if (hidesJump(stderr)) {
      // With a shared connection ssh throws away what its way there prints; without one it is shown.
      const again = await run([...this.program, ...quiet, "-o", "ControlPath=none", "-o", "ControlMaster=no", "--", this.host, "true"], { timeout: 20_000 }).catch(() => null);
      if (again !== null && again.code !== 0) ({ stderr } = again);
    }
    const reach = explainSsh(this.host, python, { ...end, stderr });
    const locked = reach.reason === "refused" ? this.identities.find(needsPassphrase) : undefined;
    return locked === undefined ? reach : keyIsLocked(this.host, locked);
  }

  /** Closes the shared connection, if it is ours: after a laptop's sleep it is dead, which would be noticed later. */
  async drop(): Promise<void> {
    const sharing = await this.sharing();
    if (sharing.length === 0) return;
    await run([...this.program, ...sharing, "-O", "exit", "--", this.host], { timeout: 5_000 }).catch(() => {});
  }

  /** Options of the shared connection: the person's own where their configuration has one, else ours. */
  private sharing(): Promise<string[]> {
    this.shared ??= this.findSharing();
    return this.shared;
  }

  private async findSharing(): Promise<string[]> {
    if (windows) return []; // its ssh cannot share connections
    const told = await run([...this.program, "-G", "--", this.host], { timeout: 10_000 }).catch((error: unknown) => {
      if (AppError.is(error, "spawn-failed")) throw new AppError("spawn-failed", t("There is no `ssh` on this machine: install OpenSSH (Debian and Ubuntu: openssh-client)."), { cause: error });
      throw error;
    });
    const value = (name: string): string => new RegExp(`^${name} (.+)$`, "m").exec(told.stdout)?.[1]?.trim() ?? "none";
    this.identities = [...told.stdout.matchAll(/^identityfile (.+)$/gm)].map(([, file = ""]) => file.trim().replace(/^~(?=\/)/, homedir()));
    const none = new Set(["none", "no", "false"]);
    if (!none.has(value("controlpath"))) {
      // Theirs outlives its first user: then it is shared as they meant it. Otherwise only one that is open now is of use, and
      // must not become ours to end.
      if (!none.has(value("controlmaster")) && !none.has(value("controlpersist"))) return [];
      const open = await run([...this.program, "-O", "check", "--", this.host], { timeout: 10_000 });
      if (open.code === 0) return ["-o", "ControlMaster=no"];
    }
    return ["-o", "ControlMaster=auto", "-o", `ControlPath=${join(socketFolder(), "%C")}`, "-o", `ControlPersist=${persistSeconds}`];
  }
}

/** The command with which a person logs in to a host in a terminal, so that what runs in the background shares the connection. */
export function loginArgv(host: string): Promise<string[]> {
  return new SshCommand(host).loginArgv();
}

/** The words for a remote shell: a checked interpreter and a constant. */
export function stationWords(python: string): string {
  return `${checkedPath(python)} -u -c "${bootstrap}"`;
}

/** seesaw.yaml was checked; what comes from anywhere else is checked here once more, because a shell will read it. */
function checkedPath(path: string): string {
  if (/^[A-Za-z0-9_./~+@:=,-]+$/.test(path) && !path.split("/").includes("..") && !path.startsWith("-")) return path;
  throw new AppError("bad-pipeline", t("`{0}` is no path for a target: letters, digits and . _ / ~ + @ : = , - only, and no `..`.", path));
}

function checkedHost(host: string): string {
  if (/^[A-Za-z0-9_.@:%[\]-]+$/.test(host) && !host.startsWith("-")) return host;
  throw new AppError("bad-pipeline", t("`{0}` is no host for ssh: an alias of your ssh configuration, or user@host.", host));
}

/** Whether a private key is encrypted, by what its file says of itself; the key is not read. */
export function needsPassphrase(file: string): boolean {
  let text: string;
  try {
    text = readFileSync(file, "latin1").slice(0, 4096);
  } catch {
    return false;
  }
  if (/^Proc-Type: 4,ENCRYPTED$|BEGIN ENCRYPTED PRIVATE KEY/m.test(text)) return true;
  const body = /BEGIN OPENSSH PRIVATE KEY-+\s+([A-Za-z0-9+/=\s]+)/.exec(text)?.[1] ?? "";
  const head = Buffer.from(body.slice(0, 100), "base64").toString("latin1");
  return head.startsWith("openssh-key-v1\0") && !head.slice(15, 30).includes("none");
}

let folder: string | null = null;

/**
 * A folder for sockets that nobody else can write to. Its path is short, since a socket's may have no more than about 100
 * bytes and ssh adds 57 of them.
 */
export function socketFolder(): string {
  if (folder !== null) return folder;
  const top = tmpdir().length <= 24 ? tmpdir() : "/tmp";
  const wanted = join(top, `seesaw-${process.getuid?.() ?? 0}`);
  try {
    mkdirSync(wanted, { mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
  const info = lstatSync(wanted);
  const mine = info.isDirectory() && info.uid === process.getuid?.() && (info.mode & 0o077) === 0;
  folder = mine ? wanted : mkdtempSync(join(top, "seesaw-"));
  return folder;
}
