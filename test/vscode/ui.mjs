// Drives the real workbench as a person would and photographs it: the palette, Run Stage, the Stages tree, Token Drift by
// keyboard alone. Pictures go to media/screenshots (the README shows them); with --check none is written.
// `node test/vscode/ui.mjs [dark] [light] [high-contrast] [--check] [--no-build]`
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { packageExtension } from "../../.config/scripts/package.mjs";
import { done, failWith, say } from "../../.config/scripts/progress.mjs";
import { node24, root, setup } from "../../.config/scripts/setup.mjs";
import { installCodeServer } from "../../.config/scripts/vscode-install.mjs";
import { installVsix, startBrowser, startServer } from "../../.config/scripts/vscode-server.mjs";

const themes = {
  dark: "Default Dark Modern",
  light: "Default Light Modern",
  "high-contrast": "Default High Contrast",
};
const base = join(root, ".cache", "vscode-ui");

async function main() {
  const { python } = await setup({ python: "run", browser: true });
  await installCodeServer();
  const [{ vsix }] = await packageExtension({ platforms: [`${process.platform}-${process.arch}`], out: join(base, "vsix"), build: !process.argv.includes("--no-build") });
  const wanted = process.argv.slice(2).filter((argument) => argument in themes);
  await literally(vsix);
  for (const theme of wanted.length === 0 ? Object.keys(themes) : wanted) await story(theme, vsix, python);
  done(process.argv.includes("--check") ? "the story went through" : `pictures in ${join("media", "screenshots")}`);
}

