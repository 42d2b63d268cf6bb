// Run Arena in a real workbench with real trainings: started from the panel, followed, stopped, gone on with, and its table at the end.
import assert from "node:assert/strict";
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { say } from "../../../.config/scripts/progress.mjs";
import { root } from "../../../.config/scripts/setup.mjs";
import { command, dialog, fresh, openSeesaw, stageRow, until, withWorkbench } from "../workbench.mjs";
import { endRuns } from "./runs.mjs";

export async function arenaRunStory(vsix, python) {
  const dir = fresh("arena-run");
  const folder = tinyArena(join(dir, "ws a+b %41 #1"), python);
  const runs = join(folder, ".seesaw", "arena", "seed-0", ".seesaw", "runs");
  const story = withWorkbench({ dir, vsix, folder }, async ({ page }) => {
    await openSeesaw(page);
    await stageRow(page, "search").waitFor({ timeout: 60_000 });
    await command(page, "Seesaw: Open Arena");
    const frame = await arenaFrame(page);
    const status = frame.locator(".status");
    const button = (name) => frame.getByRole("button", { name, exact: true });
    const says = (pattern, ms = 120_000) => until(`the panel says ${pattern}`, async () => pattern.test(await status.innerText().catch(() => "")), ms);
    await says(/^0 of 4 stages done, nothing runs now\. 1 seed at a time, with half of this machine's cores\.$/, 60_000);
    assert.match(await frame.locator("section").innerText(), /No system has finished yet[\s\S]*Remedies: replay-10, joint\./);

    await button("Run Arena").click();
    const question = await dialog(page);
    assert.match(question.text, /Run the arena of tiny\?[\s\S]*3 systems and 1 seed: 4 stages, 0 of them done\.[\s\S]*1 seed at a time[\s\S]*arena --file .*--jobs 1/);
    await question.press("Run Arena");
    await says(/^1 of 4 stages done, running search \(seed 0, step [1-9]\d* of 240\)\.$/);
    assert.ok(await button("Go On with the Arena").isDisabled(), "what runs is not started again");
    say("arena-run: started from the panel, which follows it");

    await button("Stop Arena").click();
    await (await dialog(page)).press("Stop Arena");
    await says(/^1 of 4 stages done, nothing runs now\. 1 seed at a time/, 60_000);
    assert.deepEqual(chains(runs), [], "its process is still there");
    assert.deepEqual(started(runs), ["math", "search"], "it went on with the next stage");
    assert.equal(await frame.locator(".failed").count(), 0, "what was stopped is told as failed");
    say("arena-run: stopped from the panel, process and stage");

    await button("Go On with the Arena").click();
    const again = await dialog(page);
    assert.match(again.text, /4 stages, 1 of them done\./);
    await again.press("Run Arena");
    await says(/^4 of 4 stages done, nothing runs\.$/, 240_000);
    const row = (name) => frame.locator("seesaw-arena-tests tbody tr", { has: frame.getByRole("rowheader", { name, exact: true }) });
    await row("joint training").waitFor({ timeout: 30_000 });
    assert.match(await row("replay 10 %").innerText(), /^replay 10 %\s+1\s+\d+ % \d+–\d+ %\s+[+−]?[\d.]+ \([+−]?[\d.]+ to [+−]?[\d.]+\)\s+(< )?[\d.]+ too few prompts/);
    assert.equal(await frame.locator("seesaw-arena-questions tbody tr").count(), 3);
    assert.deepEqual(started(runs), ["joint", "math", "replay-10-search", "search", "search"], "only what had not finished was run again");
    assert.equal(await button("Stop Arena").count(), 0);
    say("arena-run: gone on with after the stop, to the finished table");
  });
  await story.finally(() => {
    for (const pid of chains(runs)) process.kill(pid, "SIGTERM");
    return endRuns(runs);
  });
}

/** Two stages, two remedies, one seed: real, and over in about a minute. The second stage is long enough to be stopped. */
function tinyArena(dir, python) {
  const sample = join(root, "media", "sample");
  mkdirSync(join(dir, ".vscode"), { recursive: true });
  for (const name of ["models", "data"]) cpSync(join(sample, name), join(dir, name), { recursive: true });
  for (const name of ["math.probe", "math.ood", "search.probe", "search.ood"]) {
    const file = join(dir, "data", `${name}.jsonl`);
    writeFileSync(file, `${readFileSync(file, "utf8").split("\n").slice(0, 16).join("\n")}\n`);
  }
  const stage = (id, steps) => `  - { id: ${id}, recipe: sft, data: data/${id}.train.jsonl, args: { max_steps: ${steps}, learning_rate: 1.0e-3, per_device_train_batch_size: 8, logging_steps: 5 } }\n`;
  writeFileSync(join(dir, "seesaw.yaml"), `seesaw: 1
name: tiny
base: models/m0
skills:
  math: { probes: data/math.probe.jsonl, ood: data/math.ood.jsonl, check: { kind: number-after, marker: so } }
  search: { probes: data/search.probe.jsonl, ood: data/search.ood.jsonl, check: { kind: text, after: answer } }
probe: { every: 240, max_new_tokens: 24 }
stages:
${stage("math", 4)}${stage("search", 240)}arena:
  seeds: [0]
  rows: 40
  remedies: [{ kind: replay }, { kind: joint, args: { max_steps: 4 } }]
`);
  writeFileSync(join(dir, ".vscode", "settings.json"), JSON.stringify({ "seesaw.python.path": python }));
  return dir;
}

/** The Arena's page, as a frame. */
async function arenaFrame(page) {
  return until("the Arena in an editor", async () => {
    for (const frame of page.frames()) if ((await frame.locator("seesaw-arena-app[data-ready]").count().catch(() => 0)) > 0) return frame;
    return null;
  });
}

/** Stages of the run folders, sorted. */
function started(runs) {
  return readdirSync(runs).flatMap((name) => /^(.+)-\d{8}T\d{6}-/.exec(name)?.[1] ?? []).sort();
}

/** Processes that hold a chain there. */
function chains(runs) {
  if (!existsSync(runs)) return [];
  return readdirSync(runs).filter((name) => name.startsWith(".chain-")).map((name) => JSON.parse(readFileSync(join(runs, name), "utf8")).pid);
}
