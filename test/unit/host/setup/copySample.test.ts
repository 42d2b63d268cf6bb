import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { copySample } from "../../../../src/host/setup/copySample.ts";
import { AppError } from "../../../../src/util/errors.ts";

const repository = join(dirname(fileURLToPath(import.meta.url)), "../../../..");

test("the sample is copied whole, without recorded runs, beside what is there", async () => {
  const dir = mkdtempSync(join(tmpdir(), "seesaw sample "));
  const extension = join(dir, "extension");
  for (const folder of ["media/sample/data", "media/sample/.seesaw/runs", "media/sample/slope/.seesaw"]) mkdirSync(join(extension, folder), { recursive: true });
  for (const file of ["seesaw.yaml", "data/math.train.jsonl", ".seesaw/runs/x", "slope/.seesaw/x", "slope/seesaw.yaml"]) writeFileSync(join(extension, "media/sample", file), file);
  const parent = join(dir, "here");
  mkdirSync(parent);
  const first = await copySample(extension, parent);
  assert.equal(first, join(parent, "seesaw-sample"));
  assert.deepEqual(readdirSync(first, { recursive: true }).map(String).sort(), ["data", join("data", "math.train.jsonl"), "seesaw.yaml", "slope", join("slope", "seesaw.yaml")]);
  writeFileSync(join(first, "seesaw.yaml"), "changed by the person");
  const second = await copySample(extension, parent);
  assert.equal(second, join(parent, "seesaw-sample-2"));
  assert.equal(readFileSync(join(first, "seesaw.yaml"), "utf8"), "changed by the person");
  await assert.rejects(copySample(join(dir, "nothing"), parent), (error) => AppError.is(error, "not-found"));
  await assert.rejects(copySample(extension, join(dir, "no such folder")), (error) => AppError.is(error, "not-writable"));
  rmSync(dir, { recursive: true });
});

test("the walkthrough's sample is what the VSIX ships: a pipeline, its data and its base model", () => {
  for (const file of ["seesaw.yaml", "models/m0/model.safetensors", "data/math.train.jsonl"]) assert.ok(existsSync(join(repository, "media/sample", file)), file);
  const script = readFileSync(join(repository, ".config/scripts/package.mjs"), "utf8");
  for (const name of ["media/sample/", "media/walkthrough/", "l10n/"]) assert.ok(script.includes(`"${name}",`), name);
});
