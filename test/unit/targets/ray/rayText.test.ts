import assert from "node:assert/strict";
import { test } from "node:test";
import type { RayJob, RayNode } from "../../../../src/targets/remote/ray/rayClient.ts";
import { answerError, connectionError, expiredBy, lastLine } from "../../../../src/targets/remote/ray/rayErrors.ts";
import { entrypointResources, memoryBytes, pendingReason, submissionId, wordOf } from "../../../../src/targets/remote/ray/rayText.ts";

const job = (fields: Partial<RayJob>): RayJob => ({ submission_id: "x", status: "RUNNING", message: null, error_type: null, metadata: null, driver_node_id: "n1", driver_exit_code: null, start_time: null, ...fields });
const node = (resources: Record<string, number>, state = "ALIVE"): RayNode => ({ node_id: "n1", node_name: "10.0.0.1", is_head_node: true, state, resources_total: resources });

test("what Ray says of a job, in the words of all schedulers", () => {
  const word = (fields: Partial<RayJob>): unknown => wordOf(job(fields), [node({})], null, undefined);
  assert.deepEqual(wordOf(null, null, null, undefined), { state: "not-found", reason: null });
  assert.deepEqual(word({}), { state: "running", reason: null, nodes: "10.0.0.1" });
  assert.deepEqual(word({ status: "SUCCEEDED", driver_exit_code: 0 }), { state: "ended", end: "exited", reason: null, nodes: "10.0.0.1" });
  assert.deepEqual(word({ status: "STOPPED" }), { state: "ended", end: "cancelled", reason: "STOPPED", nodes: "10.0.0.1" });
  assert.deepEqual(word({ status: "FAILED", error_type: "JOB_ENTRYPOINT_COMMAND_ERROR", driver_exit_code: -9 }), { state: "ended", end: "failed", reason: "JOB_ENTRYPOINT_COMMAND_ERROR: exit code -9", nodes: "10.0.0.1" });
  assert.deepEqual(word({ status: "FAILED", error_type: "JOB_SUPERVISOR_ACTOR_DIED", message: "a\nThe node died" }), { state: "ended", end: "node-failure", reason: "JOB_SUPERVISOR_ACTOR_DIED: The node died", nodes: "10.0.0.1" });
  assert.equal((word({ status: "FAILED", message: "Task was killed due to the node running out of memory." }) as { end: string }).end, "out-of-memory");
  assert.equal(wordOf(job({ status: "FAILED", driver_exit_code: 3 }), null, "the disk is full", undefined).reason, "the disk is full");
  assert.equal(wordOf(job({ status: "FAILED", driver_exit_code: 3 }), null, "the disk is full", undefined).said, "the disk is full");
  assert.match(wordOf(job({ status: "FAILED", driver_exit_code: 127 }), [node({})], null, undefined).said ?? "", /^On 10\.0\.0\.1, the Python of this target cannot be started\. .*torch/);
});

test("why a job waits: what it asks for, or that no node has it", () => {
  const nodes = [node({ CPU: 8, memory: 2 ** 36 }), node({ CPU: 64, GPU: 8, memory: 2 ** 40 }, "DEAD")];
  assert.equal(pendingReason(nodes, { cpus: 2 }), "waits for 2 CPUs");
  assert.equal(pendingReason(nodes, { cpus: 1, memory: "1G" }), "waits for 1 CPU and 1073741824 bytes of memory");
  assert.equal(pendingReason(nodes, { gpus: 1 }), "no node of the cluster has 1 GPU");
  assert.equal(pendingReason(null, { gpus: 1 }), "waits for 1 GPU");
  assert.equal(pendingReason(nodes, {}), "PENDING");
});

test("resources become Ray's; sizes count in 1024s", () => {
  assert.deepEqual(entrypointResources({ gpus: 2, cpus: 4, memory: "32G" }), { entrypoint_num_cpus: 4, entrypoint_num_gpus: 2, entrypoint_memory: 32 * 2 ** 30 });
  assert.deepEqual(entrypointResources(undefined), {});
  assert.deepEqual(["1.5T", "512", "7K", "9MB", "8GiB", "lots", undefined].map(memoryBytes), [1.5 * 2 ** 40, 512 * 2 ** 20, 7 * 2 ** 10, 9 * 2 ** 20, 8 * 2 ** 30, null, null]);
});

test("a job's name says whose it is and is safe in an address", () => {
  assert.equal(submissionId("math-20261130T120000-abcd", 2, "n-1"), "seesaw-math-20261130T120000-abcd-2-n-1");
  assert.equal(submissionId("a b/../c", 1, "é"), "seesaw-a-b-..-c-1--");
});

test("failed connections: who is asked to do what", () => {
  const of = (code: string): string => connectionError("http://head:8265", Object.assign(new Error("x"), { code })).reach;
  assert.deepEqual(["ECONNREFUSED", "ENOTFOUND", "EHOSTUNREACH", "ETIMEDOUT", "ECONNRESET", "EPROTO", "DEPTH_ZERO_SELF_SIGNED_CERT", "CERT_HAS_EXPIRED"].map(of), ["no-scheduler", "no-route", "no-route", "no-route", "no-route", "other", "host-key", "host-key"]);
  assert.match(connectionError("https://h", Object.assign(new Error("x"), { code: "SELF_SIGNED_CERT_IN_CHAIN" })).message, /NODE_EXTRA_CA_CERTS/);
});

test("answers that are none: by status, with the last line of a traceback", () => {
  const of = (status: number, text = "", token: string | null = "t"): string => answerError("http://h", "take the job", status, text, token).reach;
  assert.deepEqual([of(401, "", null), of(403), of(403, "Token expired"), of(302), of(404), of(413), of(502), of(500, "boom")], ["refused", "refused", "expired", "login", "no-scheduler", "other", "no-scheduler", "other"]);
  const said = answerError("http://h", "take the job", 500, 'Traceback (most recent call last):\n  File "x"\nValueError: no\n', "secret").message;
  assert.match(said, /ValueError: no$/);
  assert.ok(!said.includes("secret") && !said.includes("Traceback"));
  assert.equal(lastLine("a\n b \n\n"), "b");
});

test("a token that says of itself that it is over", () => {
  const jwt = (body: object): string => `h.${Buffer.from(JSON.stringify(body)).toString("base64url")}.s`;
  assert.equal(expiredBy(jwt({ exp: 10 }), 11_000), true);
  assert.equal(expiredBy(jwt({ exp: 12 }), 11_000), false);
  assert.deepEqual([jwt({}), "plain", null, "a.b.c"].map((one) => expiredBy(one, 11_000)), [false, false, false, false]);
});
