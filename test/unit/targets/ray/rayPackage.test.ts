import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { unzipSync } from "fflate";
import type { RemoteInput } from "../../../../src/targets/remote/port.ts";
import { neededRuns } from "../../../../src/targets/remote/ray/rayNodes.ts";
import { inputGroups, inputPackage, packageLimit, packageOf, runnerPackage } from "../../../../src/targets/remote/ray/rayPackage.ts";
import { AppError } from "../../../../src/util/errors.ts";

const dir = mkdtempSync(join(tmpdir(), "ray-package-"));
after(() => rmSync(dir, { recursive: true }));
const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

function file(name: string, bytes: Uint8Array): RemoteInput {
  const local = join(dir, name);
  writeFileSync(local, bytes);
  return { local, kind: "file", sha256: sha256(bytes), bytes: bytes.length, remote: `/there/objects/${name}` };
}

test("the same files give the same package, whenever and in whatever order", () => {
  const [a, b] = [{ name: "a", bytes: Buffer.from("1") }, { name: "b/c", bytes: Buffer.from("2") }];
  const one = packageOf([a, b]);
  assert.deepEqual(packageOf([b, a]).bytes, one.bytes);
  assert.notEqual(packageOf([a]).name, one.name);
  assert.match(one.uri, /^gcs:\/\/_ray_pkg_[0-9a-f]{32}\.zip$/);
  assert.deepEqual(Object.keys(unzipSync(one.bytes)), ["a", "b/c"]);
});

test("the runner's package has its files and no caches, and does not depend on their dates", async () => {
  const runner = join(dir, "runner");
  mkdirSync(join(runner, "seesaw_runner", "__pycache__"), { recursive: true });
  for (const name of ["ray_job.py", "__pycache__/x.pyc", ".hidden"]) writeFileSync(join(runner, "seesaw_runner", name), name);
  writeFileSync(join(runner, "probe.py"), "");
  const one = await runnerPackage(runner);
  assert.deepEqual(Object.keys(unzipSync(one.bytes)), ["probe.py", "seesaw_runner/ray_job.py"]);
  utimesSync(join(runner, "seesaw_runner/ray_job.py"), 1, 1);
  assert.equal((await runnerPackage(runner)).name, one.name);
});

test("small files come together, large ones and models alone", () => {
  const input = (name: string, bytes: number, kind: "file" | "model" = "file"): RemoteInput => ({ local: name, kind, sha256: name, bytes, remote: name });
  const groups = inputGroups([input("a", 1), input("big", 5 << 20), input("b", 2), input("m", 3, "model"), input("c", 3 << 20)]);
  assert.deepEqual(groups.map((group) => group.map(({ local }) => local)), [["a", "b", "c"], ["big"], ["m"]]);
  const many = inputGroups(Array.from({ length: 20 }, (_, at) => input(String(at), 3 << 20)));
  assert.deepEqual(many.map((group) => group.length), [10, 10]);
});

test("a package names what goes where, by hash; equal files are in it once", async () => {
  const [one, two] = [file("one", Buffer.from("same")), file("two", Buffer.from("same"))];
  const { made, carried } = await inputPackage([one, two]);
  assert.deepEqual(Object.keys(unzipSync(made.bytes)), [one.sha256]);
  assert.deepEqual(carried, [one, two].map(({ remote, sha256: hash }) => ({ kind: "file", remote, package: made.name, files: [["", hash, hash]] })));
  const model = join(dir, "model");
  mkdirSync(join(model, "sub"), { recursive: true });
  writeFileSync(join(model, "sub/w"), "w");
  writeFileSync(join(model, "config.json"), "{}");
  const packed = await inputPackage([{ local: model, kind: "model", sha256: "m", bytes: 3, remote: "/there/models/m" }]);
  assert.deepEqual(packed.carried[0]?.files.map(([name]) => name), ["config.json", "sub/w"]);
});

test("a file that was changed meanwhile, and one that no package can hold, are refused with the place", async () => {
  const input = file("changing", Buffer.from("before"));
  writeFileSync(input.local, "after!");
  await assert.rejects(inputPackage([input]), (error: unknown) => AppError.is(error, "bad-input") && error.message.includes(input.local));
  await assert.rejects(inputPackage([{ ...input, bytes: packageLimit + 1 }]), (error: unknown) => AppError.is(error, "bad-input") && error.message.includes(input.remote));
});

test("the runs whose files an attempt needs", () => {
  const remote = { dir: "/s/runs/b-1" } as never;
  const spec = { start: { checkpoint: "/s/runs/a-1/checkpoints/step-000010" }, models: { t: { checkpoint: "/s/runs/a-2/checkpoints/x" } }, base: "/s/models/m0" } as never;
  assert.deepEqual(neededRuns({ remote, spec, attempt: 1 }), ["/s/runs/a-1", "/s/runs/a-2"]);
  assert.deepEqual(neededRuns({ remote, spec: { start: { checkpoint: "/s/models/m0" } } as never, attempt: 2 }), ["/s/runs/b-1"]);
  assert.deepEqual(neededRuns({ remote, spec: {} as never, attempt: 1 }), []);
});
