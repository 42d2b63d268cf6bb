import assert from "node:assert/strict";
import { test } from "node:test";
import { acrossNodes, arrayListText, batchScript, graceSeconds, jobName, onEachNode, refusalIn, sbatchArgv, sbatchOptions, type BatchJob } from "../../../../src/targets/remote/slurm/batchScript.ts";
import { taskRef } from "../../../../src/targets/remote/arrayKin.ts";
import { idAmong, markedOf, markOf } from "../../../../src/targets/remote/slurm/jobMark.ts";
import { isUnknownJob, slurmError, type ProgramEnd } from "../../../../src/targets/remote/slurm/slurmErrors.ts";
import { parseSqueue } from "../../../../src/targets/remote/slurm/slurmText.ts";
import { run } from "../../../../src/targets/spawn.ts";
import { AppError } from "../../../../src/util/errors.ts";
import { reachOf } from "../../../../src/targets/remote/reachError.ts";

const job: BatchJob = { run: "math-20260101T000000-abcd", attempt: 3, nonce: "3f8a", dir: "/s/runs/math-20260101T000000-abcd", runner: "/s/runner/0123", python: "/s/envs/trl/bin/python", resources: {} };
const withResources = (resources: BatchJob["resources"]): BatchJob => ({ ...job, resources });

test("the script hands over to the runner; what nobody asked for is not said", () => {
  assert.equal(
    batchScript(job),
    `#!/bin/sh
# Made by Seesaw for math-20260101T000000-abcd, attempt 3. To submit it by hand: sbatch /s/runs/math-20260101T000000-abcd/attempt-0003/job.sh
#SBATCH --ntasks-per-node=1
#SBATCH --requeue
#SBATCH --signal=B:USR1@120
#SBATCH --open-mode=append
#SBATCH --chdir=/s/runs/math-20260101T000000-abcd
#SBATCH --output=/s/runs/math-20260101T000000-abcd/slurm-%j.out
#SBATCH --job-name=seesaw-math-20260101T000000-abcd-3
#SBATCH --comment=3f8a
/s/envs/trl/bin/python -c 'import sys; sys.exit(sys.version_info < (3, 8))' || {
  echo "seesaw job: nothing was started: On \${SLURMD_NODENAME:-$(hostname)}"', /s/envs/trl/bin/python cannot be started, or is older than Python 3.8. Make Python 3.10 or newer with torch, transformers, trl, peft, accelerate, datasets, safetensors available there, or name another with \`python:\` of this target.'
  exit 3
}
exec /s/envs/trl/bin/python -u /s/runner/0123/seesaw_runner/slurm_job.py /s/runs/math-20260101T000000-abcd 3
`,
  );
  assert.deepEqual(sbatchArgv(job).slice(0, 3), ["sbatch", "--parsable", "--ntasks-per-node=1"]);
  assert.equal(sbatchArgv(job).at(-1), "/s/runs/math-20260101T000000-abcd/attempt-0003/job.sh");
  assert.equal(jobName("a-1", 2), "seesaw-a-1-2");
});

test("an array is one script for all its runs; which task is which is in a file, never in the script", () => {
  const array = { dir: "/s/arrays/77aa", name: "seesaw-math-array-77aa", nonce: "77aa", runs: ["/s/runs/math-1", "/s/runs/math-2", "/s/runs/math-3"], limit: 2 };
  assert.equal(
    batchScript({ ...job, array }).replace(/^\/s\/envs.* -c [\s\S]*^}\n/m, ""),
    `#!/bin/sh
# Made by Seesaw for 3 runs: which task is which, /s/arrays/77aa/runs.json says. To submit it by hand: sbatch /s/arrays/77aa/job.sh
#SBATCH --ntasks-per-node=1
#SBATCH --array=0-2%2
#SBATCH --requeue
#SBATCH --signal=B:USR1@120
#SBATCH --open-mode=append
#SBATCH --chdir=/s/arrays/77aa
#SBATCH --output=/s/arrays/77aa/slurm-%A_%a.out
#SBATCH --job-name=seesaw-math-array-77aa
#SBATCH --comment=77aa
exec /s/envs/trl/bin/python -u /s/runner/0123/seesaw_runner/slurm_job.py --array /s/arrays/77aa/runs.json 3
`,
  );
  assert.ok(sbatchArgv({ ...job, array }).includes("--array=0-2%2") && sbatchArgv({ ...job, array: { ...array, limit: null } }).includes("--array=0-2"));
  assert.deepEqual(JSON.parse(arrayListText(array)), { v: 1, runs: array.runs });
  assert.throws(() => arrayListText({ runs: ["/s/../etc"] }), (error) => AppError.is(error, "bad-input"));
});

