import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { createServer, request as ask } from "node:http";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { connect, createServer as createTcpServer, type Socket } from "node:net";
import { dirname, join } from "node:path";
import { createServer as createTlsServer } from "node:tls";
import { after, before, test } from "node:test";
import type { StationFrame } from "../../../src/protocol/remote.ts";
import { Mirror } from "../../../src/targets/remote/mirror.ts";
import { RayClient } from "../../../src/targets/remote/ray/rayClient.ts";
import { RayTarget } from "../../../src/targets/remote/ray/rayTarget.ts";
import { ReachError } from "../../../src/targets/remote/reachError.ts";
import { run } from "../../../src/targets/spawn.ts";
import { AppError } from "../../../src/util/errors.ts";
import { identify, repo, sleep } from "../shared/leftovers.ts";
import { noRay, RayHead } from "./head.ts";
import { registerFaults } from "./rayFaults.ts";
import { registerSample } from "./raySample.ts";
import { contents, RayLab, until, type RayLabOptions } from "./rayLab.ts";

const skip = await noRay();
const token = randomBytes(24).toString("hex");
let head: RayHead;
let client: RayClient;

before(async () => {
  if (skip !== null) return;
  head = await RayHead.open({ token });
  client = new RayClient(head.address, () => Promise.resolve(token), {});
  process.env["SEESAW_RAY_TOKEN"] = token;
}, { timeout: 1_000_000 });

after(async () => {
  delete process.env["SEESAW_RAY_TOKEN"];
  client?.dispose();
  await head?.close();
}, { timeout: 60_000 });

/** A test with a lab of its own. */
function withRay(name: string, body: (lab: RayLab) => Promise<void>, options: RayLabOptions & { timeout?: number } = {}): void {
  const { timeout = 500_000, ...rest } = options;
  void test(`ray: ${name}`, { timeout, ...(skip !== null && { skip }) }, async () => {
    const lab = new RayLab(head.address, { token: () => token, ...rest });
    try {
      await body(lab);
    } finally {
      await lab.close();
    }
  });
}

const reach = (expected: string, words: RegExp) => (error: unknown): true => {
  assert.ok(error instanceof ReachError, String(error));
  assert.equal(error.reach, expected, error.message);
  assert.match(error.message, words);
  assert.ok(!error.message.includes(token), "the token is in a message");
  return true;
};

/** The copy has every file that is copied, with the same bytes. */
function assertSame(lab: RayLab, plan: { dir: string; remote: { dir: string } }): void {
  const there = contents(plan.remote.dir, /safetensors$|heartbeat$|^run\.json$|(^|\/)\./);
  assert.deepEqual(contents(plan.dir, /^mirror\.json$|(^|\/)\./), there);
  assert.ok(there.has("journal.jsonl") && there.has("out.log"), lab.dir);
}

withRay("a run from its start to its end: the copy is the same byte for byte, whatever the training prints", async (lab) => {
  const given = lab.plan({ steps: 9, seconds: 0.2 });
  const described = await lab.target.describe(given);
  assert.match(described.script ?? "", /seesaw_runner\/ray_job\.py train/);
  let plan = await lab.start(given);
  const [job] = plan.remote.attempts;
  assert.deepEqual(await lab.target.submit(given), job?.job, "asked twice, it is one job");
  assert.deepEqual(await lab.again().find(plan.remote, 1), job?.job, "found by its nonce");
  const word = await lab.target.word(plan.remote, 1);
  assert.ok(["queued", "running"].includes(word.state), word.state);
  await lab.follow(plan);
  assert.deepEqual(await lab.target.word(plan.remote, 1), { state: "ended", end: "exited", reason: null, nodes: head.host.address });
  assertSame(lab, plan);
  assert.ok(lab.read(plan, "out.log").includes(Buffer.from([0xff, 0xfe, 0xc3, 0x00])));
  assert.equal(lab.read(plan, "starts").toString(), "1\n");
  assert.deepEqual(lab.json(plan, "attempt-0001/exit.json")["finished"], { kind: "done" });
  assert.match(await client.logs(job?.job?.id ?? ""), /The agent has ended with 0/, "Ray can still give out the job's own log");
  // The inputs lie under their hashes, and a later run finds them.
  assert.deepEqual(readFileSync(plan.inputs[1]?.remote ?? ""), readFileSync(plan.inputs[1]?.local ?? ""));
  assert.deepEqual(readFileSync(`${plan.inputs[2]?.remote}/deep-1.bin`), readFileSync(`${plan.inputs[2]?.local}/deep-1.bin`));
  const into = join(lab.dir, "fetched");
  mkdirSync(into);
  const told: number[] = [];
  await lab.target.fetch(plan.remote, "checkpoints/step-000003", into, (_, copied) => void told.push(copied));
  assert.deepEqual(readFileSync(join(into, "model.safetensors")), lab.read(plan, "checkpoints/step-000003/model.safetensors"));
  assert.ok((told.at(-1) ?? 0) > 300_000);
  plan = { ...plan, remote: { ...plan.remote, attempts: [{ attempt: 1, nonce: "other", state: "submitting", job: null, asked: null }] } };
  assert.equal(await lab.target.find(plan.remote, 1), null, "another nonce is another job");
}, { inputs: [{ name: "data.jsonl", bytes: randomBytes(5 << 20) }], model: [{ name: "deep-1.bin", bytes: randomBytes(1 << 20) }, { name: "config.json", bytes: Buffer.from("{}") }] });

