import { closeSync, mkdirSync, openSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "../../../src/targets/spawn.ts";
import { leave } from "./leftovers.ts";

/** Why no namespace can be made here; null where it can. */
export async function noNamespaces(): Promise<string | null> {
  if (process.platform !== "linux") return "network namespaces are a thing of Linux";
  if (process.getuid?.() !== 0) return "network namespaces need root";
  const asked = await run(["ip", "netns", "list"], { timeout: 10_000 }).catch(() => null);
  if (asked?.code !== 0) return "`ip` (Debian: iproute2) is not there";
  const name = `sw-try-${process.pid}`;
  const made = await run(["ip", "netns", "add", name], { timeout: 10_000 });
  if (made.code !== 0) return `a network namespace cannot be made: ${made.stderr.trim()}`;
  await run(["ip", "netns", "del", name], { timeout: 10_000 });
  return null;
}

/**
 * Another host, as far as the network goes: a namespace with an address of its own at the far end of a cable. Files and
 * processes are this machine's. The route that holds everything back when there is no cable is laid first, and a cut is made
 * at the far side, so that never a packet for 10.99.x.y leaves this machine.
 */
export class FarHost {
  readonly namespace: string;
  /** Its address, 10.99.x.2; ours on the cable is 10.99.x.1. */
  readonly address: string;
  private readonly far: string;
  private readonly release: () => Promise<void>;
  private last = 2;

  private constructor(namespace: string, address: string, far: string, release: () => Promise<void>) {
    this.namespace = namespace;
    this.address = address;
    this.far = far;
    this.release = release;
  }

  static async open(): Promise<FarHost> {
    await holdBack();
    const { net, free } = takeNet();
    const namespace = `sw${net}`;
    const [near, far] = [`sw${net}a`, `sw${net}b`];
    // What a crash of an earlier owner of this number has left; the far end of its cable goes with it.
    await ip(["netns", "del", namespace], true);
    const remove = leave({ kind: "namespace", name: namespace });
    await ip(["netns", "add", namespace]);
    await ip(["link", "add", near, "type", "veth", "peer", "name", far]);
    await ip(["link", "set", far, "netns", namespace]);
    await ip(["addr", "add", `10.99.${net}.1/24`, "dev", near]);
    await ip(["link", "set", near, "up"]);
    await ip(["-n", namespace, "addr", "add", `10.99.${net}.2/24`, "dev", far]);
    await ip(["-n", namespace, "link", "set", far, "up"]);
    await ip(["-n", namespace, "link", "set", "lo", "up"]);
    await holdBack(); // somebody may have taken it back just before the cable was there
    return new FarHost(namespace, `10.99.${net}.2`, far, async () => {
      await remove();
      await free();
    });
  }

  /** The words that start a program there. */
  inside(argv: readonly string[]): string[] {
    return ["ip", "netns", "exec", this.namespace, ...argv];
  }

  /** A further address there, 10.99.x.3 and so on. */
  async another(): Promise<string> {
    const address = this.address.replace(/2$/, String((this.last += 1)));
    await ip(["-n", this.namespace, "addr", "add", `${address}/24`, "dev", this.far]);
    return address;
  }

  /** Pulls the cable out of the other host. */
  async cut(): Promise<void> {
    await ip(["-n", this.namespace, "link", "set", this.far, "down"]);
  }

  /** Puts it in again. */
  async mend(): Promise<void> {
    await ip(["-n", this.namespace, "link", "set", this.far, "up"]);
  }

  async close(): Promise<void> {
    await this.release();
  }
}

async function ip(words: string[], mayFail = false): Promise<void> {
  const { code, stderr } = await run(["ip", ...words], { timeout: 20_000 });
  if (code !== 0 && !mayFail) throw new Error(`ip ${words.join(" ")}: ${stderr.trim()}`);
}

/** Whatever has no cable is unreachable; it is never sent to the default gateway. Stays until `npm run test:targets` takes it back. */
async function holdBack(): Promise<void> {
  await ip(["route", "add", "unreachable", "10.99.0.0/16", "metric", "4000"], true);
  const { stdout } = await run(["ip", "route", "show", "10.99.0.0/16"], { timeout: 10_000 });
  if (!stdout.includes("unreachable")) throw new Error("The route that keeps packets for 10.99.0.0/16 on this machine could not be laid, so no cable is laid either.");
}

/** Not while anybody has a cable, of whatever checkout. */
export async function dropHoldBack(): Promise<void> {
  const { stdout } = await run(["ip", "-o", "addr", "show"], { timeout: 10_000 });
  if (stdout.includes("inet 10.99.")) return;
  await ip(["route", "del", "unreachable", "10.99.0.0/16", "metric", "4000"], true);
  // Somebody may have laid a cable in this moment.
  if ((await run(["ip", "-o", "addr", "show"], { timeout: 10_000 })).stdout.includes("inet 10.99.")) await holdBack();
}

/** A number of its own for each host, also of test files (and checkouts) that run at the same time: namespaces are the machine's. */
function takeNet(): { net: number; free: () => Promise<void> } {
  const folder = join(tmpdir(), "seesaw-test-nets");
  mkdirSync(folder, { recursive: true });
  for (let net = 1; net < 250; net++) {
    const file = join(folder, String(net));
    try {
      closeSync(openSync(file, "wx"));
    } catch {
      continue;
    }
    return { net, free: leave({ kind: "folder", path: file }) };
  }
  throw new Error(`All numbers of networks are taken: remove ${folder}.`);
}
