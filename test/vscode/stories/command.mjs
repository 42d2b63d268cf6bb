// `npm run vscode` as a person uses it: the address, a second start at the same time, Ctrl-C, nothing left, again.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { say } from "../../../.config/scripts/progress.mjs";
import { node24, root } from "../../../.config/scripts/setup.mjs";
import { startBrowser } from "../../../.config/scripts/vscode-server.mjs";
import { fresh, openSeesaw, stageRow, until } from "../workbench.mjs";

/** `npm run vscode`'s script in a process group of its own, as a terminal would start it. */
const started = [];
function start(...args) {
  const child = spawn(node24, [join(root, ".config", "scripts", "vscode.mjs"), ...args], { detached: true, stdio: ["ignore", "pipe", "pipe"] });
  const run = { text: "", code: undefined, interrupt: () => process.kill(-child.pid, "SIGINT") };
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (chunk) => (run.text += chunk));
  run.ended = new Promise((resolve) => child.once("close", (code) => resolve((run.code = code))));
  run.address = () => until("the address", () => /VS Code is at (\S+)/.exec(run.text)?.[1] ?? (run.code === undefined ? null : assert.fail(run.text)), 90_000);
  started.push(run);
  return run;
}

/** The server of a data folder and all its descendants, as `pid start`: so that a pid that is used again is not taken for it. */
function family(dir) {
  const rows = execFileSync("ps", ["-e", "-o", "pid=,ppid=,lstart="], { encoding: "utf8" }).trim().split("\n").map((line) => line.trim().split(/\s+/));
  const file = join(dir, "pid.json");
  if (!existsSync(file)) return [];
  const found = [String(JSON.parse(readFileSync(file, "utf8")).pid)];
  for (const pid of found) found.push(...rows.filter(([, parent]) => parent === pid).map(([child]) => child));
  return rows.filter(([pid]) => found.includes(pid)).map(([pid, , ...start]) => `${pid} ${start.join(" ")}`);
}

function alive(processes) {
  const rows = execFileSync("ps", ["-e", "-o", "pid=,lstart="], { encoding: "utf8" }).trim().split("\n").map((line) => line.trim().split(/\s+/).join(" "));
  return processes.filter((one) => rows.includes(one));
}

const gone = (processes) => until("the end of all processes", () => alive(processes).length === 0, 5_000);

export async function commandStory(folder) {
  try {
    await tell(folder);
  } finally {
    for (const run of started) if (run.code === undefined) run.interrupt();
    await Promise.all(started.map((run) => run.ended));
  }
}

async function tell(folder) {
  const dir = fresh("command");
  const args = ["--dir", dir, "--folder", folder];
  const [one, two] = [start(...args), start(...args)];
  const loser = await Promise.race([one.ended.then(() => one), two.ended.then(() => two)]);
  const winner = loser === one ? two : one;
  assert.match(loser.text, /VS Code (is just being started|already runs at \S+) \(process \d+\): use that one/);
  const address = await winner.address();
  const late = start(...args);
  assert.equal(await late.ended, 5);
  assert.ok(late.text.includes(`already runs at ${new URL(address).origin}`), late.text);
  const { browser, page } = await startBrowser();
  let processes = [];
  try {
    await page.goto(address);
    await openSeesaw(page);
    await stageRow(page, /math.*done/).waitFor({ timeout: 30_000 });
    processes = family(dir);
    assert.ok(processes.length > 2, "the extension host runs");
    winner.interrupt();
    assert.equal(await winner.ended, 0, winner.text);
  } finally {
    await browser.close();
  }
  assert.match(winner.text, /stopped/);
  await gone(processes);

  const early = start(...args);
  processes = await until("the server's process", () => (family(dir).length > 0 ? family(dir) : early.code !== undefined && [early.text]), 60_000);
  early.interrupt();
  assert.equal(await early.ended, 130, early.text);
  assert.match(early.text, /stopped before it was ready/);
  await gone(processes);

  const taken = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => taken.once("listening", resolve));
  const { port } = taken.address();
  const refused = start(...args, "--port", String(port));
  assert.equal(await refused.ended, 5);
  assert.match(refused.text, new RegExp(`Port ${port} is taken: give another one with --port`));
  taken.close();
  const wrong = start("--prot", "1");
  assert.equal(await wrong.ended, 5);
  assert.match(wrong.text, /Unknown option '--prot': `npm run vscode/);
  say("npm run vscode: one of two starts wins, Ctrl-C leaves nothing, early and late");
}
