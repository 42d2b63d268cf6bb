import assert from "node:assert/strict";
import { CommanderError } from "commander";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { test } from "node:test";
import { failureOf } from "../../../src/cli/failure.ts";
import { AppError } from "../../../src/util/errors.ts";

const thrown = (body: () => unknown): unknown => {
  try {
    return body();
  } catch (error) {
    return error;
  }
};

test("every error is one sentence; only a defect of ours has a stack to show", () => {
  const folder = mkdtempSync(`${tmpdir()}/seesaw-failure-`);
  const told = (error: unknown): string[] => {
    const { reason, message, stack } = failureOf(error);
    assert.doesNotMatch(message, /\n\s+at |ENOENT|EISDIR|syscall/);
    return [reason, message.replace(folder, "F"), stack === null ? "" : "stack"];
  };
  assert.deepEqual(told(new AppError("not-found", "There is no x.")), ["not-found", "There is no x.", ""]);
  assert.deepEqual(told(new CommanderError(1, "c", "error: unknown option '--x'")), ["usage", "unknown option '--x'", ""]);
  assert.deepEqual(told(thrown(() => readFileSync(`${folder}/nothing`))), ["not-writable", "F/nothing could not be read or written: it does not exist.", "stack"]);
  const full = Object.assign(new Error("ENOSPC"), { code: "ENOSPC", syscall: "write", path: "F/x" });
  assert.deepEqual(told(full), ["disk-full", "F/x could not be written: the disk is full. Free some space and try again.", ""]);
  assert.deepEqual(told(new TypeError("x is undefined")), ["internal", "Seesaw failed: x is undefined. This is a defect of ours: `--verbose` shows where it happened, please report it.", "stack"]);
  assert.equal(failureOf("text").reason, "internal");
  rmSync(folder, { recursive: true });
});
