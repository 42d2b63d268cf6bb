import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { flagNews } from "../../../../src/domain/run/flagNews.ts";
import { postWebhook, webhookBody, webhookProblem } from "../../../../src/host/flags/webhook.ts";
import type { FlagRecord } from "../../../../src/domain/run/runState.ts";
import { makeRun } from "../views.ts";

const flag = (seq: number, step: number, state: FlagRecord["state"], more: Partial<FlagRecord> = {}): FlagRecord => ({ id: "math.id", skill: "math", split: "id", step, state, value: 5, lower: 3, threshold: 2, noise: 0, level: 0.01, n: 64, seq, t: seq, attempt: 1, ...more });
const test20 = { lost: 20, gained: 1, n: 64, p: 1e-5, level: 0.025, accuracy_start: 0.9, accuracy_now: 0.6 };
const history = [flag(1, 20, "drifting"), flag(2, 20, "confirmed", { test: test20, reason: "of /home/me/data/math.probe.jsonl" }), flag(3, 40, "recovered"), flag(4, 60, "drifting"), flag(5, 80, "recovered")];
const run = makeRun("search", { status: "running", flagHistory: history });

/** A server on this machine that answers with a status and keeps what it was told. */
async function listening(status: number, headers: Record<string, string> = {}): Promise<{ server: Server; address: string; told: { body: string; type: string | undefined }[] }> {
  const told: { body: string; type: string | undefined }[] = [];
  const server = createServer((request: IncomingMessage, response) => {
    let body = "";
    request.on("data", (part: Buffer) => (body += part.toString()));
    request.on("end", () => {
      told.push({ body, type: request.headers["content-type"] });
      response.writeHead(status, headers).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { server, address: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook/s3cret`, told };
}

test("news are a confirmed loss and its recovery; a warning that was never confirmed is none", () => {
  assert.deepEqual(flagNews(run).map(({ flag: { state, step }, key }) => [state, step, key.startsWith(`${run.id}.math.id.`)]), [["confirmed", 20, true], ["recovered", 40, true]]);
  const again = makeRun("search", { flagHistory: [...history, flag(6, 90, "confirmed"), flag(7, 95, "confirmed")] });
  assert.deepEqual(flagNews(again).map(({ flag: { step } }) => step), [20, 40, 90], "a second test of the same loss is no news");
});

test("a webhook gets names and numbers, and nothing else", async () => {
  const { server, address, told } = await listening(204);
  try {
    const [news] = flagNews(run);
    assert.ok(news);
    const body = webhookBody({ ...news, flag: { ...news.flag, points: { estimate: 7, low: 3, high: "NaN" } } as FlagRecord });
    assert.equal(body.points, null, "a number that is none is not sent");
    assert.equal(await postWebhook(address, webhookBody({ ...news, flag: { ...news.flag, points: { estimate: 7, low: 3, high: 11 } } as FlagRecord })), null);
    assert.equal(told[0]?.type, "application/json");
    assert.deepEqual(JSON.parse(told[0]?.body ?? ""), { v: 1, run: run.id, stage: "search", skill: "math", split: "id", state: "confirmed", step: 20, accuracy: { start: 0.9, now: 0.6, n: 64 }, points: { estimate: 7, low: 3, high: 11 } });
    assert.doesNotMatch(told[0]?.body ?? "", /home|jsonl/);
  } finally {
    server.close();
  }
});

test("what goes wrong is said without the address; a redirect is not followed", async () => {
  const [news] = flagNews(run);
  assert.ok(news);
  const failing = await listening(500);
  const elsewhere = await listening(200);
  const moved = await listening(307, { location: elsewhere.address });
  try {
    assert.equal(await postWebhook(failing.address, webhookBody(news)), "It answered with status 500.");
    const redirected = await postWebhook(moved.address, webhookBody(news));
    assert.match(redirected ?? "", /^It could not be reached: /);
    assert.equal(elsewhere.told.length, 0);
    failing.server.close();
    await new Promise((resolve) => failing.server.on("close", resolve));
    const gone = await postWebhook(failing.address, webhookBody(news));
    assert.match(gone ?? "", /^It could not be reached: /);
    assert.doesNotMatch(gone ?? "", /s3cret/);
  } finally {
    for (const { server } of [elsewhere, moved]) server.close();
  }
});

test("only https, or this machine", () => {
  for (const fine of ["https://hooks.example.com/x", "http://127.0.0.1:8080/x", "http://localhost/x", "http://[::1]:9/x"]) assert.equal(webhookProblem(fine), null, fine);
  for (const bad of ["", "hooks.example.com", "http://hooks.example.com/x", "ftp://localhost/x", "http://127.0.0.1.example.com/", "https://me:word@example.com/"]) assert.equal(typeof webhookProblem(bad), "string", bad);
});
