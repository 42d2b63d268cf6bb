import assert from "node:assert/strict";
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, statfsSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { isQuota } from "../../../src/targets/local.ts";
import { run } from "../../../src/targets/spawn.ts";
import { leave } from "./leftovers.ts";

/** Why no disk with a quota can be made here; null where it can. Of the kernels at hand only Btrfs has quotas built in. */
export function noQuota(): string | null {
  if (process.getuid?.() !== 0) return "a disk with a quota needs root to be mounted";
  const places = [...(process.env["PATH"] ?? "").split(delimiter), "/usr/sbin", "/sbin"];
  const lacks = ["mkfs.btrfs", "btrfs"].find((program) => !places.some((dir) => existsSync(join(dir, program))));
  return lacks === undefined ? null : `${lacks} is not there (Debian: btrfs-progs)`;
}

/** A disk with much room of which a quota allows little: a real one, of the kernel's. */
export class QuotaDisk {
  readonly dir: string;
  private readonly undo: (() => Promise<void>)[];

  private constructor(dir: string, undo: (() => Promise<void>)[]) {
    this.dir = dir;
    this.undo = undo;
  }

  static async make(megabytes: number): Promise<QuotaDisk> {
    const top = mkdtempSync(join(tmpdir(), "sw-quota-"));
    const undo = [leave({ kind: "folder", path: top })];
    const [image, dir] = [join(top, "image"), join(top, "disk")];
    mkdirSync(dir);
    writeFileSync(image, "");
    truncateSync(image, 600 << 20);
    const ok = async (...argv: string[]): Promise<void> => {
      const { code, stderr } = await run(argv, { timeout: 60_000 });
      assert.equal(code, 0, `${argv.join(" ")}: ${stderr}`);
    };
    await ok("mkfs.btrfs", "-q", image);
    undo.unshift(leave({ kind: "mount", path: dir }));
    await ok("mount", "-o", "loop", image, dir);
    await ok("btrfs", "quota", "enable", dir);
    await ok("btrfs", "qgroup", "limit", `${megabytes}M`, dir);
    return new QuotaDisk(dir, undo);
  }

  /** Takes all that the quota still allows. The disk itself keeps room for far more. */
  useUp(): void {
    for (const size of [64 << 10, 4096]) {
      try {
        for (;;) appendFileSync(join(this.dir, "filler"), Buffer.alloc(size, 1));
      } catch (error) {
        if (!isQuota(error as NodeJS.ErrnoException)) throw error;
      }
    }
    const { bavail, bsize } = statfsSync(this.dir);
    assert.ok(bavail * bsize > 100 << 20, "the disk itself is full");
  }

  async makeRoom(): Promise<void> {
    rmSync(join(this.dir, "filler"));
    await run(["btrfs", "filesystem", "sync", this.dir], { timeout: 60_000 });
  }

  async close(): Promise<void> {
    for (const undo of this.undo) await undo();
  }
}
