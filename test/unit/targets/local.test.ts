import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { diskError, LocalTarget, writeJson } from "../../../src/targets/local.ts";
import { AppError } from "../../../src/util/errors.ts";

const dir = mkdtempSync(join(tmpdir(), "seesaw-local-"));
after(() => rmSync(dir, { recursive: true }));

test("cancel waits for the attempt's grace, which an orphan is given by the verb itself; other verbs do not", async () => {
  const agent = join(dir, "slow");
  writeFileSync(agent, '#!/bin/sh\nsleep 1\necho \'{"state":"exited"}\'\n');
  chmodSync(agent, 0o755);
  const target = new LocalTarget(dir, agent, 300);
  const attempt = join(dir, "attempt-0001");
  mkdirSync(attempt);
  writeFileSync(join(attempt, "spec.json"), '{"grace_s":8}');
  assert.equal((await target.cancel(attempt)).state, "exited");
  await assert.rejects(target.probe(attempt), (error) => AppError.is(error, "agent-failed") && /no answer in time/.test(error.message));
  writeFileSync(join(attempt, "spec.json"), "torn");
  assert.equal((await target.cancel(attempt)).state, "exited", "a spec that cannot be read counts as the usual grace");
});

test("a failed write names the place and the reason, whatever it was", async () => {
  const text = (code: string): [string, string] => {
    const { reason, message } = diskError("/x", Object.assign(new Error("raw"), { code }));
    return [reason, message];
  };
  assert.deepEqual(text("ENOSPC"), ["disk-full", "/x could not be written: the disk is full. Free some space and try again."]);
  // As Node tells it: without a name.
  const quota = diskError("/x", Object.assign(new Error("UNKNOWN: unknown error, write"), { code: "UNKNOWN", errno: -constants.errno.EDQUOT }));
  assert.deepEqual([quota.reason, /your disk quota is used up \(`quota -s`/.test(quota.message)], ["disk-full", true]);
  assert.deepEqual(text("EROFS"), ["not-writable", "/x could not be written: this folder is read-only for you."]);
  assert.deepEqual(text("ENOTDIR"), ["not-writable", "/x could not be written: a part of the path is a file."]);
  assert.equal(diskError("/x", new Error("odd")).reason, "internal");
  await assert.rejects(writeJson(join(dir, "slow", "x.json"), {}), (error) => AppError.is(error, "not-writable"));
});
