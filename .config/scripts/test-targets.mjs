// `npm run test:targets`: runs on other machines, with a real sshd, Slurm and Ray on this one. Installs what Debian has,
// runs test/targets, prints the fault table, and takes back whatever was put on the machine. `--only ssh,faults`, `--list`.
import { execFileSync, spawn } from "node:child_process";
import { existsSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { SetupError, done, failWith, runStep, say, seconds } from "./progress.mjs";
import { root, setup } from "./setup.mjs";

/**
 * The parts, the Debian packages that each needs and the program that shows they are there. `fewest`: tests that must have
 * passed; raise it when tests are added. `minutes`: after that long it hangs.
 */
const parts = {
  ssh: { packages: { sshd: "openssh-server", ssh: "openssh-client", ip: "iproute2" }, fewest: 19, minutes: 8 },
  faults: { packages: { sshd: "openssh-server", ssh: "openssh-client", ip: "iproute2" }, optional: { "mkfs.btrfs": "btrfs-progs" }, fewest: 24, minutes: 10 },
  slurm: { packages: { slurmctld: "slurmctld", slurmd: "slurmd", sbatch: "slurm-client", munged: "munge" }, extra: ["slurm-wlm-basic-plugins"], optional: { slurmdbd: "slurmdbd", mariadbd: "mariadb-server" }, fewest: 32, minutes: 20 },
  ray: { packages: { ip: "iproute2" }, fewest: 29, minutes: 14 },
};

const places = [...(process.env.PATH ?? "").split(delimiter), "/usr/sbin", "/sbin", "/usr/local/sbin"];
const there = (program) => places.some((dir) => existsSync(join(dir, program)));

/** Installs the packages that lack, where that is possible. Gives the names that lack still. */
async function debian(names) {
  const lacking = (wanted) => Object.entries(wanted).filter(([program]) => !there(program)).map(([, name]) => name);
  const optional = Object.assign({}, ...names.map((name) => parts[name].optional ?? {}));
  const needed = Object.assign({}, ...names.map((name) => parts[name].packages));
  const wanted = [...new Set([...lacking(needed), ...lacking(optional), ...names.flatMap((name) => (lacking(parts[name].packages).length > 0 ? (parts[name].extra ?? []) : []))])];
  if (wanted.length === 0) return;
  if (process.getuid?.() !== 0 || !there("apt-get")) {
    say(`Not installed, since that needs root and apt-get: ${wanted.join(", ")}`);
    return;
  }
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  // Debian starts what it installs: an sshd for everybody, for one. Not here; the tests start their own.
  const policy = "/usr/sbin/policy-rc.d";
  const ours = !existsSync(policy);
  if (ours) writeFileSync(policy, "#!/bin/sh\nexit 101\n", { mode: 0o755 });
  const install = (packages) =>
    runStep(`Installing ${packages.join(", ")}`, ["apt-get", "install", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=500", ...packages], {
      env,
      pick: (line) => /^(Get:|Unpacking|Setting up)/.exec(line) && line.slice(0, 60),
      problem: () => `Debian's packages ${packages.join(", ")} could not be installed; the last lines of apt-get are above.`,
    });
  try {
    await runStep("Reading Debian's package lists", ["apt-get", "update", "-o", "DPkg::Lock::Timeout=500"], { env, problem: () => "apt-get update failed." });
    // One that does not exist in this release must not keep the others away.
    for (const packages of [wanted.filter((name) => !Object.values(optional).includes(name)), ...Object.values(optional).filter((name) => wanted.includes(name)).map((name) => [name])]) {
      if (packages.length > 0) await install(packages).catch((error) => say(String(error.message)));
    }
  } catch (error) {
    say(String(error.message));
  } finally {
    if (ours) rmSync(policy, { force: true });
  }
}

/** What is impossible on this machine, by part: asked of the tests' own code, which knows best. */
function impossible(node, names) {
  const said = execFileSync(node, [join(root, "test/targets/possible.ts"), ...names], { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"], timeout: 300_000 });
  return JSON.parse(said.trim().split("\n").at(-1));
}

function testFiles(part) {
  const folder = join("test", "targets", part);
  if (!existsSync(join(root, folder))) return [];
  return readdirSync(join(root, folder), { recursive: true }).map((file) => join(folder, String(file))).filter((file) => file.endsWith(".test.ts")).sort();
}

/** Files of a part that run at a time: they wait more than they compute, and each has servers, ports and folders of its own. */
const atOnce = 3;

/** Runs one file, or only its tests of these names, until `deadline` (ms since 1970), and gives what the test runner counted. */
function runFile(node, file, env, deadline, names = null) {
  return new Promise((resolve, reject) => {
    const only = names?.map((name) => `--test-name-pattern=^${name.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&")}$`) ?? [];
    const child = spawn(node, ["--test", "--test-reporter=spec", ...only, file], { cwd: root, stdio: ["ignore", "pipe", "inherit"], env });
    const timer = setTimeout(() => {
      console.error(`${file} has not ended in time and is stopped.`);
      child.kill("SIGTERM");
      setTimeout(() => child.kill("SIGKILL"), 10_000).unref();
    }, deadline - Date.now());
    let text = "";
    child.stdout.setEncoding("utf8").on("data", (chunk) => {
      text += chunk;
      process.stdout.write(chunk);
    });
    child.on("error", reject);
    child.on("close", (code) => {
      clearTimeout(timer);
      const count = (word) => [...text.matchAll(new RegExp(`^ℹ ${word} (\\d+)$`, "gm"))].reduce((sum, match) => sum + Number(match[1]), 0);
      const left = [...text.matchAll(/^﹣ (.+?) \([\d.]+ms\) # (.+)$/gm)].map(([, name, why]) => `${name}: ${why}`);
      const fell = [...text.matchAll(/^✖ (.+?) \([\d.]+ms\)$/gm)].map(([, name]) => name).filter((name) => name !== file && name !== join(root, file));
      resolve({ file, ok: code === 0, passed: count("pass"), skipped: count("skipped"), left: [...new Set(left)], fell: [...new Set(fell)] });
    });
  });
}

/**
 * Runs a part's files, and what fell in them once more, alone: servers, schedulers and cuts of links have deadlines of their
 * own, which a busy machine misses. What a second try excuses is printed; events lost and doubled starts it never is (see
 * `report`). A file that fell as a whole is tried as a whole.
 */
async function runPart(node, files, env, minutes) {
  const deadline = Date.now() + minutes * 60_000;
  const waiting = [...files];
  const ended = [];
  await Promise.all(Array.from({ length: atOnce }, async () => {
    for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) ended.push(await runFile(node, file, env, deadline));
  }));
  const sum = (list, name) => list.reduce((total, one) => total + one[name], 0);
  const total = { ok: true, passed: sum(ended, "passed"), skipped: sum(ended, "skipped"), left: ended.flatMap(({ left }) => left), again: [] };
  for (const { file, fell } of ended.filter(({ ok }) => !ok)) {
    say(`Once more, alone: ${file}${fell.length === 0 ? "" : `: ${fell.join(", ")}`}`);
    const second = await runFile(node, file, env, deadline, fell.length === 0 ? null : fell);
    const all = second.ok && (fell.length === 0 || second.passed >= fell.length);
    total.ok &&= all;
    if (!all) continue;
    total.passed += second.passed;
    total.again.push(...(fell.length === 0 ? [file] : fell));
  }
  return total;
}

/** Prints the fault table of a file that `fault()` wrote. Gives the sentences that make it red. */
export function report(table) {
  const rows = existsSync(table) ? readFileSync(table, "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line)) : [];
  if (rows.length === 0) return [];
  for (const [at, row] of rows.entries()) {
    if (row.failed === null || !rows.slice(at + 1).some((later) => later.target === row.target && later.fault === row.fault)) continue;
    // Judged by the second try. A run whose end was not known in time is excused by it; a lost event or a doubled start is not.
    Object.assign(row, { failed: null, runsLost: 0, ended: ["tried again"], notes: [...row.notes, `the first time: ${row.failed}`] });
  }
  const head = ["target", "fault", "ended as", "runs", "lost", "events", "lost", "doubled", "s"];
  const cells = rows.map((row) => [row.target, row.fault, row.failed === null ? row.ended.join(", ") : "FAILED", row.runs, row.runsLost, row.events, row.eventsLost, row.doubled, row.seconds.toFixed(1)].map(String));
  const widths = head.map((text, at) => Math.max(text.length, ...cells.map((row) => row[at].length)));
  const line = (row) => row.map((text, at) => (at < 3 ? text.padEnd(widths[at]) : text.padStart(widths[at]))).join("  ").trimEnd();
  console.log(`\n${line(head)}\n${widths.map((width) => "─".repeat(width)).join("  ")}`);
  for (const [at, row] of cells.entries()) {
    console.log(line(row));
    for (const note of rows[at].notes) console.log(`    · ${note}`);
  }
  const sum = (name) => rows.reduce((total, row) => total + row[name], 0);
  const totals = { "runs lost": sum("runsLost"), "events lost": sum("eventsLost"), "doubled starts": sum("doubled") };
  console.log(`\nfaults tried ${rows.length}, runs ${sum("runs")}, events ${sum("events")}; ${Object.entries(totals).map(([name, n]) => `${name} ${n}`).join(", ")}\n`);
  const failed = rows.filter((row) => row.failed !== null).map((row) => `${row.target}: ${row.fault}: ${row.failed}`);
  return [...Object.entries(totals).filter(([, n]) => n !== 0).map(([name, n]) => `${name}: ${n}`), ...failed];
}

async function main() {
  const args = process.argv.slice(2);
  if (args.includes("--list") || args.includes("--help")) {
    console.log(`npm run test:targets [-- --only ${Object.keys(parts).join(",")}]`);
    for (const part of Object.keys(parts)) console.log(`${part.padEnd(8)} ${testFiles(part).join(" ")}`);
    return;
  }
  const names = args.includes("--only") ? (args[args.indexOf("--only") + 1] ?? "").split(",") : Object.keys(parts);
  for (const name of names) if (!(name in parts)) throw new SetupError(`There is no part "${name}": use ${Object.keys(parts).join(", ")}.`);
  const started = Date.now();
  const { node, python } = await setup({ python: "dev" });
  await debian(names);
  // Its own environment, made once; where it cannot be had, the tests say so and are left out.
  if (names.includes("ray")) {
    const { rayVenv } = await import("./ray-venv.mjs");
    await rayVenv().catch((error) => say(error instanceof Error ? error.message : String(error)));
  }
  const left = impossible(node, names);
  const table = join(root, ".cache", "targets", "faults.jsonl");
  rmSync(table, { force: true });
  // Trained anew by the first part that needs it, and shared by the others.
  rmSync(join(root, ".cache", "targets", "local-chain"), { recursive: true, force: true });
  const env = { ...process.env, SEESAW_FAULT_TABLE: table, SEESAW_PYTHON: python, OMP_WAIT_POLICY: "passive", HF_HUB_OFFLINE: "1" };
  const sweep = () => execFileSync(node, [join(root, "test/targets/sweep.ts")], { stdio: "inherit", timeout: 120_000 });
  const problems = [];
  const loud = [];
  const again = [];
  let passed = 0;
  sweep();
  try {
    for (const name of names) {
      if (left[name] !== null) {
        loud.push(`${name}: ${left[name]}`);
        continue;
      }
      const files = testFiles(name);
      if (files.length === 0) {
        problems.push(`${name}: no test files`);
        continue;
      }
      say(`── ${name}`);
      const since = Date.now();
      const ended = await runPart(node, files, env, parts[name].minutes);
      passed += ended.passed;
      loud.push(...ended.left);
      if (ended.ok) again.push(...ended.again);
      if (!ended.ok) problems.push(`${name}: tests failed; they are printed above`);
      if (ended.passed + ended.skipped < parts[name].fewest) problems.push(`${name}: ${ended.passed + ended.skipped} tests ran, but at least ${parts[name].fewest} are expected`);
      done(`${name}: ${ended.passed} tests, ${seconds(since)}`);
    }
  } finally {
    sweep();
  }
  problems.push(...report(table));
  for (const name of again) console.log(`!! PASSED ONLY ALONE, at the second try: ${name}`);
  for (const text of loud) console.log(`!! LEFT OUT on this machine: ${text}`);
  if (problems.length > 0) throw new SetupError(`test:targets is red:\n  ${problems.join("\n  ")}`);
  console.log(`targets: ${passed} passed, ${loud.length} left out`);
  done(`all green in ${seconds(started)}`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main().catch(failWith);
