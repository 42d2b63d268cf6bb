import assert from "node:assert/strict";
import * as vscode from "vscode";
import type { SeesawApi } from "../../../src/extension.ts";
import type { Host } from "../../../src/host/createHost.ts";
import type { DriftSession } from "../../../src/host/drift/driftSession.ts";
import type { StageNode } from "../../../src/host/stageNodes.ts";
import { emptySelection, type DriftSelection, type DriftSnapshot, type FromWebview, type ToWebview } from "../../../src/protocol/webview.ts";

export const extensionId = "seesaw.seesaw";

/** The installed extension. */
export function extension(): vscode.Extension<SeesawApi> {
  const found = vscode.extensions.getExtension<SeesawApi>(extensionId);
  assert.ok(found, `${extensionId} is not installed`);
  return found;
}

/** The extension, activated and done with its first look at the workspace. */
export async function seesaw(): Promise<{ api: SeesawApi; host: Host }> {
  const api = await extension().activate();
  assert.equal(api.failure, null);
  assert.ok(api.host);
  await api.host.ready;
  return { api, host: api.host };
}

/** The first workspace folder. */
export function folder(): string {
  const first = vscode.workspace.workspaceFolders?.[0];
  assert.ok(first, "no folder is open");
  return first.uri.fsPath;
}

/** Waits until `look` gives something other than null, undefined or false. */
export async function waitFor<T>(what: string, look: () => T | null | undefined | false, ms = 20_000): Promise<T> {
  const deadline = Date.now() + ms;
  for (;;) {
    const seen = look();
    if (seen !== null && seen !== undefined && seen !== false) return seen;
    if (Date.now() > deadline) throw new Error(`${what}: not within ${ms} ms`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** All nodes of the Stages tree, by their label and those of their parents: `cliff/math`. */
export function treeByPath(host: Host): Map<string, StageNode> {
  const byPath = new Map<string, StageNode>();
  const add = (nodes: readonly StageNode[], above: string): void => {
    for (const node of nodes) {
      byPath.set(`${above}${node.label}`, node);
      add(node.children, `${above}${node.label}/`);
    }
  };
  add(host.tree.getChildren(), "");
  return byPath;
}

/** A page that only knows messages: applies snapshots and patches as the real one does, and fails on a gap. */
export class FakePage {
  state: DriftSnapshot | null = null;
  readonly received: ToWebview[] = [];
  private seq = -1;
  private turn = 0;
  private readonly session: DriftSession;

  constructor(host: Host) {
    this.session = host.openDriftSession((message) => this.receive(message));
  }

  send(message: FromWebview): void {
    this.session.handle(structuredClone(message));
  }

  async ready(selection: Partial<DriftSelection> | null = null): Promise<DriftSnapshot> {
    this.turn = 0;
    this.send({ type: "ready", selection: selection === null ? null : { ...emptySelection, ...selection } });
    return this.settled();
  }

  async select(change: Partial<DriftSelection>): Promise<DriftSnapshot> {
    this.send({ type: "select", turn: ++this.turn, selection: { ...(this.state?.selection ?? emptySelection), ...change } });
    return this.settled();
  }

  settled(): Promise<DriftSnapshot> {
    return waitFor("the drift data", () => (this.state?.busy === false && this.state.turn === this.turn ? this.state : null));
  }

  close(): void {
    this.session.close();
  }

  private receive(message: ToWebview): void {
    const copy = JSON.parse(JSON.stringify(message)) as ToWebview;
    assert.deepEqual(copy, message, "a message must survive JSON: no undefined, NaN or typed arrays");
    this.received.push(copy);
    if (copy.type === "snapshot") this.state = copy.state;
    else {
      assert.equal(copy.seq, this.seq + 1, "a patch is missing");
      assert.ok(this.state);
      this.state = { ...this.state, ...copy.patch };
    }
    this.seq = copy.seq;
  }
}
