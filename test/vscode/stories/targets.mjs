// Other machines: nothing is asked before the view is opened; a failed reach is told with its way out; a run whose machine is silent;
// and the dry run out of the question of Run Stage.
import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { say } from "../../../.config/scripts/progress.mjs";
import { command, dialog, fresh, inlineAction, openSeesaw, stageRow, until, withWorkbench } from "../workbench.mjs";
import { pictureTaker, quiet, widen } from "./pictures.mjs";

export async function targetsStory(vsix, python, spaces, theme = null) {
  const dir = fresh(theme === null ? "targets" : `targets-${theme}`);
  const folder = spaces.targetsWorkspace(join(dir, "ws"), python);
  const picture = pictureTaker(theme);
  const calls = () => (existsSync(join(spaces.standInFolder(folder), "calls")) ? readFileSync(join(spaces.standInFolder(folder), "calls"), "utf8") : "");
  await withWorkbench({ dir, vsix, folder, settings: quiet(theme), env: spaces.standInEnv(folder) }, async ({ page }) => {
    await openSeesaw(page);
    if (theme !== null) await widen(page, 480);
    await stageRow(page, /tool.*far unreachable since \d\d:\d\d/).waitFor({ timeout: 60_000 });
    await page.waitForTimeout(2000);
    assert.doesNotMatch(calls(), /here-box/, "a target was asked before anybody wanted to know");
    // The other views make room: only rows that are in sight are there.
    for (const view of ["Skills", "Targets", "Token Drift"]) await page.locator(".part.sidebar .pane-header h3", { hasText: view }).first().click();
    const row = (text) => stageRow(page, text);
    await row(/far.*closed-box · cannot be reached/).waitFor({ timeout: 90_000 });
    await row(/closed-box refused the connection/).waitFor({ timeout: 20_000 });
    await row(/near.*here-box · .*Python 3\./).waitFor({ timeout: 90_000 });
    await row(/local.*this machine · .*Python 3\./).waitFor({ timeout: 90_000 });
    assert.match(calls(), /here-box/);
    await row(/near.*here-box/).click();
    await page.keyboard.press("ArrowRight");
    await row(/Disk.*free of/).waitFor({ timeout: 20_000 });
    await page.mouse.move(900, 500); // or a tooltip hides what is to be seen
    await page.waitForTimeout(1500);
    await picture(page, "targets");
    say("targets: a failed reach says why, the other one what it has");

    await inlineAction(page, /^math/, "Run Stage");
    await page.locator(".quick-input-list .monaco-list-row", { hasText: "near" }).first().click({ timeout: 30_000 });
    const question = await dialog(page);
    assert.match(question.text, /Runs on near: here-box\.[^]*Checkpoints stay there; journal, traces and log come back/);
    await question.press("Show What Would Be Done");
    await page.locator(".tab", { hasText: "math.dry-run.txt" }).waitFor({ timeout: 60_000 });
    await page.locator(".view-line", { hasText: "Nothing was started and nothing was copied." }).first().waitFor({ timeout: 20_000 });
    await page.waitForTimeout(500);
    await picture(page, "targets-dry-run");
    if (theme !== null) return;
    say("targets: the dry run out of the question, and nothing started");

    await command(page, "Seesaw: Open Terminal to Log In");
    await page.locator(".quick-input-list .monaco-list-row", { hasText: "closed-box" }).first().click({ timeout: 20_000 });
    await page.locator(".terminal-wrapper, .terminal").first().waitFor({ timeout: 30_000 });
    say("targets: a terminal to log in opens with ssh in it");

    await rayToken(page, folder, dir);
  });
}

/** A cluster that wants a token: the failed check leads to the question, and what was typed there is sent to it and is in no file. */
async function rayToken(page, folder, dir) {
  const token = "t0k3n-of-a-cluster";
  const sent = [];
  const cluster = createServer((request, response) => {
    sent.push(request.headers.authorization ?? "");
    response.writeHead(sent.at(-1) === `Bearer ${token}` ? 404 : 401).end();
  });
  await new Promise((resolve) => cluster.listen(0, "127.0.0.1", resolve));
  try {
    const file = join(folder, "seesaw.yaml");
    writeFileSync(file, `${readFileSync(file, "utf8").trimEnd()}\n  ray: { kind: ray, address: "http://127.0.0.1:${cluster.address().port}", dir: /tmp/seesaw-ray }\n`);
    const row = (text) => stageRow(page, text);
    await row(/^ray.*not checked yet/).waitFor({ timeout: 30_000 });
    await inlineAction(page, /^ray/, "Check Targets");
    const problem = row(/token/i);
    await problem.waitFor({ timeout: 60_000 });
    assert.ok(sent.length > 0 && sent.every((one) => one === ""), JSON.stringify(sent));
    await problem.click();
    const input = page.locator(".quick-input-widget input[type=password]");
    await input.fill(`  ${token} `);
    await page.keyboard.press("Enter");
    await until("the token at the cluster", () => sent.includes(`Bearer ${token}`), 30_000);
    await row(/^ray.*cannot be reached/).waitFor({ timeout: 30_000 });
    const files = [folder, join(dir, "data", "logs"), join(dir, "data", "User", "workspaceStorage")].flatMap((at) => (existsSync(at) ? readdirSync(at, { recursive: true, withFileTypes: true }) : [])).filter((entry) => entry.isFile());
    for (const entry of files) assert.ok(!readFileSync(join(entry.parentPath, entry.name)).includes(token), `${entry.name} has the token`);
  } finally {
    cluster.close();
    cluster.closeAllConnections();
  }
  say("targets: the token is asked for, sent to its cluster, and in no file");
}
