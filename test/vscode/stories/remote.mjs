// A run on another machine as a person lives with it: the window reloads, nobody answers for a while, it is stopped and resumed,
// its checkpoint is fetched. And what a queued run looks like.
import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { say } from "../../../.config/scripts/progress.mjs";
import { base, command, dialog, fresh, inlineAction, openSeesaw, reloadWindow, stageRow, until, withWorkbench } from "../workbench.mjs";

export async function remoteStory(vsix, python, spaces) {
  await queued(vsix, spaces);
  const dir = fresh("remote");
  const folder = spaces.remoteWorkspace(join(dir, "ws"), python);
  const cut = join(spaces.standInFolder(folder), "cut");
  const there = join(spaces.standInFolder(folder), "there", "runs");
  await withWorkbench({ dir, vsix, folder, env: spaces.standInEnv(folder) }, async ({ page }) => {
    await openSeesaw(page);
    await stageRow(page, /math.*not run yet/).waitFor({ timeout: 60_000 });
    await inlineAction(page, /^math/, "Run Stage");
    await page.locator(".quick-input-list .monaco-list-row", { hasText: "near" }).first().click({ timeout: 30_000 });
    const question = await dialog(page);
    assert.match(question.text, /Runs on near: here-box/);
    await question.press("Start");
    const [first] = await until("a step of the run", () => stepOf(page), 180_000);
    say(`remote: started on the other machine, at step ${first}`);

    await reloadWindow(page);
    await openSeesaw(page);
    await until("the run goes on in the window that was reloaded", async () => ((await stepOf(page))?.[0] ?? 0) > first, 90_000);
    assert.equal(readdirSync(there).length, 1, "it was started twice");
    say("remote: the window reloads, and the run is there and goes on");

    writeFileSync(cut, "");
    spaces.endStandIns(folder);
    await stageRow(page, /math.*near unreachable since \d\d:\d\d · last seen at step \d+ of/).waitFor({ timeout: 90_000 });
    await page.screenshot({ path: join(base, "unreachable.png") });
    rmSync(cut);
    await stageRow(page, /math.*step \d+ of \d+ · /).filter({ hasNotText: "unreachable" }).waitFor({ timeout: 90_000 });
    say("remote: unreachable while nobody answered, and back when somebody did");

    await until("a checkpoint", () => readdirSync(join(there, readdirSync(there)[0], "checkpoints")).some((name) => /^step-/.test(name)), 120_000);
    await inlineAction(page, /^math/, "Stop Run");
    await (await dialog(page)).press("Stop Run");
    await stageRow(page, /math.*stopped/).waitFor({ timeout: 90_000 });
    const [run] = readdirSync(there);
    await until("everything is here", () => readFileSync(join(folder, ".seesaw", "runs", run, "journal.jsonl"), "utf8") === readFileSync(join(there, run, "journal.jsonl"), "utf8"), 20_000);
    say("remote: stopped there, and the journal here is the same");

    await stageRow(page, /^math/).click();
    await page.keyboard.press("ArrowRight");
    await inlineAction(page, /^\d{4}-\d\d-\d\d .*stopped/, "Resume");
    await until("the second attempt trains", () => /"attempt": ?2, ?"type": ?"metric"/.test(readFileSync(join(folder, ".seesaw", "runs", run, "journal.jsonl"), "utf8")), 120_000);
    await stageRow(page, /math.*step \d+ of/).waitFor({ timeout: 30_000 });
    await inlineAction(page, /^math/, "Stop Run");
    await (await dialog(page)).press("Stop Run");
    await stageRow(page, /math.*stopped/).waitFor({ timeout: 90_000 });
    assert.equal(readdirSync(there).length, 1, "resumed as another run");
    say("remote: resumed, and stopped again");

    await command(page, "Seesaw: Fetch Checkpoint");
    const newest = page.locator(".quick-input-list .monaco-list-row", { hasText: /^step/ }).first();
    await newest.click({ timeout: 20_000 });
    const told = page.locator(".notifications-toasts .notification-list-item", { hasText: /Step \d+ of math is in / });
    await told.waitFor({ timeout: 60_000 });
    const at = /is in (\S+?)\.?\s*(Reveal|$)/m.exec(await told.innerText())?.[1];
    assert.ok(at !== undefined && existsSync(join(at, "model.safetensors")), `no weights in ${at}`);
    await page.screenshot({ path: join(base, "fetched.png") });
    say("remote: the checkpoint is fetched");
  });
}

async function stepOf(page) {
  const text = await stageRow(page, /^math/).innerText().catch(() => "");
  const found = /step (\d+) of (\d+)/.exec(text);
  return found === null || Number(found[1]) === 0 ? null : [Number(found[1]), Number(found[2])];
}

/** Where nothing is asked, as in Restricted Mode, it is shown as it was left. */
async function queued(vsix, spaces) {
  const dir = fresh("remote-queued");
  const folder = spaces.queuedWorkspace(join(dir, "ws"));
  await withWorkbench({ dir, vsix, folder, trust: "none", env: spaces.standInEnv(folder) }, async ({ page }) => {
    await openSeesaw(page);
    await stageRow(page, /tool.*queued on far: others come first \(Priority\)/).waitFor({ timeout: 60_000 });
    await page.screenshot({ path: join(base, "queued.png") });
  });
  say("remote: a queued run says what it waits for");
}
