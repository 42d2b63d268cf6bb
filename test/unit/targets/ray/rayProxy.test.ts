import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import http, { createServer, type IncomingMessage, type Server } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { connect, createServer as createTcpServer, type AddressInfo, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import { WebSocket, WebSocketServer } from "ws";
import { RayClient } from "../../../../src/targets/remote/ray/rayClient.ts";
import { RayError } from "../../../../src/targets/remote/ray/rayErrors.ts";
import { editorsProxyDown, namedProxy, proxyOf } from "../../../../src/targets/remote/ray/rayProxy.ts";
import { run } from "../../../../src/targets/spawn.ts";
import { AppError } from "../../../../src/util/errors.ts";

// A cluster with a name that only the proxy knows: whoever asks past it finds nothing.
const box = mkdtempSync(join(tmpdir(), "seesaw-proxy-"));
const answer = (request: IncomingMessage, response: http.ServerResponse): void => {
  asked.push({ url: request.url ?? "", headers: request.headers });
  response.writeHead(200, { "content-type": "application/json" }).end('{"ray_version": "2.58.0"}');
};
const asked: { url: string; headers: http.IncomingHttpHeaders }[] = [];
let plain: Server;
let secure: ReturnType<typeof createSecureServer>;
let proxy: Server;
/** What the proxy was asked: `GET http://…`, `CONNECT …`. */
const through: { what: string; login: string | undefined }[] = [];
let refuse = 0;
const sockets = new Set<Socket>();

const port = (server: { address(): unknown }): number => (server.address() as AddressInfo).port;
const listen = (server: { listen(port: number, host: string, done: () => void): unknown }): Promise<void> => new Promise((done) => void server.listen(0, "127.0.0.1", done));

before(async () => {
  plain = createServer(answer);
  const words = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=head.test", "-addext", "subjectAltName=DNS:head.test", "-keyout", join(box, "key.pem"), "-out", join(box, "cert.pem")];
  execFileSync("openssl", words, { stdio: "ignore" });
  secure = createSecureServer({ key: readFileSync(join(box, "key.pem")), cert: readFileSync(join(box, "cert.pem")) }, answer);
  secure.on("tlsClientError", () => {});
  new WebSocketServer({ server: plain }).on("connection", (socket) => socket.send("hello"));
  proxy = createServer((request, response) => {
    through.push({ what: `${request.method} ${request.url}`, login: request.headers["proxy-authorization"] });
    if (refuse > 0) return void response.writeHead(refuse).end("the proxy's own page");
    const url = new URL(request.url ?? "");
    const { "proxy-authorization": _, ...headers } = request.headers;
    request.pipe(http.request({ port: url.port, host: "127.0.0.1", path: url.pathname, method: request.method, headers }, (from) => {
      response.writeHead(from.statusCode ?? 500, from.headers);
      from.pipe(response);
    }));
  });
  proxy.on("connect", (request: IncomingMessage, near: Socket) => {
    through.push({ what: `CONNECT ${request.url}`, login: request.headers["proxy-authorization"] });
    if (refuse > 0) return void near.end(`HTTP/1.1 ${refuse} No\r\n\r\n`);
    const far = connect(Number(request.url?.split(":").at(-1)), "127.0.0.1", () => near.write("HTTP/1.1 200 OK\r\n\r\n"));
    for (const [one, other] of [[near, far], [far, near]] as const) sockets.add(one.on("error", () => other.destroy()).on("close", () => other.destroy())), one.pipe(other);
  });
  for (const server of [plain, secure, proxy]) await listen(server);
});
after(() => {
  for (const socket of sockets) socket.destroy();
  for (const server of [plain, secure, proxy]) {
    server.closeAllConnections();
    server.close();
  }
  rmSync(box, { recursive: true });
});
beforeEach(() => {
  refuse = 0;
  through.length = 0;
  asked.length = 0;
});

const told = (reach: string, words: RegExp) => (error: unknown): true => {
  assert.ok(error instanceof RayError, String(error));
  assert.equal(error.reach, reach, error.message);
  assert.match(error.message, words);
  assert.ok(!error.message.includes("hidden"), "the proxy's password is in a message");
  return true;
};

async function asking<T>(address: string, env: NodeJS.ProcessEnv, work: (client: RayClient) => Promise<T>): Promise<T> {
  const client = new RayClient(address, () => Promise.resolve("ray-token"), env);
  try {
    return await work(client);
  } finally {
    client.dispose();
  }
}

test("over http the proxy gets the whole address and its own login; the cluster gets neither", async () => {
  const address = `http://head.test:${port(plain)}`;
  assert.equal(await asking(address, { HTTP_PROXY: `http://me:hid%64en@127.0.0.1:${port(proxy)}` }, (client) => client.version()), "2.58.0");
  assert.deepEqual(through, [{ what: `GET ${address}/api/version`, login: `Basic ${Buffer.from("me:hidden").toString("base64")}` }]);
  assert.equal(asked[0]?.url, "/api/version");
  assert.deepEqual([asked[0]?.headers.host, asked[0]?.headers.authorization, asked[0]?.headers["proxy-authorization"]], [`head.test:${port(plain)}`, "Bearer ray-token", undefined]);
});

test("a websocket goes through a tunnel", async () => {
  const client = new RayClient(`http://head.test:${port(plain)}`, () => Promise.resolve("ray-token"), { http_proxy: `127.0.0.1:${port(proxy)}` });
  const { url, headers, agent } = await client.socket("job");
  const socket = new WebSocket(url, { perMessageDeflate: false, headers, agent });
  const said = await new Promise<string>((done, fail) => socket.on("message", (data: Buffer) => done(data.toString())).on("error", fail));
  socket.terminate();
  client.dispose();
  assert.equal(said, "hello");
  assert.deepEqual(through, [{ what: `CONNECT head.test:${port(plain)}`, login: undefined }]);
});

test("over https nothing is seen by the proxy, and the certificate is checked as ever", async () => {
  const address = `https://head.test:${port(secure)}`;
  const env = { https_proxy: `http://127.0.0.1:${port(proxy)}` };
  await assert.rejects(asking(address, env, (client) => client.version()), told("host-key", /NODE_EXTRA_CA_CERTS/));
  const script = `import { RayClient } from ${JSON.stringify(resolve("src/targets/remote/ray/rayClient.ts"))}; const one = new RayClient(${JSON.stringify(address)}, async () => "ray-token", ${JSON.stringify(env)}); console.log(await one.version(), await one.version()); one.dispose();`;
  const sure = await run([process.execPath, "--input-type=module", "-e", script], { timeout: 120_000, env: { ...process.env, NODE_EXTRA_CA_CERTS: join(box, "cert.pem") } });
  assert.equal(sure.stdout.trim(), "2.58.0 2.58.0", sure.stderr);
  assert.deepEqual(through.map(({ what }) => what), [`CONNECT head.test:${port(secure)}`, `CONNECT head.test:${port(secure)}`], "one for each client: the connection is kept");
  const wrong = `https://other.test:${port(secure)}`;
  await assert.rejects(asking(wrong, env, (client) => client.version()), (error) => error instanceof RayError && error.reach === "host-key");
});

test("a proxy that wants a login, refuses, finds no way, or is not there is told as the proxy", async () => {
  const [http1, https1] = [`http://head.test:${port(plain)}`, `https://head.test:${port(secure)}`];
  const env = { HTTP_PROXY: `http://me:hidden@127.0.0.1:${port(proxy)}`, HTTPS_PROXY: `http://me:hidden@127.0.0.1:${port(proxy)}` };
  const version = (address: string, given: NodeJS.ProcessEnv = env): Promise<string> => asking(address, given, (client) => client.version());
  refuse = 407;
  for (const address of [http1, https1]) await assert.rejects(version(address), told("refused", /asks for a login/));
  refuse = 403;
  for (const address of [http1, https1]) await assert.rejects(version(address), told("refused", /the proxy 127\.0\.0\.1:\d+ does not let you go|The proxy 127\.0\.0\.1:\d+ does not let you go/));
  refuse = 503;
  await assert.rejects(version(https1), told("no-route", /found no way/));
  await assert.rejects(version(http1), told("no-scheduler", /behind it does not \(status 503\)/));
  const down = { HTTP_PROXY: "http://me:hidden@127.0.0.1:9", HTTPS_PROXY: "http://me:hidden@127.0.0.1:9" };
  for (const address of [http1, https1]) await assert.rejects(version(address, down), told("no-route", /The proxy 127\.0\.0\.1:9, over which .* does not answer \(ECONNREFUSED\)/));
  for (const value of ["socks5://127.0.0.1:1080", "http://", "::::"]) await assert.rejects(version(http1, { ALL_PROXY: value }), told("other", /ALL_PROXY/));
});

test("a cluster named by its address: the certificate must be that address's, not any that this machine or the proxy has", async () => {
  const served = (name: string): Promise<{ port: number; authority: string; close(): void }> => {
    const [key, cert] = [join(box, `${name}.key`), join(box, `${name}.pem`)];
    execFileSync("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=any", "-addext", `subjectAltName=${name}`, "-keyout", key, "-out", cert], { stdio: "ignore" });
    const server = createSecureServer({ key: readFileSync(key), cert: readFileSync(cert) }, answer);
    server.on("tlsClientError", () => {});
    return listen(server).then(() => ({ port: port(server), authority: cert, close: () => (server.closeAllConnections(), void server.close()) }));
  };
  for (const [name, says] of [["IP:10.1.2.3", /^2\.58\.0$/], ["DNS:localhost", /is for another name/]] as const) {
    const { port: at, authority, close } = await served(name);
    const script = `import { RayClient } from ${JSON.stringify(resolve("src/targets/remote/ray/rayClient.ts"))}; const one = new RayClient("https://10.1.2.3:${at}", async () => null, { HTTPS_PROXY: "127.0.0.1:${port(proxy)}" }); console.log(await one.version().catch((error) => error.message)); one.dispose();`;
    const { stdout, stderr } = await run([process.execPath, "--input-type=module", "-e", script], { timeout: 120_000, env: { ...process.env, NODE_EXTRA_CA_CERTS: authority } });
    close();
    assert.match(stdout.trim(), says, stderr);
  }
});

