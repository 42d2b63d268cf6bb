import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import type { Lab } from "../shared/lab.ts";

/** Puts a program of this test before Slurm's own on the PATH until the lab is closed. */
export function instead(lab: Lab, name: string, script: string): void {
  const folder = join(lab.dir, "instead");
  const path = process.env["PATH"] ?? "";
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`);
  chmodSync(join(folder, name), 0o755);
  if (!path.startsWith(folder)) process.env["PATH"] = `${folder}${delimiter}${path}`;
  lab.later(() => Promise.resolve(void (process.env["PATH"] = (process.env["PATH"] ?? "").replace(`${folder}${delimiter}`, ""))));
}
