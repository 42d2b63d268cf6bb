// Makes `.cache/ray-venv`, the Ray of the tests of the target `ray`, from the pinned list in test/targets/ray. Idempotent.
import { createHash } from "node:crypto";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { failWith, runStep, SetupError } from "./progress.mjs";
import { root } from "./setup.mjs";

const folder = join(root, ".cache", "ray-venv");
const list = join(root, "test", "targets", "ray", "requirements.txt");
const stamp = join(folder, "seesaw-stamp");

/** The `ray` of the tests. Throws a SetupError with a sentence where it cannot be had. */
export async function rayVenv() {
  const ray = join(folder, "bin", "ray");
  const wanted = createHash("sha256").update(readFileSync(list)).digest("hex");
  if (inStep(wanted, ray)) return ray;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(join(root, ".cache"), { recursive: true });
  const python = process.env.SEESAW_BASE_PYTHON ?? "python3";
  await runStep("Creating .cache/ray-venv", [python, "-m", "venv", folder], { cwd: root, problem: () => `\`${python} -m venv\` failed: install python3-venv, or name another Python in SEESAW_BASE_PYTHON.` });
  await runStep("Installing Ray for its tests", [join(folder, "bin", "python"), "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--progress-bar", "off", "-r", list], {
    cwd: root,
    pick: (line) => /^(Collecting|Downloading|Installing collected)\b/.exec(line.trim()) && line.trim().split(/\s+/).slice(0, 2).join(" ").slice(0, 60),
    problem: () => "Ray could not be installed from Python's package index; its last lines are above. Without it the tests of the target `ray` cannot run.",
    finished: "Ray installed",
  });
  writeFileSync(stamp, wanted);
  if (!inStep(wanted, ray)) throw new SetupError(`${ray} does not start: remove .cache/ray-venv and run this again.`);
  return ray;
}

function inStep(wanted, ray) {
  try {
    return readFileSync(stamp, "utf8") === wanted && execFileSync(ray, ["--version"], { encoding: "utf8", timeout: 120_000, stdio: ["ignore", "pipe", "ignore"] }).startsWith("ray,");
  } catch {
    return false;
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) rayVenv().then(console.log, failWith);
