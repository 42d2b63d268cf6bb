import { cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { fileURLToPath } from "node:url";
import { parsePipeline } from "../../../../src/domain/pipeline/pipeline.ts";
import { buildChain } from "../../../../src/domain/run/chain.ts";
import type { RowHost } from "../../../../src/host/rows/rowSurfaces.ts";
import type { LineSource } from "../../../../src/host/rows/rowReader.ts";
import type { PipelineView } from "../../../../src/host/workspaceModel.ts";
import { LedgerReader } from "../../../../src/storage/runs/ledgers.ts";
import { FolderRunStore } from "../../../../src/storage/runs/folderRunStore.ts";
import { loadSqlite } from "../../../../src/storage/sqliteDriver.ts";
import { SqliteTraceStore } from "../../../../src/storage/traces/sqliteTraceStore.ts";
import { silentLog } from "../../../../src/util/log.ts";
import { recordRuns } from "../../../vscode/recordRuns.ts";

export const sample = fileURLToPath(new URL("../../../../media/sample", import.meta.url));

export interface Recorded {
  root: string;
  views: PipelineView[];
  host: RowHost;
  file(name: string): string;
}

/** The sample's replay pipeline with recorded runs of three stages, read by the real stores. `edit`: changes its data first. */
export async function recorded(edit: (root: string) => void = () => {}): Promise<Recorded> {
  const root = mkdtempSync(join(tmpdir(), "seesaw-rows-"));
  after(() => rmSync(root, { recursive: true, force: true }));
  cpSync(join(sample, "data"), join(root, "data"), { recursive: true });
  cpSync(join(sample, "replay"), join(root, "replay"), { recursive: true, filter: (source) => !source.includes(".seesaw") });
  edit(root);
  recordRuns({ root: join(root, "replay"), stages: ["math", "search", "tool"] });
  const file = join(root, "replay", "seesaw.yaml");
  const { pipeline, diagnostics } = parsePipeline(readFileSync(file, "utf8"), file);
  if (pipeline === null) throw new Error(JSON.stringify(diagnostics));
  const runs = new FolderRunStore();
  const listing = await runs.list(join(root, "replay"));
  runs.dispose();
  const view = { uri: { fsPath: file } as PipelineView["uri"], label: "replay/seesaw.yaml", pipeline, shown: pipeline, diagnostics, listing, chain: buildChain(pipeline, listing.runs) };
  const views = [view];
  const ledgers = new LedgerReader();
  const traces = new SqliteTraceStore(await loadSqlite());
  return { root, views, host: { views: () => views, traces: () => Promise.resolve(traces), ledgers: (folders) => ledgers.read(folders), log: silentLog }, file: (name) => join(root, "data", name) };
}

/** A document as VS Code cuts one: at LF, CRLF and CR, with the byte order mark taken off. */
export class FakeDocument implements LineSource {
  readonly fileName: string;
  version = 1;
  lines: string[];

  constructor(fileName: string, text: string) {
    this.fileName = fileName;
    this.lines = text.replace(/^\ufeff/, "").split(/\r\n|\r|\n/);
  }

  get lineCount(): number {
    return this.lines.length;
  }

  lineAt(line: number): { text: string } {
    return { text: this.lines[line] ?? "" };
  }

  /** Replaces a line, as an edit does. */
  edit(line: number, text: string): void {
    this.lines[line] = text;
    this.version++;
  }
}
