// A flag held against further prompts, with a way out, and what a webhook is told of a run: names and numbers, once each, and a
// sentence where nobody answers.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { say } from "../../../.config/scripts/progress.mjs";
import { base, command, dialog, fresh, goTo, openFile, openSeesaw, quickFix, stageRow, until, withWorkbench } from "../workbench.mjs";

const secret = "T0K3N-of-a-channel";

export async function confirmStory(vsix, python, spaces) {
  const dir = fresh("confirm");
  const folder = await spaces.trainedWorkspace(join(dir, "sample"), python, join(base, "trained"));
  const told = [];
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (part) => (body += part));
    request.on("end", () => {
      told.push({ url: request.url, body });
      // The first is heard; after that nobody is there any more.
      if (told.length === 1) response.writeHead(204).end();
      else request.socket.destroy();
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await withWorkbench({ dir, vsix, folder, installed: () => machineSettings(dir, { "seesaw.flags.webhook": "flags" }) }, async ({ page }) => {
      await confirmed(page, folder);
      await webhook(page, `http://127.0.0.1:${server.address().port}/hooks/${secret}`, told);
      for (const file of readdirSync(join(dir, "data", "logs"), { recursive: true }).map(String).filter((name) => /Seesaw.*\.log$/i.test(name))) assert.ok(!readFileSync(join(dir, "data", "logs", file), "utf8").includes(secret), `${file} has the secret`);
    });
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

/** Where code-server keeps what is this machine's alone. */
function machineSettings(dir, settings) {
  mkdirSync(join(dir, "data", "Machine"), { recursive: true });
  writeFileSync(join(dir, "data", "Machine", "settings.json"), JSON.stringify(settings));
}

const toast = (page, text) => page.locator(".notifications-toasts .notification-list-item", { hasText: text });

async function confirmed(page, folder) {
  await openSeesaw(page);
  await stageRow(page, /search.*⚑ math/).waitFor({ timeout: 60_000 });
  await openFile(page, "seesaw.yaml");
  await goTo(page, join(folder, "seesaw.yaml"), "- id: search");
  await page.locator(".view-overlays .squiggly-warning").first().waitFor({ timeout: 30_000, state: "attached" });
  const runs = join(folder, ".seesaw", "runs");
  const kept = () => readdirSync(runs).filter((run) => run.startsWith("search-")).flatMap((run) => (existsSync(join(runs, run, "checked")) ? readdirSync(join(runs, run, "checked")) : []));
  const start = () => quickFix(page, "Confirm the loss of math on more prompts…");
  const choose = () => page.locator(".quick-input-list .monaco-list-row", { hasText: "The probes of math" }).click({ timeout: 20_000 });
  const progress = toast(page, "Checking math on up to 200 prompts");

  await start();
  await choose();
  await progress.waitFor({ timeout: 20_000 });
  await progress.locator(".monaco-button", { hasText: "Cancel" }).click();
  await progress.waitFor({ state: "detached", timeout: 20_000 });
  await until("Python ended", () => !running(folder), 10_000);
  assert.deepEqual(kept(), [], "a check that was cancelled left something");
  assert.equal(await toast(page, /Error|failed/).count(), 0, "cancelling is not an error");
  say("confirm: cancelled, and Python with it");

  await start();
  await choose();
  await progress.waitFor({ timeout: 20_000 });
  await start();
  await toast(page, "math is being checked already.").waitFor({ timeout: 20_000 });
  const verdict = toast(page, /The loss of math is (not )?confirmed: .* at the start of search/);
  await verdict.waitFor({ timeout: 120_000 });
  assert.match(await verdict.innerText(), /is confirmed: .*lost, .*gained of 64 prompts/);
  assert.deepEqual(kept(), ["math.json"]);
  await stageRow(page, /search.*⚑ math/).click();
  await page.keyboard.press("ArrowRight");
  await stageRow(page, /math \(in-domain\): loss confirmed.*confirmed on 64 prompts/).waitFor({ timeout: 20_000 });
  await page.screenshot({ path: join(base, "confirm.png") });
  await command(page, "Notifications: Clear All Notifications");
  say("confirm: the verdict, and the flag that knows it");
}

async function webhook(page, address, told) {
  await command(page, "Seesaw: Set Webhook Address");
  const input = page.locator(".quick-input-widget input[type=password]");
  await input.fill("http://example.org/x");
  await page.locator(".quick-input-message", { hasText: "Only https is used" }).waitFor({ timeout: 10_000 });
  await input.fill(address);
  await page.waitForTimeout(500);
  await page.keyboard.press("Enter");
  await toast(page, 'The address of the webhook "flags" is kept.').waitFor({ timeout: 20_000 });

  await command(page, "Seesaw: Run Stage");
  await page.locator(".quick-input-list .monaco-list-row", { hasText: "tool" }).first().click({ timeout: 20_000 });
  const question = await dialog(page);
  await question.press("Start");
  const complaint = toast(page, 'The webhook "flags" was not told of a flag. It could not be reached:');
  await complaint.waitFor({ timeout: 240_000 });
  await page.screenshot({ path: join(base, "webhook.png") });
  assert.ok(!(await complaint.innerText()).includes(secret));
  assert.equal(told.length, 2);
  const body = JSON.parse(told[0].body);
  assert.deepEqual(Object.keys(body).sort(), ["accuracy", "points", "run", "skill", "split", "stage", "state", "step", "v"]);
  assert.deepEqual([body.stage, body.skill, body.state], ["tool", "search", "confirmed"]);
  assert.ok(told.every(({ url, body: text }) => url.endsWith(secret) && !text.includes(secret) && !text.includes("/")), "the address or a path is in what was sent");
  await command(page, "Seesaw: Stop Run");
  await (await dialog(page)).press("Stop Run");
  await page.locator(".codelens-decoration", { hasText: /stopped · at step/ }).waitFor({ timeout: 60_000 });
  assert.ok((await complaint.count()) <= 1, "one message is enough");
  assert.equal(await page.locator(".monaco-dialog-box").count(), 0);
  say("webhook: told once of a flag, and one sentence when nobody answered");
}

/** A check of a run of `folder` lives. */
function running(folder) {
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name)).some((pid) => {
    try {
      const words = readFileSync(`/proc/${pid}/cmdline`, "utf8");
      return words.includes("seesaw_runner.confirm") && words.includes(folder);
    } catch {
      return false;
    }
  });
}
