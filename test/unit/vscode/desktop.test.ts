import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { run } from "../../../src/targets/spawn.ts";

const script = join(import.meta.dirname, "../../vscode/desktop.mjs");

test("without a desktop VS Code the launcher says so in one sentence and fails", async () => {
  for (const [args, words] of [
    [["--vscode", "/nowhere/code"], /^✗ There is no VS Code at \/nowhere\/code: give the executable with --vscode PATH or SEESAW_VSCODE\.$/],
    [["--vscode"], /^✗ --vscode needs the path of VS Code's executable\.$/],
    [["crash"], /^✗ crash: no such scenario; there are bare, recorded, untrusted, nonative, run\.$/],
  ] as const) {
    const { code, stderr } = await run([process.execPath, script, ...args]);
    assert.equal(code, 5, args.join(" "));
    assert.match(stderr.replace(/\u001b\[\d*m/g, "").trim(), words);
  }
});