withRay("the token: none, a wrong one and one that is over are told apart, and it is kept nowhere", async (lab) => {
  const asking = (secret: string | null): RayTarget => new RayTarget(lab.settings, { runnerDir: "", log: console, token: () => Promise.resolve(secret) }, {});
  await assert.rejects(asking(null).check(), reach("refused", /asks for a token/));
  await assert.rejects(asking("wrong").check(), reach("refused", /refuses the token/));
  const over = `e30.${Buffer.from(JSON.stringify({ exp: 1_000 })).toString("base64url")}.x`;
  await assert.rejects(asking(over).check(), reach("expired", /has expired/));
  const plan = await lab.start(lab.plan({ steps: 2 }));
  await lab.follow(plan);
  assert.ok(!JSON.stringify([await client.jobs(), await lab.target.describe(plan), lab.said]).includes(token));
  for (const dir of [plan.remote.dir, plan.dir]) for (const name of contents(dir, /^$/).keys()) assert.ok(!readFileSync(join(dir, name)).includes(token), name);
});

withRay("a check tells the cluster, its Python and what it lacks", async (lab) => {
  const report = await lab.target.check();
  assert.equal(report.reachable, true);
  assert.equal(report.versions["Ray"], "2.58.0");
  assert.ok((report.disk?.total ?? 0) > 0 && (report.roundTrip ?? 0) > 0);
  assert.equal(report.queue?.[0]?.state, "alive");
  assert.deepEqual(report.problems.map(({ reason }) => reason), ["packages", "resources"]);
}, { resources: { gpus: 8 }, python: "/usr/bin/python3" });

withRay("no Python of that name", async (lab) => {
  await assert.rejects(lab.target.locate(), reach("no-python", /no-such-python/));
}, { python: "/no-such-python" });

withRay("a folder that cannot be written says so, before and instead of the training", async (lab) => {
  await assert.rejects(lab.target.locate(), reach("not-writable", /\/proc\/seesaw/));
}, { dir: "/proc/seesaw" });

withRay("a job that waits for resources is queued with its reason, and can be stopped", async (lab) => {
  const plan = await lab.start(lab.plan());
  await sleep(2_000);
  const word = await lab.target.word(plan.remote, 1);
  assert.deepEqual([word.state, word.reason], ["queued", "no node of the cluster has 3 GPUs"]);
  assert.equal((await lab.target.probe(plan.remote, 1)).state, "absent");
  await lab.target.stop(plan.remote, 1);
  // Ray keeps such a job until it could start; to everybody who asks it is stopped, and it could never begin.
  assert.deepEqual(await lab.again().word(plan.remote, 1), { state: "ended", end: "cancelled", reason: "STOPPED", nodes: null });
  assert.ok(existsSync(join(plan.remote.dir, "attempt-0001/cancel")));
  assert.ok(!existsSync(join(plan.remote.dir, "starts")), "nothing was started");
}, { resources: { gpus: 3 } });