test("a task is known again by name, comment and number; one of the array vouches for the others", () => {
  const mark = { name: "n", comment: "77aa", task: 3 };
  const jobs = parseSqueue("9|9_3|RUNNING|None|n1|other\n12|11_3|RUNNING|None|n1|77aa\n11|11_13|PENDING|Priority||77aa\n");
  assert.equal(markedOf(jobs, mark)?.id, "12");
  assert.equal(markedOf(jobs, { ...mark, task: 1 }), null, "13 is not 1 or 3");
  assert.equal(markedOf(jobs, { ...mark, task: 13 })?.task, "11_13");
  assert.equal(idAmong(jobs, { ...mark, task: 1 }), "11_1", "cancelled while it waited: the array was taken all the same");
  assert.equal(idAmong(parseSqueue("2|2|CANCELLED|JobHeldUser||77aa\n"), mark), "2_3", "what Slurm leaves of an array whose tasks were all cancelled");
  assert.equal(idAmong(jobs, { ...mark, comment: "88" }), null);
  assert.equal(idAmong(parseSqueue("5|5|RUNNING|None|n1|77aa\n"), { ...mark, task: null }), "5");
  const remote = { dir: "/s/runs/math-1" };
  assert.deepEqual(markOf(remote, { attempt: 1, nonce: "77aa_3", array: { name: "n", nonce: "77aa", task: 3 } }), mark);
  assert.deepEqual(markOf(remote, { attempt: 2, nonce: "ff" }), { name: "seesaw-math-1-2", comment: "ff", task: null }, "an attempt after it is a job of its own");
  assert.deepEqual(taskRef({ id: "11_0" }, { nonce: "77aa_3", array: { name: "n", nonce: "77aa", task: 3 } }), { id: "11_3", nonce: "77aa_3" });
  assert.deepEqual(taskRef({ id: "11" }, { nonce: "77aa_0", array: { name: "n", nonce: "77aa", task: 0 } }), { id: "11_0", nonce: "77aa_0" });
  const gone: ProgramEnd = { program: "scontrol", code: 1, signal: null, stdout: "Job 11_3 not found\n", stderr: "", timedOut: false };
  assert.ok(isUnknownJob(gone) && !isUnknownJob({ ...gone, stdout: "", stderr: "Unable to contact slurm controller" }), "scontrol says it of a task on its output");
});

test("every resource is one word; the person's own come first, so that ours decide", () => {
  const options = sbatchOptions(withResources({ partition: "gpu,big", account: "me@lab", qos: "high", constraint: "a100|h100", gpus: 4, nodes: 2, cpus: 8, memory: "32G", time: "2-04:00:00", requeue: false, warn_s: 300, args: ["--mail-type=END", "--mail-user=a b@c"] }));
  assert.deepEqual(options.slice(0, 16), [
    "--mail-type=END", "--mail-user=a b@c", "--partition=gpu,big", "--account=me@lab", "--qos=high", "--constraint=a100|h100", "--nodes=2", "--ntasks-per-node=1",
    "--cpus-per-task=8", "--gres=gpu:4", "--mem=32G", "--time=2-04:00:00", "--no-requeue", "--signal=B:USR1@300", "--open-mode=append", `--chdir=${job.dir}`,
  ]);
  assert.ok(!sbatchOptions(withResources({ gpus: 0 })).some((word) => word.startsWith("--gres")), "no GPU asks for none");
});

test("what a shell, sbatch or Seesaw itself would misread is refused by name", () => {
  const refused = (resources: BatchJob["resources"], pattern: RegExp): void => {
    assert.throws(() => batchScript(withResources(resources)), (error) => AppError.is(error, "bad-input") && pattern.test(error.message), JSON.stringify(resources));
  };
  refused({ partition: "gpu; rm -rf ~" }, /--partition/);
  refused({ account: "$(id)" }, /--account/);
  refused({ qos: "a\nb" }, /--qos/);
  refused({ constraint: "'a'" }, /--constraint/);
  refused({ partition: "-evil" }, /--partition/);
  refused({ args: ["rm"] }, /no option of sbatch/);
  refused({ args: ["--exclude=n1\n#SBATCH --wrap=x"] }, /no option of sbatch/);
  for (const word of ["--comment=x", "--comm=x", "--wrap=x", "--array=1-3", "--job-name=x", "--parsable", "--test-only", "--clusters=all"]) refused({ args: [word] }, /remove it/);
  assert.ok(sbatchOptions(withResources({ args: ["--exclude=n1", "--wait-all-nodes=1", "--gpu-bind=closest"] })).includes("--wait-all-nodes=1"));
  for (const bad of [{ dir: "/s/a b" }, { dir: "/s/../x" }, { dir: "s" }, { runner: "/s/$x" }, { python: "/s/p;x" }, { dir: "/s/%j" }]) {
    assert.throws(() => batchScript({ ...job, ...bad }), (error) => AppError.is(error, "bad-input"), JSON.stringify(bad));
  }
  assert.match(batchScript({ ...job, python: "python3" }), /^exec python3 -u /m);
  assert.ok(!batchScript(withResources({ args: ["--mail-user=#x", '--exclude="n1"'] })).includes("#x"), "what the script could not quote is only said to sbatch itself");
});

