import assert from "node:assert/strict";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import type { RemoteFile } from "../../../../src/protocol/remote.ts";
import { fetchCheckpoint, weightsHashOf } from "../../../../src/targets/remote/fetchCheckpoint.ts";
import type { RemotePlan, RemoteTarget } from "../../../../src/targets/remote/port.ts";
import { homeOf, mustBeHere, weightsAway, writePlan, writeRemote } from "../../../../src/targets/remote/remoteFolder.ts";
import { AppError } from "../../../../src/util/errors.ts";

let dir = "";
let far = "";
let run = "";
const there = "/srv/seesaw/runs/math-1";
/** As much of a target as a copy needs: the folder `far` is `/srv/seesaw`. */
const target = { fetch: (_: RemoteFile, relative: string, local: string) => Promise.resolve(cpSync(join(far, "runs/math-1", relative), local, { recursive: true })) } as unknown as RemoteTarget;
const quiet = (): void => {};

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), "seesaw-fetch-"));
  far = join(dir, "far");
  run = join(dir, "work/.seesaw/runs/math-1");
  mkdirSync(join(far, "runs/math-1/checkpoints/step-000004"), { recursive: true });
  mkdirSync(join(run, "checkpoints/step-000004"), { recursive: true });
  writeFileSync(join(run, "checkpoints/step-000004/seesaw.json"), "{}");
  const remote: RemoteFile = { v: 1, target: "box", kind: "ssh", address: "gpu-box", dir: there, runner: "/srv/seesaw/runner/a", python: "/p", settings: { id: "box", kind: "ssh", host: "gpu-box", python: "/p", dir: "/srv/seesaw" }, attempts: [] };
  await writeRemote(run, remote);
  await writePlan(run, { spec: { id: "math-1" }, attemptSpec: { nonce: "0123456789" }, inputs: [{ local: join(dir, "work/models/m0"), kind: "model", sha256: "x", bytes: 1, remote: "/srv/seesaw/models/x" }] } as unknown as RemotePlan);
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const folder = (): string => join(run, "checkpoints/step-000004");
const put = (name: string, text: string): void => writeFileSync(join(far, "runs/math-1/checkpoints/step-000004", name), text);

test("a checkpoint that lies elsewhere is told from one that is here, and comes whole", async () => {
  put("model.safetensors", "weights");
  put("config.json", "{}");
  assert.deepEqual(await weightsAway(folder()), { run: "math-1", step: 4, target: "box", address: "gpu-box" });
  await assert.rejects(mustBeHere(folder()), (error) => AppError.is(error, "not-found") && /seesaw fetch math-1 --step 4/.test(error.message));
  const home = await homeOf(folder());
  assert.ok(home !== null && home.relative === "checkpoints/step-000004" && !home.here);
  const hash = await weightsHashOf(join(far, "runs/math-1/checkpoints/step-000004"));
  assert.equal(await fetchCheckpoint(target, home, hash, quiet), folder());
  assert.deepEqual(readdirSync(folder()).sort(), ["config.json", "model.safetensors"]);
  assert.deepEqual(readdirSync(join(run, "checkpoints")), ["step-000004"]);
  assert.equal(await weightsAway(folder()), null);
  assert.equal(await homeOf(join(dir, "work/models")), null);
});

test("weights that are not those of the journal, or none, change nothing here", async () => {
  const home = await homeOf(folder());
  assert.ok(home !== null);
  await assert.rejects(fetchCheckpoint(target, home, "abc", quiet), (error) => AppError.is(error, "not-found") && /has no weights/.test(error.message));
  put("model.safetensors", "weights");
  await assert.rejects(fetchCheckpoint(target, home, "abc", quiet), (error) => AppError.is(error, "bad-input") && /not those that the run saved/.test(error.message));
  assert.deepEqual(readdirSync(folder()), ["seesaw.json"]);
  assert.ok(!existsSync(join(run, "checkpoints/.fetch-step-000004")));
});

test("an adapter names its base as it is here: what was sent there, or a run of the chain", async () => {
  put("adapter_model.safetensors", "lora");
  for (const [said, expected] of [["/srv/seesaw/models/x", join(dir, "work/models/m0")], ["/srv/seesaw/runs/sft-1/checkpoints/step-000002", join(dir, "work/.seesaw/runs/sft-1/checkpoints/step-000002")], ["/opt/models/theirs", "/opt/models/theirs"]]) {
    put("adapter_config.json", JSON.stringify({ r: 8, base_model_name_or_path: said }));
    const home = await homeOf(folder());
    assert.ok(home !== null);
    await fetchCheckpoint(target, home, null, quiet);
    assert.equal((JSON.parse(readFileSync(join(folder(), "adapter_config.json"), "utf8")) as Record<string, unknown>)["base_model_name_or_path"], expected);
  }
});
