import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import * as vscode from "vscode";
import { folder, seesaw, waitFor } from "../support.ts";

const file = (): string => join(folder(), "seesaw.yaml");
const servers: Server[] = [];
/** What the proxies were asked. */
const asked: string[] = [];

/** A proxy that answers everything with this status. */
async function proxy(status: number): Promise<string> {
  const server = createServer((request, response) => {
    asked.push(`${status} ${request.method} ${request.url} ${request.headers["proxy-authorization"] ?? ""}`.trim());
    response.writeHead(status).end("the proxy's own page");
  });
  servers.push(server);
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const set = async (name: string, value: unknown): Promise<void> => vscode.workspace.getConfiguration("http").update(name, value, vscode.ConfigurationTarget.Global);

/** What a check of a cluster says whose name only a proxy could know. */
async function check(): Promise<string> {
  const { host } = await seesaw();
  asked.length = 0;
  await host.targets.check(file(), "lab");
  const state = host.targets.state(file(), "lab");
  return state.kind === "checked" ? (state.report.problems[0]?.message ?? "no problem") : state.kind === "failed" ? state.message : state.kind;
}

describe("a Ray cluster behind the proxy of VS Code's settings", () => {
  before(async () => {
    const document = await vscode.workspace.openTextDocument(file());
    const edit = new vscode.WorkspaceEdit();
    edit.insert(document.uri, document.positionAt(document.getText().trimEnd().length), '\n  lab: { kind: ray, address: "http://head.test:8265", dir: ~/seesaw }\n');
    assert.ok((await vscode.workspace.applyEdit(edit)) && (await document.save()));
    const { host } = await seesaw();
    await waitFor("the new target", () => host.model.view(file())?.shown?.targets.some(({ id }) => id === "lab"));
  });
  after(async () => {
    for (const name of ["proxy", "noProxy", "proxySupport"]) await set(name, undefined);
    for (const server of servers) {
      server.closeAllConnections();
      server.close();
    }
  });

  it("http.proxy is asked, its refusals are told as the proxy's, and another one counts at once", async () => {
    assert.match(await check(), /The name in http:\/\/head\.test:8265 is not known here/);
    const [login, closed] = [await proxy(407), await proxy(403)];
    await set("proxy", `http://${login}`);
    assert.match(await check(), /asks for a login: .*`http\.proxy`/);
    assert.equal(asked[0], "407 GET http://head.test:8265/api/version");
    await set("proxy", `http://me:hidden@${closed}`);
    const said = await check();
    assert.ok(said.includes(`or the proxy ${closed} does not let you go there`) && !said.includes("hidden"), said);
    assert.equal(asked[0], `403 GET http://head.test:8265/api/version Basic ${Buffer.from("me:hidden").toString("base64")}`);
  });

  it("a proxy that is down is told as the proxy, without its password", async () => {
    await set("proxy", "http://me:hidden@127.0.0.1:9");
    const said = await check();
    assert.ok(said.includes("The proxy 127.0.0.1:9, over which http://head.test:8265 would be reached, does not answer") && !said.includes("hidden"), said);
  });

  it("http.noProxy goes past it, and so does http.proxySupport off", async () => {
    const open = await proxy(403);
    await set("proxy", `http://${open}`);
    assert.match(await check(), /does not let you go there/);
    await set("noProxy", ["head.test"]);
    assert.match(await check(), /is not known here/);
    await set("noProxy", undefined);
    await set("proxySupport", "off");
    assert.match(await check(), /is not known here/);
    assert.deepEqual(asked, []);
    for (const support of ["on", "fallback"]) {
      await set("proxySupport", support);
      assert.match(await check(), /does not let you go there/, support);
    }
  });
});
