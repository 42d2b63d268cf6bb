import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as vscode from "vscode";
import { FlagNotices } from "../../../../src/host/flags/flagNotices.ts";
import { webhookSecret } from "../../../../src/host/flags/webhookSecret.ts";
import type { WorkspaceModel } from "../../../../src/host/workspaceModel.ts";
import { emptyRunState } from "../../../../src/domain/run/reduceRun.ts";
import type { FlagRecord, RunState } from "../../../../src/domain/run/runState.ts";
import { folder, seesaw, waitFor } from "../support.ts";

/** What is told outside the views, with the editor's own settings and a real server. The runs are made up: one that is live here would be a process. */
describe("notices of flags", () => {
  const changed = new vscode.EventEmitter<void>();
  const told: { body: Record<string, unknown> }[] = [];
  const warnings: string[] = [];
  let server: Server;
  let root: string;
  let state: RunState;
  const flag = (step: number, which: FlagRecord["state"]): FlagRecord => ({ id: "math.id", skill: "math", split: "id", step, state: which, value: 7, lower: 3, threshold: 2, noise: 0, level: 0.01, n: 64, seq: step, t: step, attempt: 1 });
  const setting = (key: string, value: unknown) => vscode.workspace.getConfiguration("seesaw").update(key, value, vscode.ConfigurationTarget.Global);
  const model = (): WorkspaceModel => ({
    onDidChange: changed.event,
    views: () => [{ uri: vscode.Uri.file(join(folder(), "seesaw.yaml")), listing: { runs: [{ id: "search-1", stage: "search", dir: join(root, ".seesaw", "runs", "search-1"), state, spec: {} }], unreadable: [] } }],
  }) as unknown as WorkspaceModel;
  const secrets = { get: (key: string) => Promise.resolve(key === webhookSecret("hook") ? `http://127.0.0.1:${(server.address() as AddressInfo).port}/x` : undefined) } as unknown as vscode.SecretStorage;
  const log = { debug: () => {}, info: () => {}, warn: (text: string) => void warnings.push(text), error: (text: string) => void warnings.push(text) };
  const windows: FlagNotices[] = [];
  const open = (): FlagNotices => {
    const window = new FlagNotices(model(), secrets, log);
    windows.push(window);
    return window;
  };
  /** The runs changed; gives what was set going a moment to arrive where it should not. */
  const change = async (to: Partial<RunState>): Promise<void> => {
    state = { ...state, ...to };
    changed.fire();
    await new Promise((resolve) => setTimeout(resolve, 300));
  };

  before(async () => {
    await seesaw();
    root = mkdtempSync(join(tmpdir(), "seesaw-notices-"));
    server = createServer((request, response) => {
      let body = "";
      request.on("data", (part: Buffer) => (body += part.toString()));
      request.on("end", () => {
        told.push({ body: JSON.parse(body) as Record<string, unknown> });
        response.writeHead(200).end();
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  });
  beforeEach(() => {
    state = { ...emptyRunState(), status: "running" };
    told.length = 0;
    rmSync(join(root, ".seesaw"), { recursive: true, force: true });
  });
  afterEach(async () => {
    for (const window of windows.splice(0)) window.dispose();
    await setting("flags.webhook", undefined);
    await setting("flags.notify", undefined);
  });
  after(() => {
    server.close();
    rmSync(root, { recursive: true, force: true });
  });

  it("are off by default: nothing is sent, and nothing is written", async () => {
    open();
    await change({ flagHistory: [flag(20, "drifting"), flag(20, "confirmed")] });
    assert.deepEqual([told, existsSync(join(root, ".seesaw"))], [[], false]);
  });

  it("tell a webhook once of a confirmed loss and of its recovery, whatever number of windows there are", async () => {
    await setting("flags.webhook", "hook");
    open();
    open();
    await change({ flagHistory: [flag(20, "drifting")] });
    assert.equal(told.length, 0, "a warning alone is not told");
    await change({ flagHistory: [flag(20, "drifting"), flag(20, "confirmed")] });
    await waitFor("the webhook", () => told.length === 1);
    await change({ step: 30 });
    await change({ status: "done", flagHistory: [flag(20, "drifting"), flag(20, "confirmed"), flag(40, "recovered")] });
    await waitFor("the recovery", () => told.length === 2);
    assert.deepEqual(told.map(({ body }) => [body["run"], body["stage"], body["skill"], body["state"], body["step"]]), [["search-1", "search", "math", "confirmed", 20], ["search-1", "search", "math", "recovered", 40]]);
    open();
    await change({ step: 50 });
    assert.equal(told.length, 2, "a window that opens later has no old news");
  });

  it("say in the log that a webhook has no address, and show at most one message a run", async () => {
    await setting("flags.webhook", "other");
    await setting("flags.notify", true);
    const window = open();
    await change({ flagHistory: [flag(20, "confirmed")] });
    await waitFor("the log", () => warnings.some((text) => /The webhook "other" was not told of search-1\.math\.id\.confirmed\.20\. It has no address yet\./.test(text)));
    await waitFor("the message", () => window.hasTold(join(root, ".seesaw", "runs", "search-1")));
    const second = open();
    await change({ step: 40 });
    assert.equal(second.hasTold(join(root, ".seesaw", "runs", "search-1")), false, "another window said it");
    assert.equal(told.length, 0);
    await vscode.commands.executeCommand("notifications.clearAll");
  });
});
