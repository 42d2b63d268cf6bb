// What the stories share: a real workbench with the VSIX installed, and the few things a person does in it.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../.config/scripts/setup.mjs";
import { installVsix, startBrowser, startServer } from "../../.config/scripts/vscode-server.mjs";

export const base = join(root, ".cache", "vscode-ui");

/** An empty folder for a story. */
export function fresh(name) {
  const dir = join(base, name);
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(dir, { recursive: true });
  return dir;
}

/**
 * Opens `folder` (or a `workspace` file, or neither) in a server and a browser of its own and hands both to `tell`. Whatever the story is
 * about, no request may leave the machine and the page's policy may not be violated. A failure leaves a picture.
 * `installed`: called with the extension's folder before VS Code starts.
 * `language`: what VS Code is told to speak; extensions follow, its own words do without a language pack.
 */
export async function withWorkbench({ dir, vsix, folder, workspace, trust, settings, env, language, installed, width = 1280, height = 940 }, tell) {
  await installVsix(dir, vsix);
  installed?.(join(dir, "exts", readdirSync(join(dir, "exts")).find((name) => name.startsWith("seesaw.seesaw-"))));
  const server = await startServer({ dir, settings, ...(env === undefined ? {} : { env }), ...(trust === undefined ? {} : { trust }) });
  const { browser, page } = await startBrowser({ width, height });
  // What the workbench's own script for a language sets; that script is only served where a language pack is installed.
  if (language !== undefined) await page.context().addInitScript((name) => (globalThis._VSCODE_NLS_LANGUAGE = name), language);
  const pages = [];
  const outside = [];
  const violations = [];
  const watch = (opened) => {
    pages.push(opened);
    opened.on("request", (request) => {
      const url = new URL(request.url());
      if (!["data:", "blob:"].includes(url.protocol) && url.host !== server.host && !url.host.endsWith(".vscode-cdn.net")) outside.push(request.url());
    });
    opened.on("console", (message) => {
      if (/Content Security Policy|Refused to/.test(message.text()) && !/vsda|report-only/i.test(message.text())) violations.push(message.text());
    });
    return opened;
  };
  watch(page);
  const address = folder === undefined && workspace === undefined ? "ew=true" : workspace === undefined ? `folder=${encodeURIComponent(folder)}` : `workspace=${encodeURIComponent(workspace)}`;
  const open = (opened) => opened.goto(`${server.origin}/?${address}`);
  try {
    await open(page);
    await tell({ page, server, another: async () => (await open(watch(await page.context().newPage())), pages.at(-1)) });
    assert.deepEqual(outside, [], "requests left the machine");
    assert.deepEqual(violations, [], "the page's policy was violated");
  } catch (error) {
    for (const [index, opened] of pages.entries()) await opened.screenshot({ path: join(base, `failed-${dir.split("/").at(-1)}-${index}.png`) }).catch(() => {});
    throw error;
  } finally {
    await browser.close();
    await server.stop();
  }
}

/** Shows our views: by a click on the icon in the activity bar, unless they are there already, when a click hides them. */
export async function openSeesaw(page) {
  const icon = page.locator('.activitybar .action-item a[aria-label^="Seesaw"], .activitybar .action-item[aria-label^="Seesaw"]').first();
  await icon.waitFor({ timeout: 60_000 });
  const there = (ms) => page.locator(".part.sidebar .pane-header", { hasText: "Token Drift" }).first().waitFor({ timeout: ms }).then(() => true, () => false);
  for (let tries = 0; tries < 5; tries++) {
    if (await there(tries === 0 ? 1000 : 4000)) return;
    await icon.click({ force: true }); // its badge lies over it
  }
  if (!(await there(10_000))) assert.fail("the Seesaw views do not open");
}

/** The page inside the two frames of a webview. */
export async function driftFrame(page) {
  const inner = page.frameLocator("iframe.webview.ready").frameLocator("iframe#active-frame");
  await inner.locator("seesaw-drift-app").waitFor({ timeout: 30_000 });
  return inner;
}

/** The Token Drift page in an editor tab, as a frame: beside the side bar's there are two webviews. */
export async function driftEditor(page) {
  return until("Token Drift in an editor", async () => {
    for (const frame of page.frames()) {
      if ((await frame.locator('seesaw-drift-app[layout="editor"]').count().catch(() => 0)) > 0) return frame;
    }
    return null;
  });
}

/** Rows of the Stages tree. */
export function stageRow(page, text) {
  return page.locator(".pane-body .monaco-list-row", { hasText: text }).first();
}

