import { join } from "node:path";
import { createInterface } from "node:readline";
import { spawn } from "node:child_process";
import { identify, leave, signalIt, sleep } from "./leftovers.ts";

/** A process of its own that has the workspace open, as an extension host has: killed, it takes nothing with it but itself. */
export class FollowProcess {
  private readonly who: { pid: number; start: number | null; boot: string };
  private readonly gone: Promise<void>;
  private readonly release: () => Promise<void>;

  private constructor(who: { pid: number; start: number | null; boot: string }, gone: Promise<void>) {
    this.who = who;
    this.gone = gone;
    this.release = leave({ kind: "process", ...who, what: "a following window" });
  }

  static async start(root: string, install: string): Promise<FollowProcess> {
    const child = spawn(process.execPath, [join(import.meta.dirname, "followMain.ts"), root, install], { stdio: ["ignore", "pipe", "inherit"] });
    const gone = new Promise<void>((resolve) => child.once("close", () => resolve()));
    await new Promise<void>((resolve, reject) => {
      createInterface(child.stdout).on("line", (line) => line === "follows" && resolve());
      child.once("close", (code, signal) => reject(new Error(`The following window ended with ${code ?? signal} before it followed.`)));
      child.once("error", reject);
    });
    const who = identify(child.pid ?? 0);
    if (who === null) throw new Error("The following window is gone already.");
    return new FollowProcess(who, gone);
  }

  get pid(): number {
    return this.who.pid;
  }

  /** SIGSTOP: the laptop sleeps. SIGCONT: it wakes up. */
  signal(signal: NodeJS.Signals): void {
    signalIt(this.who, signal);
  }

  /** kill -9; resolves when it is gone. */
  async kill(): Promise<void> {
    this.signal("SIGKILL");
    await this.gone;
  }

  /** Ends as a window that is closed. */
  async close(): Promise<void> {
    this.signal("SIGCONT");
    this.signal("SIGTERM");
    await Promise.race([this.gone, sleep(10_000)]);
    await this.release();
  }
}
