import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readScores } from "../../../src/cli/chainData.ts";
import { driftOfSet, probeSets } from "../../../src/domain/report/scoredChain.ts";
import { createServices, type Services } from "../../../src/services.ts";
import { loadPipeline, requirePipeline } from "../../../src/targets/pipelineFile.ts";
import { runnerArchive } from "../../../src/targets/remote/runnerArchive.ts";
import { leave, repo, sleep, stateDir } from "./leftovers.ts";
import { sampleStages, writeSample } from "./sampleFile.ts";

/**
 * The sample chain as it comes out on this machine, for the targets' to be held against. Trained once: the parts of
 * `npm run test:targets` share it (which removes it before it begins), as long as runner and pipeline are the same.
 */
export async function localChain(python: string): Promise<string> {
  const folder = join(stateDir, "local-chain");
  mkdirSync(folder, { recursive: true });
  const root = join(folder, randomBytes(6).toString("hex"));
  mkdirSync(join(root, ".git"), { recursive: true });
  const text = writeSample(root, { kind: "local", python });
  const { version } = await runnerArchive(join(repo, "runner"));
  const pointer = join(folder, `${createHash("sha256").update(`${version}\n${text}`).digest("hex").slice(0, 16)}.json`);
  if (existsSync(pointer)) {
    const known = (JSON.parse(readFileSync(pointer, "utf8")) as { root: string }).root;
    if (existsSync(known)) {
      rmSync(root, { recursive: true });
      return known;
    }
  }
  cpSync(join(repo, "media/sample/models/m0"), join(root, "m0"), { recursive: true });
  const forget = leave({ kind: "runs", dir: join(root, ".seesaw") });
  const services = quietServices(root);
  try {
    const loaded = await loadPipeline(join(root, "seesaw.yaml"));
    for (const stage of sampleStages) {
      const { id } = await services.launcher.startStage(requirePipeline(loaded), loaded.diagnostics, stage, { trusted: true });
      const deadline = Date.now() + 300_000;
      for (;;) {
        const run = (await services.runs.list(root)).runs.find((one) => one.id === id);
        if (run?.state.status === "done") break;
        const reason = run?.state.reason ?? null;
        assert.ok(reason === null && Date.now() < deadline, `${stage} on this machine: ${JSON.stringify(reason ?? run?.state.status)}\n${readFileSync(join(root, ".seesaw/runs", id, "out.log"), "utf8").slice(-2000)}`);
        await sleep(200);
      }
    }
  } finally {
    services.dispose();
    await forget();
  }
  writeFileSync(pointer, JSON.stringify({ root })); // last: a chain that was broken off is nobody's
  return root;
}

/** One probe prompt at every checkpoint. */
export interface ScoredProbe {
  prompt: string;
  cells: { label: string; nll: number | null; correct: boolean | null }[];
}

/** What `seesaw drift` and Token Drift read of a workspace: the chain, and every probe's score at every checkpoint of it. */
export async function scoresOf(root: string, services: Services = quietServices(root)): Promise<{ checkpoints: string[]; probes: ScoredProbe[] }> {
  try {
    const data = await readScores(services, requirePipeline(await loadPipeline(join(root, "seesaw.yaml"))));
    const probes = probeSets(data.pipeline).flatMap((set) => {
      const { table, notes } = driftOfSet(data, set, "M0");
      assert.deepEqual(notes, [], `${set.skill}.${set.split}`);
      return table.rows.map((row) => ({ prompt: `${set.skill}.${set.split}:${row.line}`, cells: row.cells.map(({ label, nll, correct }) => ({ label, nll, correct })) }));
    });
    return { checkpoints: data.chain.checkpoints.map(({ label, stage, status }) => `${label} ${stage ?? "base"} ${status}`), probes: probes.sort((a, b) => (a.prompt < b.prompt ? -1 : 1)) };
  } finally {
    services.dispose();
  }
}

function quietServices(root: string): Services {
  const quiet = (): void => {};
  return createServices({ log: { debug: quiet, info: quiet, warn: quiet, error: quiet }, extensionDir: repo, storageDir: join(root, ".storage") });
}