/** Points at a row of the tree and clicks one of its inline actions. A row that is redrawn meanwhile is pointed at again. */
export async function inlineAction(page, text, name) {
  await until(`${name} of ${text}`, async () => {
    try {
      await stageRow(page, text).hover({ timeout: 5000 });
      await stageRow(page, text).locator(`.actions a[aria-label^="${name}"]`).click({ timeout: 3000 });
      return true;
    } catch (error) {
      if (error.name !== "TimeoutError") throw error;
      return false;
    }
  }, 30_000);
}

/** A person's pointer is never suddenly there. */
async function hoverSlowly(page, row) {
  const box = await row.boundingBox();
  await page.mouse.move(box.x + 200, box.y + box.height / 2 - 60);
  await page.mouse.move(box.x + 160, box.y + box.height / 2, { steps: 8 });
}

/** The hover of a row if it says `text`, pointed at once: the locator, or null. */
export async function pointAt(page, row, text) {
  await hoverSlowly(page, row);
  const hover = page.locator(".monaco-hover:visible, .workbench-hover:visible").last();
  return hover.filter({ hasText: text }).waitFor({ timeout: 3000 }).then(() => hover, () => null);
}

/** The same, once it says so: a tree that is redrawn takes its hover away, so it is pointed at again. */
export function hoverOf(page, row, text) {
  return until(`a hover with ${text}`, () => pointAt(page, row, text), 30_000);
}

/** The palette, ready to be typed into. F1 is pressed again where the workbench was still closing what was open before, and took no notice. */
export async function palette(page) {
  const input = page.locator(".quick-input-widget:visible input:visible").first();
  await until("the command palette", async () => {
    await page.keyboard.press("F1");
    await input.waitFor({ timeout: 3000 }).catch(() => {});
    return (await input.isVisible()) && (await input.inputValue()) === ">";
  }, 30_000);
}

/** A command from the palette. */
export async function command(page, title) {
  await palette(page);
  await page.keyboard.type(title);
  await page.locator(".quick-input-list .monaco-list-row", { hasText: title }).first().waitFor();
  await page.keyboard.press("Enter");
}

/** A file of the workspace, by its name. */
export async function openFile(page, name) {
  await command(page, "Go to File...");
  await page.keyboard.type(name);
  await page.locator(".quick-input-list .monaco-list-row", { hasText: name }).first().waitFor({ timeout: 20_000 });
  await page.keyboard.press("Enter");
  await page.locator(".tab", { hasText: name }).first().waitFor({ timeout: 20_000 });
}

/** The window as its own command reloads it, and not as the browser would. */
export async function reloadWindow(page) {
  const loaded = page.waitForEvent("load", { timeout: 60_000 });
  await command(page, "Developer: Reload Window");
  await loaded;
  await page.locator(".monaco-workbench .activitybar").first().waitFor({ timeout: 60_000 });
}

/** One of the quick fixes where the cursor is. The list is opened again when it closes under the pointer. */
export async function quickFix(page, title) {
  await until(`the quick fix ${title}`, async () => {
    try {
      await page.keyboard.press("Control+.");
      await page.locator(".action-widget .monaco-list-row", { hasText: title }).first().click({ timeout: 5000 });
      return true;
    } catch (error) {
      if (error.name !== "TimeoutError") throw error;
      await page.keyboard.press("Escape");
      return false;
    }
  }, 30_000);
}

/** The cursor in the open file where it says `text` first. */
export async function goTo(page, file, text) {
  const lines = readFileSync(file, "utf8").split("\n");
  const line = lines.findIndex((one) => one.includes(text));
  await command(page, "Go to Line/Column...");
  await page.keyboard.type(`${line + 1}:${lines[line].indexOf(text) + text.length + 1}`);
  await page.keyboard.press("Enter");
}

/** The modal question, and the click on one of its buttons. */
export async function dialog(page) {
  const box = page.locator(".monaco-dialog-box");
  await box.waitFor({ timeout: 60_000 });
  return { text: await box.innerText(), press: (label) => box.locator(".monaco-button", { hasText: label }).first().click() };
}

/** Waits until `look` gives something. */
export async function until(what, look, ms = 60_000) {
  for (const deadline = Date.now() + ms; Date.now() < deadline; await new Promise((wake) => setTimeout(wake, 200))) {
    const seen = await look();
    if (seen) return seen;
  }
  assert.fail(`${what}: not within ${ms / 1000} s`);
}