test("a question to a proxy that says nothing can be stopped", async () => {
  const mute = createTcpServer((socket) => (sockets.add(socket), void socket.on("error", () => {}).once("data", () => stop.abort())));
  const stop = new AbortController();
  await listen(mute);
  const asked = (): Promise<string> => asking("https://head.test:8265", { HTTPS_PROXY: `127.0.0.1:${port(mute)}` }, (client) => client.version(stop.signal));
  await assert.rejects(asked(), (error) => AppError.is(error, "cancelled"));
  await assert.rejects(asked(), (error) => AppError.is(error, "cancelled"), "stopped before it was asked");
  mute.close();
});

test("where the editor finds the proxy, that of the environment is not asked, nor is its login shown to anybody; the choice may change", async () => {
  let editor = true;
  const client = new RayClient(`http://0.0.0.0:${port(plain)}`, () => Promise.resolve("ray-token"), { HTTP_PROXY: `http://me:hidden@127.0.0.1:${port(proxy)}` }, () => editor);
  assert.equal(await client.version(), "2.58.0");
  assert.deepEqual([asked[0]?.url, asked[0]?.headers["proxy-authorization"], through.length], ["/api/version", undefined, 0]);
  editor = false;
  assert.equal(await client.version(), "2.58.0");
  assert.deepEqual(through.map(({ what }) => what), [`GET http://0.0.0.0:${port(plain)}/api/version`]);
  editor = true;
  assert.equal(await client.version(), "2.58.0");
  assert.equal(through.length, 1);
  client.dispose();
});

