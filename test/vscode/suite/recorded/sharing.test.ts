import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as vscode from "vscode";
import { toolIds } from "../../../../src/ids.ts";
import { resolveSelection } from "../../../../src/host/drift/driftChoices.ts";
import { writeCsv, writeReport } from "../../../../src/host/sharing/exportCommands.ts";
import { formatLink } from "../../../../src/host/sharing/link.ts";
import { emptySelection } from "../../../../src/protocol/webview.ts";
import { AppError } from "../../../../src/util/errors.ts";
import { extension, seesaw } from "../support.ts";

async function ask(name: (typeof toolIds)[number], input: object): Promise<string> {
  const result = await vscode.lm.invokeTool(name, { input, toolInvocationToken: undefined });
  return result.content.map((part) => (part instanceof vscode.LanguageModelTextPart ? part.value : "")).join("");
}

describe("tools for agents", () => {
  before(seesaw);

  it("are known to the editor with the descriptions and schemas of the manifest", () => {
    const known = vscode.lm.tools.filter(({ name }) => name.startsWith("seesaw_"));
    assert.deepEqual(known.map(({ name }) => name).sort(), [...toolIds].sort());
    for (const { description, inputSchema } of known) assert.ok(description.length > 100 && inputSchema !== undefined);
  });

  it("list the recorded runs, with intervals and n", async () => {
    const { host } = await seesaw();
    const text = await ask("seesaw_listRuns", { pipeline: "seesaw.yaml" });
    const view = host.model.views().find(({ label }) => label === "seesaw.yaml");
    assert.ok(view !== undefined && view.listing.runs.length > 0);
    for (const { id } of view.listing.runs) assert.ok(text.includes(id), id);
    assert.match(text, /\d+\.\d % \(\d+\.\d–\d+\.\d %, n = 64\)/);
    assert.ok(text.length <= 12_000);
  });

  it("explain which tokens of the most drifted prompt fell, and compare two checkpoints", async () => {
    const text = await ask("seesaw_explainDrift", { pipeline: "seesaw.yaml", skill: "math", split: "id" });
    assert.match(text, /## math\.id, against M1 \(64 prompts\)/);
    assert.match(text, /token \d+ ".+" .*(lost|weakened): −\d/);
    const compared = await ask("seesaw_compareCheckpoints", { pipeline: "seesaw.yaml", before: "M1", after: "M3", skill: "math" });
    assert.match(compared, /\| math\.id \| \d+\.\d % \(.*n = 64\)/);
  });

  it("answer what cannot be done with a sentence", async () => {
    await assert.rejects(ask("seesaw_explainDrift", { skill: "maths" }), /no skill `maths`/);
    await assert.rejects(ask("seesaw_compareCheckpoints", { pipeline: "seesaw.yaml", before: "M1", after: "M1" }), /name two checkpoints/);
  });
});

describe("links", () => {
  it("open what they name, as VS Code hands them over", async () => {
    const { host } = await seesaw();
    const link = formatLink("vscode", extension().id, { pipeline: "seesaw.yaml", checkpoint: "M1", skill: "math", split: "ood", row: 5 });
    const opened = await host.links.open(vscode.Uri.parse(link));
    assert.deepEqual(opened, { selection: { pipeline: host.model.views().find(({ label }) => label === "seesaw.yaml")?.uri.fsPath, skill: "math", split: "ood", reference: "M1", row: 5, token: null } });
  });

  it("lead to nothing outside of the workspace, and to no row that is not there", async () => {
    const { host } = await seesaw();
    for (const [query, pattern] of [["pipeline=/etc/seesaw.yaml", /outside of this workspace/], ["pipeline=../seesaw.yaml", /outside of this workspace/], ["pipeline=seesaw.yaml&skill=math&row=5000", /no row 5000/], ["pipeline=seesaw.yaml&stage=math", /does not know/]] as const) {
      const opened = await host.links.open(vscode.Uri.parse(`vscode://${extension().id}/open?${query}`));
      assert.ok("refused" in opened);
      assert.match(opened.refused, pattern);
    }
  });

  it("are copied for what is shown, and open the same again", async () => {
    const { host } = await seesaw();
    await vscode.commands.executeCommand("seesaw.copyLink");
    const link = await vscode.env.clipboard.readText();
    assert.match(link, /:\/\/seesaw\.seesaw\/open\?pipeline=.*&skill=\w+&split=(id|ood)/);
    const opened = await host.links.open(vscode.Uri.parse(link));
    assert.ok("selection" in opened, JSON.stringify(opened));
  });
});

describe("exports", () => {
  it("write the report and the tokens of a probe set, and leave nothing else behind", async () => {
    const { host } = await seesaw();
    const pipeline = host.model.views().find(({ label }) => label === "seesaw.yaml")?.uri.fsPath ?? null;
    const { resolved } = resolveSelection(host.model.views(), { ...emptySelection, pipeline, skill: "math", split: "id" });
    assert.ok(resolved !== null);
    const dir = mkdtempSync(join(tmpdir(), "seesaw export "));
    await writeReport(host, resolved, join(dir, "report.html"));
    const page = readFileSync(join(dir, "report.html"), "utf8");
    assert.match(page, /<title>Seesaw report: cliff/);
    assert.doesNotMatch(page, /(src|href)="https?:/);
    await writeCsv(host, resolved, join(dir, "math.csv"));
    const lines = readFileSync(join(dir, "math.csv"), "utf8").split("\r\n");
    assert.match(lines[0] ?? "", /^\ufeffskill,split,checkpoint/);
    assert.ok(lines.length > 64 * 3 * 4, `${lines.length} lines`);
    assert.ok(lines.some((line) => line.startsWith("math,id,M2,search,M1,")));
    const abort = new AbortController();
    abort.abort();
    await assert.rejects(writeCsv(host, { ...resolved }, join(dir, "stopped.csv"), abort.signal), (error) => AppError.is(error, "cancelled"));
    assert.ok(!existsSync(join(dir, "stopped.csv")));
    assert.deepEqual(readdirSync(dir).sort(), ["math.csv", "report.html"]);
    rmSync(dir, { recursive: true });
  });

  it("draw what Token Drift shows as a PNG, twice as fine as the screen", async () => {
    const { host } = await seesaw();
    const pipeline = host.model.views().find(({ label }) => label === "seesaw.yaml")?.uri.fsPath ?? null;
    await host.drift.show({ pipeline, skill: "math", split: "id" });
    const { png, resolved } = await host.drift.picture();
    assert.equal(resolved.skill, "math");
    const bytes = Buffer.from(png);
    assert.equal(bytes.subarray(0, 8).toString("latin1"), "\x89PNG\r\n\x1a\n");
    const [width, height] = [bytes.readUInt32BE(16), bytes.readUInt32BE(20)];
    assert.equal(width, 2400);
    assert.ok(height > 1200, `${height} points high: chart and film are in it`);
    host.driftEditors.open({ pipeline, skill: "search", split: "id" });
    assert.equal((await host.driftEditors.active?.picture())?.resolved.skill, "search");
    await vscode.commands.executeCommand("workbench.action.closeActiveEditor");
  });
});
