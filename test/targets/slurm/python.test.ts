import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { after, before } from "node:test";
import { reasonText } from "../../../src/domain/run/reasonText.ts";
import { run } from "../../../src/targets/spawn.ts";
import { fault, type FaultCase } from "../shared/fault.ts";
import { Lab, python } from "../shared/lab.ts";
import { SlurmCluster } from "./cluster.ts";

// At one path the machine that has sbatch, where a stage is checked before it is submitted, and node n1 have a good Python;
// node n2 has another one there, or none: what only the job itself can tell.
let cluster: SlurmCluster;
/** The target's Python, and the folder of its packages. */
let own: { python: string; packages: string };
before(async () => {
  cluster = await SlurmCluster.start();
  const env = join(cluster.dir, "env");
  const ok = async (...argv: string[]): Promise<string> => {
    const { code, stdout, stderr } = await run(argv, { timeout: 120_000 });
    assert.equal(code, 0, stderr);
    return stdout.trim();
  };
  await ok(python, "-m", "venv", "--without-pip", "--copies", env);
  const where = ["-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"];
  own = { python: join(env, "bin/python"), packages: await ok(join(env, "bin/python"), ...where) };
  writeFileSync(join(own.packages, "ours.pth"), `${await ok(python, ...where)}\n`);
});
after(() => cluster.stop());

/** A stage on n2, where `over` covers what this machine has. */
async function onOther(over: Record<string, string>, body: (lab: Lab, id: string) => Promise<void>, resources: object = { partition: "short" }, stage: Record<string, unknown> = {}): Promise<void> {
  await cluster.end("slurmd-n2");
  await cluster.startNode("n2", over);
  const lab = Lab.open({ kind: "slurm", python: own.python, resources }, { stage });
  try {
    await cluster.clear();
    const { id } = await lab.start();
    await lab.window();
    await body(lab, id);
    assert.deepEqual(lab.there(id).starts(), [], "nothing was started");
  } finally {
    await cluster.clear();
    await lab.close();
  }
}

async function failsWith({ judge }: FaultCase, over: Record<string, string>, sentence: RegExp, expected: { attempts?: number; compare?: boolean } = {}): Promise<void> {
  await onOther(over, async (lab, id) => {
    const { state } = await judge(lab, id, { status: "failed", ...expected });
    assert.equal(state.reason?.kind === "failed" && state.reason.code, "preflight");
    assert.match(reasonText(state.reason), sentence);
  });
}

const emptyFolder = (): string => {
  const folder = join(cluster.dir, "empty");
  mkdirSync(folder, { recursive: true });
  return folder;
};

fault("slurm", "node without the packages that the login node has", async (the) => {
  const empty = emptyFolder();
  await failsWith(the, { [own.packages]: empty }, /^It failed \(preflight\): On n2, \S+\/env\/bin\/python \(Python [\d.]+\) lacks torch, .*\. Run `\S+\/env\/bin\/python -m pip install 'torch>=\S+' .*` there, or name another Python with `python:` of this target\.$/);
  // The very same Python on the node that has what it needs.
  const lab = Lab.open({ kind: "slurm", python: own.python, resources: { partition: "low", args: ["--nodelist=n1"] } });
  try {
    const { id } = await lab.start({ steps: 5 });
    await lab.window();
    await the.judge(lab, id, { status: "done", step: 5 });
  } finally {
    await cluster.clear();
    await lab.close();
  }
});

fault("slurm", "second node of a job without the packages of the first", async ({ judge }) => {
  await onOther({ [own.packages]: emptyFolder() }, async (lab, id) => {
    const { state } = await judge(lab, id, { status: "failed" });
    assert.match(reasonText(state.reason), /^It failed \(preflight\): On n2, \S+ \(Python [\d.]+\) lacks torch, [^.]+\. [^]*`python:` of this target\.$/);
  }, { partition: "low", nodes: 2 }, { launch: { kind: "torchrun", processes: 1 } });
});

const versions = join(homedir(), ".pyenv/versions");
const old = existsSync(versions) ? readdirSync(versions).find((name) => /^3\.[89]\./.test(name)) : undefined;

fault("slurm", "node with an old Python", async (the) => {
  const program = join(cluster.dir, "old-python");
  writeFileSync(program, `#!/bin/sh\nexec ${versions}/${old}/bin/python3 "$@"\n`);
  chmodSync(program, 0o755);
  await failsWith(the, { [own.python]: program }, /^It failed \(preflight\): On n2, \S+ is Python 3\.[89]\.\d+, but 3\.10 or newer is needed: name another Python with `python:` of this target\.$/);
}, { skip: old === undefined ? `no Python 3.8 or 3.9 below ${versions}` : null });

fault("slurm", "node without that Python", async (the) => {
  await failsWith(the, { [own.python]: "/dev/null" }, /^It failed \(preflight\): On n2, \S+\/env\/bin\/python cannot be started, or is older than Python 3\.8\. Make Python 3\.10 or newer with torch, .* available there, or name another with `python:` of this target\.$/, { attempts: 0, compare: false });
});