test("what VS Code's agents say of a proxy is told without its login", () => {
  for (const said of ["PROXY me:hidden@proxy:3128", "HTTPS proxy:3128", "PROXY me:hid/d@en@proxy:3128", "http://me:hidden@proxy:3128/"]) assert.equal(namedProxy(said), "proxy:3128", said);
  for (const said of ["DIRECT", "", undefined]) assert.equal(namedProxy(said), null);
  for (const said of ["PROXY me:hidden@proxy:3128", "PROXY <credentials>@proxy:3128; DIRECT", "SOCKS proxy:3128"]) {
    const error = editorsProxyDown("http://head.test", new Error(`Failed to establish a socket connection to proxies: ${said}`));
    assert.ok(told("no-route", /^The proxy proxy:3128, over which http:\/\/head\.test would be reached, does not answer/)(error));
    assert.ok(!String((error?.cause as Error).message).includes("hidden"));
  }
  assert.equal(editorsProxyDown("http://head.test", new Error("socket hang up")), null);
});

test("NO_PROXY: names with all below, addresses, networks, ports; this machine never goes through a proxy", () => {
  const via = (address: string, list: string): boolean => proxyOf(new URL(address), { HTTP_PROXY: "proxy:3128", NO_PROXY: list }) !== null;
  for (const list of ["head.test", ".test", "*.test", "test", "other, HEAD.test:8265", "*", "a b head.test"]) assert.equal(via("http://head.test:8265", list), false, list);
  for (const list of ["", "ead.test", "head.test:80", "head", "test.head.test"]) assert.equal(via("http://head.test:8265", list), true, list);
  for (const list of ["10.1.2.3", "10.0.0.0/8", "10.1.2.3:8265", "10.1.2.2/31"]) assert.equal(via("http://10.1.2.3:8265", list), false, list);
  for (const list of ["10.1.2.4", "10.2.0.0/16", "2.3", "10.1.2.3/99", "::/0"]) assert.equal(via("http://10.1.2.3:8265", list), true, list);
  assert.equal(via("http://[fd00::1]:8265", "fd00::/8"), false);
  assert.equal(via("http://[fd00::1]:8265", "[fd00::1]"), false);
  for (const address of ["http://localhost:8265", "http://127.0.0.1:8265", "http://[::1]:8265"]) assert.equal(via(address, ""), false, address);
  assert.equal(proxyOf(new URL("https://head.test"), { HTTP_PROXY: "proxy:3128" }), null, "each protocol has its own");
  assert.equal(proxyOf(new URL("http://head.test"), { HTTP_PROXY: "upper:1", http_proxy: "lower:1" })?.host, "lower:1");
});