test("a machine without the Python says so in the job's own output, and that is found there", async () => {
  const tried = async (python: string): Promise<{ code: number | null; said: string | null }> => {
    const { code, stdout, stderr } = await run(["/bin/sh", "-c", batchScript({ ...job, python })], { env: { ...process.env, SLURMD_NODENAME: "n7" }, timeout: 60_000 });
    return { code, said: refusalIn(`${stderr}\n${stdout}`) };
  };
  const none = await tried("/no/such/python");
  assert.equal(none.code, 3);
  assert.match(none.said ?? "", /^On n7, \/no\/such\/python cannot be started, or is older than Python 3\.8\. .*`python:` of this target\.$/);
  assert.equal(refusalIn("seesaw job: started again by Slurm: attempt 2.\nseesaw job: nothing was started: \n"), null);
  assert.deepEqual(onEachNode(["/p", "-m", "x"], { cpus: 2 }), ["/p", "-m", "x"]);
  assert.deepEqual(onEachNode(["/p", "-m", "x"], { nodes: 3 }).slice(-4), ["--mpi=none", "/p", "-m", "x"]);
});

test("several nodes: torchrun on each, meeting on the first; anything else is left alone", () => {
  const argv = ["/p", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "4", "-m", "seesaw_runner.recipes.sft", "/s/run"];
  assert.deepEqual(acrossNodes(argv, { kind: "torchrun", processes: 4 }, { nodes: 2, cpus: 8 }), [
    "srun", "--nodes=2", "--ntasks=2", "--ntasks-per-node=1", "--cpus-per-task=8", "--kill-on-bad-exit=1", "--mpi=none",
    "/p", "-m", "torch.distributed.run", "--nnodes=2", "--rdzv-backend=c10d", "--nproc-per-node", "4", "-m", "seesaw_runner.recipes.sft", "/s/run",
  ]);
  assert.deepEqual(acrossNodes(argv, { kind: "torchrun", processes: 4 }, {}), argv);
  assert.deepEqual(acrossNodes(["/p", "-m", "x"], { kind: "python", processes: 1 }, { nodes: 2 }), ["/p", "-m", "x"]);
  assert.equal(graceSeconds({}, 20), 105);
  assert.equal(graceSeconds({ warn_s: 10 }, 20), 20);
});

test("what Slurm printed becomes a sentence with the fix, or a reach that may come back", () => {
  const end = (stderr: string, more: Partial<ProgramEnd> = {}): ProgramEnd => ({ program: "sbatch", code: 1, signal: null, stdout: "", stderr, timedOut: false, ...more });
  const refusal = (stderr: string): string => {
    const error = slurmError("login1", end(stderr), { partition: "nope", account: "nobody", qos: "q", constraint: "a100", partitions: ["low", "high"] });
    assert.equal(error.reason, "bad-input", stderr);
    return error.message;
  };
  assert.match(refusal("sbatch: error: invalid partition specified: nope\nsbatch: error: Batch job submission failed: Invalid partition name specified\n"), /no partition `nope`: it has low, high/);
  assert.match(refusal("sbatch: error: Batch job submission failed: Requested node configuration is not available\n"), /No node on login1 has .* Slurm says: Requested node configuration is not available/);
  assert.match(refusal("sbatch: error: Invalid generic resource (gres) specification"), /No node on login1/);
  assert.match(refusal("sbatch: error: Memory specification can not be satisfied\nsbatch: error: Batch job submission failed: Requested node configuration is not available\n"), /lower gpus, cpus, memory or nodes/);
  assert.match(refusal("sbatch: error: Batch job submission failed: Invalid feature specification"), /features `a100`/);
  assert.match(refusal("sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified"), /account `nobody`/);
  assert.match(refusal("sbatch: error: Batch job submission failed: Invalid qos specification"), /quality of service `q`/);
  assert.match(refusal("sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"), /A limit of your account/);
  assert.match(refusal("sbatch: error: Batch job submission failed: Requested time limit is invalid (missing or exceeds some limit)"), /resources.time/);
  assert.match(refusal("sbatch: error: Batch job submission failed: User's group not permitted to use this partition"), /ask for the right/);
  assert.match(refusal("sbatch: unrecognized option '--bogus'\nTry \"sbatch --help\" for more information\n"), /resources.args.*--bogus'$/);
  assert.match(refusal("sbatch: error: something new"), /did not take the job \(exit code 1\): something new/);
  const down = ["Batch job submission failed: Unable to contact slurm controller (connect failure)", "Munge encode failed: Failed to access\nsbatch: error: Batch job submission failed: Protocol authentication error", "Batch job submission failed: Socket timed out on send/recv operation"];
  for (const text of down) assert.equal(reachOf(slurmError("login1", end(`sbatch: error: ${text}`))), "no-scheduler", text);
  assert.equal(reachOf(slurmError("login1", end("", { code: null, signal: "SIGKILL", timedOut: true }))), "no-scheduler");
});