withRay("a job that waits for another runs when that has ended", async (lab) => {
  const first = await lab.start(lab.plan({ steps: 30, seconds: 0.2 }));
  const second = await lab.start(lab.plan({ steps: 3 }));
  await lab.untilStep(first, 1);
  const word = await lab.target.word(second.remote, 1);
  assert.deepEqual([word.state, word.reason], ["queued", "waits for 2 CPUs"]);
  await lab.follow(second);
  assert.equal(lab.json(second, "attempt-0001/exit.json")["code"], 0);
  assertSame(lab, second);
}, { resources: { cpus: 2 } });

withRay("stop: the training saves, the attempt says that it was cancelled", async (lab) => {
  const plan = await lab.start(lab.plan({ steps: 500, seconds: 0.2, save: 400 }));
  await lab.untilStep(plan, 3);
  const following = lab.follow(plan);
  await lab.target.stop(plan.remote, 1);
  await following;
  assert.deepEqual(lab.json(plan, "attempt-0001/exit.json")["finished"], { kind: "cancelled" });
  assert.match(lab.read(plan, "journal.jsonl").toString(), /checkpoint\.saved/);
  assertSame(lab, plan);
});

withRay("stopped from outside: killed by a signal, and Ray's word is cancelled", async (lab) => {
  const plan = await lab.start(lab.plan({ steps: 500, seconds: 0.2, save: 400 }));
  await lab.untilStep(plan, 3);
  await client.stop(plan.remote.attempts[0]?.job?.id ?? "");
  await lab.follow(plan);
  assert.deepEqual(lab.json(plan, "attempt-0001/exit.json")["finished"], { kind: "killed", signal: "SIGTERM" });
  assert.equal((await lab.target.word(plan.remote, 1)).end, "cancelled");
  assert.match(lab.read(plan, "journal.jsonl").toString(), /checkpoint\.saved/, "Ray waited longer than the training needs");
  assertSame(lab, plan);
});

withRay("the link is cut and comes back: what is missing follows, no more", async (lab) => {
  const plan = await lab.start(lab.plan({ steps: 120, seconds: 0.2, save: 50 }));
  await lab.untilStep(plan, 5);
  const following = assert.rejects(lab.follow(plan), reach("no-route", /10\.99\.\d+\.2/));
  await until("something here", () => existsSync(join(plan.dir, "journal.jsonl")));
  await head.host.cut();
  try {
    await following;
  } finally {
    await head.host.mend();
  }
  let again = 0;
  const frames: StationFrame[] = [];
  await until("the head is back", () => client.version().then(() => true, () => false));
  const had = readFileSync(join(plan.dir, "journal.jsonl")).length;
  const mirror = await Mirror.open(plan.dir);
  await lab.target.follow(plan.remote, mirror.known(), (frame) => {
    frames.push(frame);
    if (frame.kind === "piece" && frame.file === "journal.jsonl" && frame.offset < had) again++;
    return mirror.apply(frame);
  }, AbortSignal.timeout(300_000));
  await mirror.close();
  assert.equal(again, 0, "bytes of the journal came twice");
  assert.equal(frames.filter(({ kind }) => kind === "restart").length, 0);
  assertSame(lab, plan);
});

withRay("a job deleted from outside: Ray has forgotten it, the run folder has not", async (lab) => {
  const plan = await lab.start(lab.plan({ steps: 3 }));
  const id = plan.remote.attempts[0]?.job?.id ?? "";
  await until("the end", async () => (await client.job(id))?.status === "SUCCEEDED");
  await client.forget(id);
  assert.deepEqual(await lab.target.word(plan.remote, 1), { state: "not-found", reason: null });
  await lab.follow(plan);
  assertSame(lab, plan);
});

withRay("what no package can hold is refused with the place for it, and used when it is there", async (lab) => {
  const plan = lab.plan({ steps: 2 });
  const large = plan.inputs[1];
  assert.ok(large !== undefined);
  await assert.rejects(lab.target.prepare(plan, () => {}), (error: unknown) => {
    assert.ok(AppError.is(error, "bad-input"));
    assert.ok(error.message.includes(large.local) && error.message.includes(large.remote), error.message);
    return true;
  });
  mkdirSync(dirname(large.remote), { recursive: true });
  writeFileSync(large.remote, readFileSync(large.local));
  const started = await lab.start(plan);
  await lab.follow(started);
  assert.deepEqual(lab.json(started, "attempt-0001/exit.json")["finished"], { kind: "done" });
}, { inputs: [{ name: "large.bin", bytes: Buffer.alloc((100 << 20) + 1, 7) }] });

