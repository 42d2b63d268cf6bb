import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { findPython, pythonPlaces, requirePython } from "../../../src/targets/python.ts";
import { explainPythonFailure, parseProbe } from "../../../src/targets/pythonProbe.ts";
import { AppError } from "../../../src/util/errors.ts";

const probeFile = join(import.meta.dirname, "../../../runner/probe.py");
const box = mkdtempSync(join(tmpdir(), "seesaw-python-"));
after(() => rmSync(box, { recursive: true }));

/** A stand-in Python: a shell script that answers the probe the way a real environment would. */
function fakePython(path: string, packages: Record<string, string | null>, { version = "3.11.7", noise = "" } = {}): string {
  mkdirSync(dirname(path), { recursive: true });
  const answer = JSON.stringify({ seesaw_probe: 1, version, executable: path, prefix: dirname(path), packages });
  writeFileSync(path, `#!/bin/sh\n${noise}\ncat <<'END'\n${answer}\nEND\n`);
  chmodSync(path, 0o755);
  return path;
}

const all = { torch: "2.13.0", transformers: "5.17.0", trl: "1.13.0" };
let count = 0;
const folder = (): string => {
  const path = join(box, `w${++count}`);
  mkdirSync(join(path, ".git"), { recursive: true });
  return path;
};
const nothing = { PATH: "" };

test("the real probe answers for the Python of this machine", async () => {
  const choice = await findPython({ root: folder(), probeFile });
  assert.match(choice.version ?? "", /^3\.\d+\.\d+$/);
  assert.ok(choice.dependsOn.includes("PATH"));
});

test("the order: named, target, host, .venv upwards, PATH", () => {
  const top = folder();
  const root = join(top, "a", "b");
  const near = fakePython(join(root, ".venv/bin/python"), all);
  const far = fakePython(join(top, ".venv/bin/python"), all);
  const onPath = fakePython(join(box, "bin/python3"), all);
  const places = pythonPlaces({
    root,
    probeFile,
    explicit: { command: "own/python", setting: "--python" },
    target: { id: "gpu", python: "~/x/python" },
    fromHost: [{ command: "/ext/python", how: "the interpreter chosen in ms-python.python", dependsOn: "extension:ms-python.python" }],
    env: { PATH: join(box, "bin") },
  });
  assert.deepEqual(places.map(({ command }) => command.replace(process.env["HOME"] ?? "~", "~")), [join(root, "own/python"), "~/x/python", "/ext/python", near, far, onPath]);
  assert.deepEqual(places.map(({ named }) => named), [true, true, false, false, false, false]);
});

test("the first complete one wins, and the answer says which rule chose it", async () => {
  const root = folder();
  fakePython(join(root, ".venv/bin/python"), { ...all, trl: null });
  const complete = fakePython(join(box, `bin${count}/python3`), all, { noise: "echo 'Welcome to cluster X'; echo '(base) hello from bashrc'" });
  const choice = await findPython({ root, probeFile, env: { PATH: `${dirname(complete)}:/usr/bin:/bin` } });
  assert.deepEqual([choice.command, choice.how, choice.problems], [complete, "python3 on PATH", []]);
  assert.deepEqual(choice.dependsOn, [`path:${join(root, ".venv")}`, "PATH"]);
  assert.equal(requirePython(choice).command, complete);
});

test("a Python the person named is never silently replaced", async () => {
  const root = folder();
  fakePython(join(root, ".venv/bin/python"), all);
  const named = fakePython(join(root, "mine/python"), { ...all, torch: null, trl: null });
  const choice = await findPython({ root, probeFile, explicit: { command: "mine/python", setting: "--python" }, env: { PATH: "/usr/bin:/bin" } });
  assert.equal(choice.command, named);
  assert.deepEqual(choice.problems, [`torch and trl are missing in ${named} (--python): run \`${named} -m pip install torch trl\`, or choose another Python with --python or the setting seesaw.python.path.`]);
  assert.throws(() => requirePython(choice), (error) => AppError.is(error, "python-packages"));
});

test("the most nearly complete one is reported when none is complete", async () => {
  const root = folder();
  fakePython(join(root, ".venv/bin/python"), { ...all, trl: null });
  const bare = fakePython(join(box, `bare${count}/python3`), { torch: null, transformers: null, trl: null });
  const choice = await findPython({ root, probeFile, env: { PATH: `${dirname(bare)}:/usr/bin:/bin` } });
  assert.match(choice.problems.join(), /^trl is missing in .*\.venv\/bin\/python/);
});

test("no Python, a Python that is too old, and one that is not there", async () => {
  const none = await findPython({ root: folder(), probeFile, env: nothing });
  assert.deepEqual([none.command, none.version], [null, null]);
  assert.match(none.problems[0] ?? "", /^No Python was found: .*Install Python 3\.10/);
  assert.throws(() => requirePython(none), (error) => AppError.is(error, "no-python"));
  const old = fakePython(join(box, "old/python"), all, { version: "3.9.2" });
  const tooOld = await findPython({ root: folder(), probeFile, explicit: { command: old, setting: "SEESAW_PYTHON" }, env: { PATH: "/usr/bin:/bin" } });
  assert.match(tooOld.problems[0] ?? "", /is Python 3\.9\.2, but 3\.10 or newer is needed/);
  const gone = await findPython({ root: folder(), probeFile, explicit: { command: "/gone/python", setting: "the setting seesaw.python.path" }, env: nothing });
  assert.match(gone.problems[0] ?? "", /^the setting seesaw\.python\.path names \/gone\/python could not be started: it does not exist/);
});

test("one that hangs does not hang us", async () => {
  const path = join(box, "slow/python");
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, "#!/bin/sh\nsleep 60\n");
  chmodSync(path, 0o755);
  const choice = await findPython({ root: folder(), probeFile, explicit: { command: path, setting: "--python" }, timeout: 300, env: { PATH: "/usr/bin:/bin" } });
  assert.match(choice.problems[0] ?? "", /did not answer in time/);
});

test("R14: what a failed start says names the environment, not the training", () => {
  const place = { command: "/opt/env/bin/python", how: "--python" };
  const say = (stderr: string, code = 1): string => explainPythonFailure(place, { code, signal: null, stderr, timedOut: false });
  const conda = /conda is not set up in non-interactive shells here; give the full path of the environment's python/;
  assert.match(say("CommandNotFoundError: Your shell has not been properly configured to use 'conda activate'.\n"), conda);
  assert.match(say("bash: line 1: conda: command not found\n", 127), conda);
  assert.match(say("bash: line 1: python: command not found\n", 127), /no python on PATH for this host/);
  assert.match(say("Traceback (most recent call last):\n  File \"train.py\"\nModuleNotFoundError: No module named 'trl'\n"), /^trl is missing in \/opt\/env\/bin\/python/);
  assert.match(say("Segmentation fault\n", 139), /is no usable Python \(exit code 139: Segmentation fault\)/);
});

test("R14: the answer is found between banner lines", () => {
  const noisy = 'Welcome to cluster X\n(base) hello{\n$ {"seesaw_probe": 1, "version": "3.11.7", "executable": "/opt/env/bin/python", "prefix": "/opt/env", "packages": {"trl": null}} \nbye\n';
  assert.deepEqual(parseProbe(noisy), { version: "3.11.7", executable: "/opt/env/bin/python", prefix: "/opt/env", packages: { trl: null } });
  assert.equal(parseProbe("{}\n[1]\n"), null);
});