/** Case V03: text of rows is text, whatever it looks like, and the page's policy lets nothing else run. */
async function literally(vsix) {
  const spaces = await import("./workspaces.mjs");
  const dir = join(base, "literal");
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(dir, { recursive: true });
  await installVsix(dir, vsix);
  const folder = spaces.hostileWorkspace(join(dir, "ws a+b %41 #1"));
  const server = await startServer({ dir });
  const { browser, page } = await startBrowser();
  page.on("dialog", (dialog) => assert.fail(`a dialog was opened: ${dialog.message()}`));
  try {
    await page.goto(`${server.origin}/?folder=${encodeURIComponent(folder)}`);
    await page.locator('.activitybar .action-item a[aria-label="Seesaw"], .activitybar .action-item[aria-label="Seesaw"]').first().click({ timeout: 60_000 });
    const frame = await driftFrame(page);
    const row = frame.locator("seesaw-prompt-list .row", { hasText: "onerror" }).first();
    await row.click({ timeout: 30_000 });
    await frame.locator("seesaw-drift-app .prompt h3", { hasText: "onerror" }).waitFor();
    assert.equal(await row.locator(".text").innerText(), spaces.hostileText);
    assert.equal(await frame.locator("seesaw-drift-app .prompt h3").innerText(), spaces.hostileText);
    assert.equal(await frame.locator("seesaw-drift-app img, seesaw-drift-app iframe, seesaw-drift-app script").count(), 0, "a row became HTML");
    assert.notEqual(await frame.locator("html").evaluate((element) => element.ownerDocument.title), "pwned");
    const policy = await frame.locator('meta[http-equiv="Content-Security-Policy"]').getAttribute("content");
    assert.match(policy, /^default-src 'none'; script-src 'nonce-/);
    say("rows are shown literally, and nothing but our script runs");
  } catch (error) {
    await page.screenshot({ path: join(base, "failed-literal.png") });
    throw error;
  } finally {
    await browser.close();
    await server.stop();
  }
}

/** The whole story under one theme. */
async function story(theme, vsix, python) {
  const spaces = await import("./workspaces.mjs");
  const dir = join(base, theme);
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(dir, { recursive: true });
  await installVsix(dir, vsix);
  const folder = await spaces.trainedWorkspace(join(dir, "sample"), python, join(base, "trained"));
  const settings = { "workbench.colorTheme": themes[theme], "window.titleBarStyle": "custom", "window.commandCenter": false, "workbench.layoutControl.enabled": false, "breadcrumbs.enabled": false };
  const server = await startServer({ dir, settings });
  const { browser, page } = await startBrowser({ width: 1280, height: 940 });
  const outside = [];
  page.on("request", (request) => {
    const url = new URL(request.url());
    if (!["data:", "blob:"].includes(url.protocol) && url.host !== server.host && !url.host.endsWith(".vscode-cdn.net")) outside.push(request.url());
  });
  const violations = [];
  page.on("console", (message) => {
    if (/Content Security Policy|Refused to/.test(message.text()) && !/vsda|report-only/i.test(message.text())) violations.push(message.text());
  });
  // The README needs each surface once, and Token Drift under every theme.
  const picture = async (name) => {
    if (process.argv.includes("--check") || (theme !== "dark" && name !== "drift")) return;
    mkdirSync(join(root, "media", "screenshots"), { recursive: true });
    await page.screenshot({ path: join(root, "media", "screenshots", `${name}-${theme}.png`) });
  };
  const step = (text) => say(`${theme}: ${text}`);
  try {
    await page.goto(`${server.origin}/?folder=${encodeURIComponent(folder)}`);
    await page.locator(".explorer-folders-view .monaco-list-row", { hasText: "seesaw.yaml" }).first().dblclick({ timeout: 60_000 });
    await page.locator('.activitybar .action-item a[aria-label="Seesaw"], .activitybar .action-item[aria-label="Seesaw"]').first().click();
    await widen(page, 440);
    const row = (text) => page.locator(".pane-body .monaco-list-row", { hasText: text });
    await row("search").first().waitFor({ timeout: 30_000 });
    step("stages are shown");

    const frame = await driftFrame(page);
    await frame.locator("seesaw-prompt-list .row").first().waitFor({ timeout: 30_000 });
    await driveByKeyboard(page, frame);
    await page.locator(".notifications-toasts .notification-toast").first().waitFor({ state: "detached", timeout: 2000 }).catch(() => {});
    await picture("drift");
    step("token drift by keyboard");

    await page.keyboard.press("F1");
    await page.locator(".quick-input-widget input").first().waitFor();
    await page.keyboard.type("Seesaw: Run Stage");
    await page.locator(".quick-input-list .monaco-list-row", { hasText: "Seesaw: Run Stage" }).first().waitFor();
    await page.keyboard.press("Enter");
    await page.locator(".quick-input-list .monaco-list-row", { hasText: "format" }).first().waitFor({ timeout: 15_000 });
    await picture("run-stage-pick");
    await page.keyboard.type("format");
    await page.keyboard.press("Enter");
    const dialog = page.locator(".monaco-dialog-box");
    await dialog.waitFor({ timeout: 60_000 });
    const text = await dialog.innerText();
    for (const expected of ["Run stage format?", "Starts from M3", "seesaw_runner.recipes.sft", ".seesaw/runs/format-"]) assert.ok(text.includes(expected), `${expected} is missing in: ${text}`);
    await picture("run-stage-confirm");
    await dialog.locator(".monaco-button", { hasText: "Start" }).click();
    step("Run Stage is confirmed");
    await runs(page, folder, picture);
    step("the stage ran");
    assert.deepEqual(outside, [], "requests left the machine");
    assert.deepEqual(violations, [], "the page's policy was violated");
  } catch (error) {
    await page.screenshot({ path: join(base, `failed-${theme}.png`) });
    throw error;
  } finally {
    await browser.close();
    await server.stop();
  }
}

/** Waits until the started stage is live in the tree, photographs it, and waits for its end. */
async function runs(page, folder, picture) {
  const runsDir = join(folder, ".seesaw", "runs");
  const live = page.locator(".pane-body .monaco-list-row", { hasText: /format.*(step \d+ of|loading|starting|scoring)/ }).first();
  await live.waitFor({ timeout: 120_000 });
  await page.locator(".pane-body .monaco-list-row", { hasText: /format.*step [1-9]\d* of/ }).first().waitFor({ timeout: 120_000 }).catch(() => {});
  await picture("stage-running");
  const run = readdirSync(runsDir).filter((name) => name.startsWith("format-")).sort().at(-1);
  for (const deadline = Date.now() + 300_000; Date.now() < deadline; await page.waitForTimeout(500)) {
    const journal = join(runsDir, run, "journal.jsonl");
    const last = existsSync(journal) ? readFileSync(journal, "utf8").trim().split("\n").at(-1) : "";
    if (!last.includes('"run.finished"')) continue;
    assert.match(last, /"kind": ?"done"/);
    await page.locator(".pane-body .monaco-list-row", { hasText: /format.*done/ }).first().waitFor({ timeout: 30_000 });
    await page.waitForTimeout(500);
    return picture("stage-done");
  }
  assert.fail("the stage did not end");
}

/** Tab into the list, arrows to another prompt, Enter into the tokens, arrows and `n` there. */
async function driveByKeyboard(page, frame) {
  const list = frame.locator("seesaw-prompt-list .list");
  await list.focus();
  const selected = () => frame.locator('seesaw-prompt-list .row[aria-selected="true"] .text').innerText();
  const first = await selected();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  await frame.locator("seesaw-drift-app[data-ready]").waitFor();
  await page.waitForTimeout(400);
  assert.notEqual(await selected(), first, "the arrow keys do not choose another prompt");
  assert.equal(await frame.locator("seesaw-drift-app .prompt h3").innerText(), await selected());
  await page.keyboard.press("Enter");
  const current = () => frame.locator("seesaw-token-film .token.current").getAttribute("aria-label");
  const before = await current();
  assert.match(before, /M\d \w+: .*log probability/);
  await page.keyboard.press("Home");
  await page.keyboard.press("n");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowDown");
  await page.waitForTimeout(200);
  assert.notEqual(await current(), before, "the arrow keys do not move in the film");
  await page.keyboard.press("Escape");
  await page.keyboard.press("ArrowUp");
  await page.waitForTimeout(600);
  assert.notEqual(await selected(), first, "Escape does not lead back to the list");
  await page.keyboard.press("Enter");
}

/** The page inside the two frames of a webview. */
async function driftFrame(page) {
  const outer = page.frameLocator("iframe.webview.ready");
  const inner = outer.frameLocator("iframe#active-frame");
  await inner.locator("seesaw-drift-app").waitFor({ timeout: 30_000 });
  return inner;
}

/** Drags the side bar's border. */
async function widen(page, width) {
  const box = await page.locator(".part.sidebar").boundingBox();
  await page.mouse.move(box.x + box.width, box.y + 300);
  await page.mouse.down();
  await page.mouse.move(box.x + width, box.y + 300, { steps: 5 });
  await page.mouse.up();
  await page.mouse.move(box.x + width + 300, box.y + 300);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  if (Number(process.versions.node.split(".")[0]) < 24) {
    await setup({ python: false });
    process.exitCode = spawnSync(node24, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], { stdio: "inherit" }).status ?? 1;
  } else {
    main().catch(failWith);
  }
}
