// One run at a time over two windows: what waits is shown in both, outlives a reload, pauses when the run is stopped, and goes on once.
import assert from "node:assert/strict";
import { appendFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { say } from "../../../.config/scripts/progress.mjs";
import { command, dialog, fresh, inlineAction, openFile, openSeesaw, reloadWindow, stageRow, withWorkbench } from "../workbench.mjs";
import { pictureTaker, quiet } from "./pictures.mjs";
import { endRuns } from "./runs.mjs";

export async function queueStory(vsix, python, spaces, theme = null) {
  const dir = fresh(theme === null ? "queue" : `queue-${theme}`);
  const folder = spaces.tinyWorkspace(join(dir, "ws a+b %41 #1"), python, { steps: 4000 });
  // It starts from the base, so that it can go on after the other one was stopped.
  appendFileSync(join(folder, "seesaw.yaml"), "  - { id: style, recipe: sft, from: base, data: data/math.train.jsonl, probe_every: 4, eval_every: 4, args: { max_steps: 4, learning_rate: 1.0e-4, per_device_train_batch_size: 8, logging_steps: 1 } }\n");
  const runs = (stage) => readdirSync(join(folder, ".seesaw", "runs")).filter((name) => name.startsWith(`${stage}-`));
  const picture = pictureTaker(theme);
  const live = /math\s*step [1-9]\d* of/;
  const queued = /style\s*queued · position 1/;
  const story = withWorkbench({ dir, vsix, folder, settings: quiet(theme) }, async ({ page, another }) => {
    const other = await another();
    for (const window of [page, other]) {
      await openSeesaw(window);
      await stageRow(window, "style").waitFor({ timeout: 60_000 });
    }
    await openFile(page, "seesaw.yaml");
    await inlineAction(page, "math", "Run Stage");
    await (await dialog(page)).press("Start");
    for (const window of [page, other]) await stageRow(window, live).waitFor({ timeout: 120_000 });
    await inlineAction(page, "style", "Run Stage");
    const question = await dialog(page);
    assert.match(question.text, /Queue stage style\?[^]*Runs now: math, .*the queue pauses/);
    await picture(page, "queue-dialog");
    await question.press("Queue");
    for (const window of [page, other]) await stageRow(window, queued).waitFor({ timeout: 20_000 });
    await page.locator(".codelens-decoration", { hasText: "queued · position 1" }).first().waitFor({ timeout: 20_000 });
    await page.waitForTimeout(500);
    await picture(page, "queued");
    if (theme !== null) return;
    say("queue: what waits behind a run is shown in both windows");

    await reloadWindow(page);
    await openSeesaw(page);
    await stageRow(page, queued).waitFor({ timeout: 60_000 });
    await page.locator(".tab", { hasText: "seesaw.yaml" }).waitFor({ timeout: 20_000 });
    await page.locator(".codelens-decoration", { hasText: "queued · position 1" }).first().waitFor({ timeout: 20_000 });
    await page.locator(".statusbar-item", { hasText: /math .*1 queued/ }).first().waitFor({ timeout: 30_000 });
    say("queue: it outlives Developer: Reload Window, with its tab");

    await inlineAction(other, "style", "Cancel Queued Stage");
    for (const window of [page, other]) await stageRow(window, /style\s*not run yet/).waitFor({ timeout: 20_000 });
    await inlineAction(other, "style", "Run Stage");
    await (await dialog(other)).press("Queue");
    await stageRow(page, queued).waitFor({ timeout: 20_000 });
    await inlineAction(page, live, "Stop Run");
    await (await dialog(page)).press("Stop Run");
    for (const window of [page, other]) await stageRow(window, /style.*paused/).waitFor({ timeout: 60_000 });
    await page.locator(".notification-list-item", { hasText: /The queue is paused: style waits/ }).first().waitFor({ timeout: 10_000 });
    for (const window of [page, other]) await window.locator(".statusbar-item", { hasText: /Seesaw: 1 queued/ }).first().waitFor({ timeout: 20_000 });
    assert.equal(runs("style").length, 0);
    await command(other, "Seesaw: Continue Queue");
    for (const window of [page, other]) await stageRow(window, /style.*done/).waitFor({ timeout: 120_000 });
    assert.equal(runs("style").length, 1, "two windows took the same turn");
    say("queue: taken out in one window, paused by a stop, and gone on with once");
  });
  await story.finally(() => endRuns(join(folder, ".seesaw", "runs")));
}
