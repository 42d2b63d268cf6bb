// A run as a person handles it, in two windows: both start the same stage, one is reloaded, the run is stopped, resumed, killed.
import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { say } from "../../../.config/scripts/progress.mjs";
import { command, dialog, fresh, inlineAction, openSeesaw, reloadWindow, stageRow, until, withWorkbench } from "../workbench.mjs";

/** A run outlives its window on purpose; when the story failed, this one must not. */
export function endRuns(dir) {
  for (const run of existsSync(dir) ? readdirSync(dir).filter((name) => !name.startsWith(".")) : []) {
    for (const attempt of readdirSync(join(dir, run)).filter((name) => name.startsWith("attempt-"))) {
      const [started, exit] = ["started.json", "exit.json"].map((name) => join(dir, run, attempt, name));
      if (!existsSync(started) || existsSync(exit)) continue;
      try {
        process.kill(JSON.parse(readFileSync(started, "utf8")).pid, "SIGTERM");
      } catch {
        // it is gone
      }
    }
  }
}

export async function runsStory(vsix, python, spaces) {
  const dir = fresh("runs");
  const folder = spaces.tinyWorkspace(join(dir, "ws a+b %41 #1"), python, { steps: 4000 });
  const runs = () => readdirSync(join(folder, ".seesaw", "runs")).filter((name) => name.startsWith("math-"));
  const live = /math\s*step [1-9]\d* of/;
  const story = withWorkbench({ dir, vsix, folder }, async ({ page, another }) => {
    const other = await another();
    for (const window of [page, other]) {
      await openSeesaw(window);
      await stageRow(window, "math").waitFor({ timeout: 60_000 });
    }
    // Both windows ask, both say yes: exactly one run begins.
    await inlineAction(page, "math", "Run Stage");
    await inlineAction(other, "math", "Run Stage");
    const questions = [await dialog(page), await dialog(other)];
    assert.match(questions[0].text, /Run stage math\?/);
    await Promise.all(questions.map((question) => question.press("Start")));
    const refusal = (window) => window.locator(".notification-list-item", { hasText: /Run math:.*(is already running|is just being started)/ });
    const loser = await until("the refusal", async () => ((await refusal(page).count()) > 0 ? page : (await refusal(other).count()) > 0 ? other : null), 90_000);
    for (const window of [page, other]) await stageRow(window, live).waitFor({ timeout: 120_000 });
    assert.equal(runs().length, 1, "two windows started the same stage twice");
    assert.equal(await refusal(loser === page ? other : page).count(), 0, "both were refused");
    say("runs: of two windows exactly one starts the stage");

    await reloadWindow(page);
    await openSeesaw(page);
    await stageRow(page, live).waitFor({ timeout: 60_000 });
    await page.locator(".statusbar-item", { hasText: /math \d+\/\d+/ }).first().waitFor({ timeout: 30_000 });
    say("runs: a reloaded window shows the run again, in the tree and in the status bar");

    await inlineAction(page, live, "Stop Run");
    const question = await dialog(page);
    assert.match(question.text, /Stop math\?/);
    await question.press("Stop Run");
    await stageRow(page, /math\s*stopped · at step/).waitFor({ timeout: 60_000 });
    await stageRow(other, /math\s*stopped · at step/).waitFor({ timeout: 30_000 });
    say("runs: stopped from the tree");

    const run = /UTC|\d{4}-\d\d-\d\d \d\d:\d\d/;
    await stageRow(page, /math\s*stopped/).click();
    await page.keyboard.press("ArrowRight");
    await inlineAction(page, run, "Resume Run");
    await stageRow(page, live).waitFor({ timeout: 120_000 });
    assert.equal(runs().length, 1);
    const attempt = join(folder, ".seesaw", "runs", runs()[0], "attempt-0002");
    await until("the second attempt", () => existsSync(join(attempt, "started.json")));
    say("runs: resumed from the tree");

    process.kill(JSON.parse(readFileSync(join(attempt, "started.json"), "utf8")).pid, "SIGKILL");
    await stageRow(page, /math\s*killed · at step/).waitFor({ timeout: 30_000 });
    await page.locator(".notification-list-item", { hasText: /Stage math:/ }).first().waitFor({ timeout: 10_000 });
    say("runs: a kill is called a kill");

    await command(page, "Seesaw: Show Run Log");
    await page.locator(".tab", { hasText: /out\.log|agent\.log/ }).waitFor({ timeout: 20_000 });
  });
  await story.finally(() => endRuns(join(folder, ".seesaw", "runs")));
}
