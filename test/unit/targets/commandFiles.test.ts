import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { commandFiles } from "../../../src/targets/commandFiles.ts";
import { FakeWorkspace } from "./fakeWorkspace.ts";

const dir = mkdtempSync(join(tmpdir(), "seesaw-command-"));
after(() => rmSync(dir, { recursive: true, force: true }));
mkdirSync(join(dir, "sub"));
for (const name of ["train.py", "conf.yaml", "sub/run.sh"]) writeFileSync(join(dir, name), "x");

test("the files that a command names, in a list or a shell line, relative to where it runs", () => {
  const files = (options: Record<string, unknown>) => commandFiles({ recipe: "command", options }, dir).map((path) => path.slice(dir.length + 1));
  assert.deepEqual(files({ run: ["python", "train.py", "--config=conf.yaml", "{start}", "train.py", "sub", "none.py"] }), ["conf.yaml", "train.py"]);
  assert.deepEqual(files({ run: "X=1 python 'train.py' --config=conf.yaml > log && bash sub/run.sh" }), ["conf.yaml", "sub/run.sh", "train.py"]);
  assert.deepEqual(files({ run: ["sh", "run.sh"], cwd: join(dir, "sub") }), ["sub/run.sh"]);
  assert.deepEqual(files({}), []);
  assert.deepEqual(commandFiles({ recipe: "sft", options: { run: ["train.py"] } }, dir), []);
});

test("a changed script makes its stage run again", async () => {
  const workspace = new FakeWorkspace();
  after(() => workspace.dispose());
  const { pipeline } = await workspace.pipeline();
  const script = join(workspace.root, "train.py");
  const [first] = pipeline.stages;
  assert.ok(first);
  Object.assign(first, { recipe: "command", data: null, options: { run: ["python", "train.py"] } });
  writeFileSync(script, "print(1)");
  const before = (await workspace.services.launcher.outlook(pipeline, "a")).plan;
  writeFileSync(script, "print(2)");
  const changed = (await workspace.services.launcher.outlook(pipeline, "a")).plan;
  assert.ok(before.inputs.some(({ path }) => path === script));
  assert.notEqual(before.fingerprint, changed.fingerprint);
});