withRay("through a proxy that lets no websocket through", async (lab) => {
  const seen = new Set<string>();
  const proxy = createServer((question, answer) => {
    seen.add(question.method ?? "");
    const passed = ask(question.url ?? "", { method: question.method, headers: { ...question.headers, connection: "close" } }, (from) => {
      answer.writeHead(from.statusCode ?? 500, from.headers);
      from.pipe(answer);
    });
    passed.on("error", () => answer.destroy());
    question.pipe(passed);
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const { port } = proxy.address() as { port: number };
  const target = new RayTarget(lab.settings, { runnerDir: join(repo, "runner"), log: console, token: () => Promise.resolve(token) }, { HTTP_PROXY: `http://127.0.0.1:${port}` });
  try {
    const plan = await lab.start(lab.plan({ steps: 3 }));
      const mirror = await Mirror.open(plan.dir);
    await target.follow(plan.remote, {}, (frame) => mirror.apply(frame), AbortSignal.timeout(300_000));
    await mirror.close();
    assertSame(lab, plan);
    assert.ok(seen.has("POST") && seen.has("GET"), "nothing went through the proxy");
  } finally {
    target.dispose();
    proxy.closeAllConnections();
    proxy.close();
  }
});

withRay("through a proxy that wants a login, and opens tunnels: the log streams, the proxy's password reaches nobody", async (lab) => {
  const seen: string[] = [];
  const login = `Basic ${Buffer.from("me:hidden").toString("base64")}`;
  const proxy = createServer((question, answer) => {
    seen.push(`${question.method} ${question.headers["proxy-authorization"] === login ? "in" : "out"}`);
    if (question.headers["proxy-authorization"] !== login) return void answer.writeHead(407).end();
    const { "proxy-authorization": _, ...headers } = question.headers;
    question.pipe(ask(question.url ?? "", { method: question.method, headers: { ...headers, connection: "close" } }, (from) => {
      answer.writeHead(from.statusCode ?? 500, from.headers);
      from.pipe(answer);
    }).on("error", () => answer.destroy()));
  });
  const tunnels = new Set<Socket>();
  proxy.on("connect", (question, near: Socket) => {
    seen.push(`CONNECT ${question.headers["proxy-authorization"] === login ? "in" : "out"}`);
    const [host = "", port] = (question.url ?? "").split(":");
    const far = connect(Number(port), host, () => near.write("HTTP/1.1 200 OK\r\n\r\n"));
    tunnels.add(near);
    for (const [one, other] of [[near, far], [far, near]] as const) one.on("error", () => other.destroy()).on("close", () => other.destroy()).pipe(other);
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const { port } = proxy.address() as { port: number };
  const deps = { runnerDir: join(repo, "runner"), log: console, token: () => Promise.resolve(token) };
  const stranger = new RayTarget(lab.settings, deps, { HTTP_PROXY: `http://127.0.0.1:${port}` });
  const target = new RayTarget(lab.settings, deps, { HTTP_PROXY: `http://me:hidden@127.0.0.1:${port}` });
  try {
    await assert.rejects(stranger.check(), reach("refused", /asks for a login/));
    const plan = await lab.start(lab.plan({ steps: 3 }));
    const mirror = await Mirror.open(plan.dir);
    await target.follow(plan.remote, {}, (frame) => mirror.apply(frame), AbortSignal.timeout(300_000));
    await mirror.close();
    assertSame(lab, plan);
    assert.ok(seen.includes("CONNECT in") && seen.includes("POST in") && seen.includes("GET out"), [...new Set(seen)].join());
    const around = new RayTarget(lab.settings, deps, { HTTP_PROXY: "http://127.0.0.1:9", NO_PROXY: `${head.host.address}/32` });
    assert.equal((await around.check()).reachable, true, "past a proxy that is down");
    around.dispose();
  } finally {
    for (const one of [target, stranger]) one.dispose();
    for (const one of tunnels) one.destroy();
    proxy.closeAllConnections();
    proxy.close();
  }
});

withRay("what cannot be used is told by `seesaw targets check`, with exit code 1, and nothing is started by `seesaw run`", async (lab) => {
  const sample = join(repo, "media/sample");
  const yaml = (address: string, more = ""): string => `seesaw: 1
base: ${sample}/models/m0
skills: { math: { probes: ${sample}/data/math.probe.jsonl, check: { kind: number-after, marker: so } } }
stages: [{ id: math, recipe: sft, data: ${sample}/data/math.train.jsonl, on: box }]
targets: { box: { kind: ray, address: "${address}", dir: ${lab.there}, python: python3${more} } }
`;
  const over = `e30.${Buffer.from(JSON.stringify({ exp: 1_000 })).toString("base64url")}.x`;
  const cases: [string, string, Record<string, string>, string, RegExp][] = [
    ["wrong token", yaml(head.address), { SEESAW_RAY_TOKEN: "wrong" }, "refused", /refuses the token/],
    ["token that is over", yaml(head.address), { SEESAW_RAY_TOKEN: over }, "expired", /has expired/],
    ["no dashboard", yaml(`http://${head.host.address}:9`), {}, "no-scheduler", /without dashboard/],
    ["proxy that is not there", yaml(head.address), { HTTP_PROXY: "http://127.0.0.1:9" }, "no-route", /The proxy 127\.0\.0\.1:9/],
  ];
  for (const [name, text, env, reason, says] of cases) {
    writeFileSync(join(lab.dir, "seesaw.yaml"), text);
    const cli = (...words: string[]): ReturnType<typeof run> => run([process.execPath, join(repo, "src/cli.ts"), ...words], { cwd: lab.dir, env: { ...process.env, ...env }, timeout: 180_000 });
    const { code, stdout, stderr } = await cli("targets", "check", "box", "--json");
    assert.equal(code, 1, `${name}: ${stderr}`);
    const [problem] = (JSON.parse(stdout) as { targets: { problems: { reason: string; message: string }[] }[] }).targets[0]?.problems ?? [];
    assert.equal(problem?.reason, reason, name);
    assert.match(problem.message, says);
    const started = await cli("run", "math", "--detach");
    assert.equal(started.code, 5, `${name}: ${started.stderr}`);
    assert.match(started.stderr, says);
  }
  assert.ok(!existsSync(join(lab.there, "runs")) && (await client.jobs()).every((job) => !/^math-\d{8}T/.test(job.metadata?.["seesaw_run"] ?? "")), "something was started");
});

withRay("a stream that breaks off is opened again, and nothing comes twice", async (lab) => {
  const streams = new Set<Socket>();
  let opened = 0;
  const between = createTcpServer((near) => {
    const far = connect(Number(new URL(head.address).port), head.host.address);
    near.on("data", (chunk: Buffer) => {
      if (!chunk.includes("/logs/tail")) return;
      opened++;
      streams.add(near.on("close", () => streams.delete(near)));
    });
    for (const [one, other] of [[near, far], [far, near]] as const) one.on("error", () => other.destroy()).on("close", () => other.destroy()).pipe(other);
  });
  await new Promise<void>((resolve) => between.listen(0, "127.0.0.1", resolve));
  const target = new RayTarget({ ...lab.settings, address: `http://127.0.0.1:${(between.address() as { port: number }).port}` }, { runnerDir: join(repo, "runner"), log: console, token: () => Promise.resolve(token) }, {});
  const cutter = setInterval(() => streams.forEach((one) => one.destroy()), 4_000);
  try {
    const plan = await lab.start(lab.plan({ steps: 60, seconds: 0.4, save: 50 }));
    const mirror = await Mirror.open(plan.dir);
    let end = 0;
    await target.follow(plan.remote, {}, (frame) => {
      if (frame.kind === "piece" && frame.file === "journal.jsonl") {
        assert.equal(frame.offset, end, "a piece of the journal came twice, or not at all");
        end += Buffer.byteLength(frame.data, "base64");
      }
      return mirror.apply(frame);
    }, AbortSignal.timeout(400_000));
    await mirror.close();
    assert.ok(opened >= 3, `the stream was opened ${opened} times`);
    assertSame(lab, plan);
  } finally {
    clearInterval(cutter);
    target.dispose();
    streams.forEach((one) => one.destroy());
    between.close();
  }
});

withRay("what is no Ray dashboard, or none at all, is told", async (lab) => {
  const other = createServer((_, answer) => answer.writeHead(404).end("not here"));
  await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
  const { port } = other.address() as { port: number };
  const at = (address: string): RayTarget => new RayTarget({ ...lab.settings, address }, { runnerDir: "", log: console, token: () => Promise.resolve(null) }, {});
  try {
    await assert.rejects(at(`http://127.0.0.1:${port}`).check(), reach("no-scheduler", /has no Jobs API/));
    await assert.rejects(at(`http://${head.host.address}:9`).check(), reach("no-scheduler", /without dashboard/));
    await assert.rejects(at(`https://${head.host.address}:8299`).check(), reach("other", /does not speak this protocol/));
    await assert.rejects(at("http://no-such-host.invalid:8265").check(), reach("no-route", /is not known here/));
  } finally {
    other.closeAllConnections();
    other.close();
  }
});

withRay("a certificate that nobody vouches for is refused; with its authority's file it is not", async (lab) => {
  const [key, cert] = [join(lab.dir, "key.pem"), join(lab.dir, "cert.pem")];
  const made = await run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", cert], { timeout: 60_000 });
  assert.equal(made.code, 0, made.stderr);
  const between = createTlsServer({ key: readFileSync(key), cert: readFileSync(cert) }, (near) => {
    const far = connect(Number(new URL(head.address).port), head.host.address);
    for (const [one, other] of [[near, far], [far, near]] as const) one.on("error", () => other.destroy()).on("close", () => other.destroy()).pipe(other);
  });
  between.on("tlsClientError", () => {});
  await new Promise<void>((resolve) => between.listen(0, "127.0.0.1", resolve));
  const address = `https://localhost:${(between.address() as { port: number }).port}`;
  const unsure = new RayClient(address, () => Promise.resolve(token), {});
  try {
    await assert.rejects(unsure.version(), reach("host-key", /NODE_EXTRA_CA_CERTS/));
    const script = `import { RayClient } from ${JSON.stringify(join(repo, "src/targets/remote/ray/rayClient.ts"))}; const one = new RayClient(${JSON.stringify(address)}, async () => process.env.SEESAW_RAY_TOKEN, {}); console.log(await one.version()); one.dispose();`;
    const sure = await run([process.execPath, "--input-type=module", "-e", script], { timeout: 120_000, env: { ...process.env, NODE_EXTRA_CA_CERTS: cert } });
    assert.equal(sure.stdout.trim(), "2.58.0", sure.stderr);
  } finally {
    unsure.dispose();
    between.close();
  }
});

registerFaults({ head: () => head, client: () => client, skip });
registerSample({ head: () => head, skip });

// It ends the cluster of all tests and starts another.
withRay("the head dies: nothing is left running, the run is lost by the target's word, and goes on from its checkpoint", async (lab) => {
  const plan = await lab.start(lab.plan({ steps: 200, seconds: 0.2, save: 5 }));
  await lab.untilStep(plan, 12);
  const following = assert.rejects(lab.follow(plan), ReachError);
  const started = lab.json(plan, "attempt-0001/started.json") as { pid: number; agent_pid: number; start: number };
  await head.crash();
  await until("the training is gone", () => identify(started.pid)?.start !== started.start, 30);
  await following;
  await assert.rejects(lab.target.check(), reach("no-scheduler", /Ray head is not running/));
  await head.start();
  assert.deepEqual(await lab.target.word(plan.remote, 1), { state: "not-found", reason: null });
  assert.equal((await lab.target.probe(plan.remote, 1)).state, "lost:no-exit-file");
  assert.equal((await lab.target.reap(plan.remote, 1)).state, "exited");
  await lab.follow(plan);
  assertSame(lab, plan);
  const steps = lab.steps(plan);
  const next = await lab.start(lab.plan({ steps: steps + 4, seconds: 0.1, save: 5, id: plan.id, attempt: 2, before: plan.remote }));
  await lab.follow(next);
  assert.equal(lab.read(next, "starts").toString(), "1\n2\n");
  assert.deepEqual(lab.json(next, "attempt-0002/exit.json")["finished"], { kind: "done" });
  assert.match(lab.read(next, "journal.jsonl").toString(), /"resumed_from": 1\d/);
  assertSame(lab, next);
}, { timeout: 1_000_000 });
