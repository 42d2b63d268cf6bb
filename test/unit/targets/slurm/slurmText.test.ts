import assert from "node:assert/strict";
import { test } from "node:test";
import { parsePartitions, parseSacct, parseScontrol, parseSqueue, submittedId, wordOf, type SlurmJob } from "../../../../src/targets/remote/slurm/slurmText.ts";

// What Slurm 22.05.8 printed; the shapes are the same in 20.11 to 24.05.
const pending =
  "JobId=1 JobName=a b=c UserId=root(0) GroupId=root(0) MCS_label=N/A Priority=4294901759 Nice=0 Account=(null) QOS=(null) JobState=PENDING Reason=BeginTime Dependency=(null) Requeue=1 Restarts=1 BatchFlag=1 Reboot=0 ExitCode=0:0 RunTime=00:00:00 TimeLimit=365-00:00:00 TimeMin=N/A SubmitTime=2026-11-30T16:10:26 EligibleTime=2026-11-30T16:12:27 StartTime=2026-11-30T16:12:27 Partition=low ReqNodeList=(null) ExcNodeList=(null) NodeList= NumNodes=1 NumCPUs=1 TRES=cpu=1,node=1,billing=1 Features=(null) Command=(null) WorkDir=/tmp Comment=abc|d=e f  StdErr=/dev/null StdIn=/dev/null StdOut=/dev/null Power= TresPerNode=gres:gpu:2 ";
const failed =
  "JobId=11 ArrayJobId=9 ArrayTaskId=1 JobName=x UserId=me(1000) JobState=FAILED Reason=NonZeroExitCode Dependency=(null) Requeue=1 Restarts=0 BatchFlag=1 ExitCode=0:9 DerivedExitCode=1:0 NodeList=n[1-2] BatchHost=n1 Comment=3f8a StdErr=/x StdOut=/x";

test("scontrol: state, reason, restarts, nodes, exit by signal, and a comment with blanks and separators", () => {
  assert.deepEqual(parseScontrol(`${pending}\n`), [{ id: "1", task: null, state: "PENDING", reason: "BeginTime", nodes: null, comment: "abc|d=e f", restarts: 1, exit: { code: 0, signal: 0 } }]);
  const [job] = parseScontrol(failed);
  assert.deepEqual(job, { id: "11", task: "9_1", state: "FAILED", reason: "NonZeroExitCode", nodes: "n[1-2]", comment: "3f8a", restarts: 0, exit: { code: 0, signal: 9 } });
  assert.equal(parseScontrol(`${failed}\n${pending}\n`).length, 2, "one line for each task of an array");
  assert.deepEqual(parseScontrol("No jobs in the system\n"), []);
  assert.deepEqual(parseScontrol("JobId=2 JobName=x JobState=RUNNING NodeList=(null) Comment=(null)")[0]?.comment, "", "no comment is not the word (null)");
});

test("squeue and sbatch: the id among whatever a site prints", () => {
  assert.deepEqual(parseSqueue("1|1|PENDING|BeginTime||abc|d=e f\n21|20_1|RUNNING|None|n1|(null)\nwelcome | to | here\n"), [
    { id: "1", task: null, state: "PENDING", reason: "BeginTime", nodes: null, comment: "abc|d=e f", restarts: null, exit: null },
    { id: "21", task: "20_1", state: "RUNNING", reason: null, nodes: "n1", comment: "", restarts: null, exit: null },
  ]);
  assert.equal(submittedId("12\n"), "12");
  assert.equal(submittedId("Welcome!\n4711;cluster-2\n"), "4711");
  assert.equal(submittedId("sbatch: you have 12 hours left\n"), null);
});

test("sacct: who cancelled is no part of the state", () => {
  const jobs = parseSacct("20|20|seesaw-a-1|CANCELLED by 1000|0:15|n1|abc\n23|21_1|seesaw-b-1|OUT_OF_MEMORY|0:125|n2|d|e\n21|21_[2-3]|seesaw-b-1|PENDING|0:0||\n23.batch|21_1.batch|batch|FAILED|1:0|n2|\n");
  assert.deepEqual(jobs.map(({ id, task, state, comment }) => [id, task, state, comment]), [["20", null, "CANCELLED", "abc"], ["23", "21_1", "OUT_OF_MEMORY", "d|e"], ["21", null, "PENDING", ""]]);
});

test("one vocabulary for all states; an end in Slurm's own notation, never `done`", () => {
  const job = (state: string, more: Partial<SlurmJob> = {}): SlurmJob => ({ id: "1", task: null, state, reason: null, nodes: null, comment: "", restarts: null, exit: null, ...more });
  const word = (state: string, more: Partial<SlurmJob> = {}): unknown[] => {
    const { state: is, end, reason } = wordOf(job(state, more));
    return [is, end, reason];
  };
  assert.deepEqual(word("PENDING", { reason: "Priority" }), ["queued", undefined, "Priority"]);
  assert.deepEqual(word("REQUEUE_HOLD"), ["queued", undefined, "REQUEUE_HOLD"]);
  assert.deepEqual(word("CONFIGURING"), ["queued", undefined, "CONFIGURING"]);
  assert.deepEqual(word("RUNNING"), ["running", undefined, null]);
  assert.deepEqual(word("SUSPENDED"), ["running", undefined, "SUSPENDED"]);
  assert.deepEqual(word("COMPLETING"), ["completing", undefined, null]);
  assert.deepEqual(word("COMPLETED", { exit: { code: 0, signal: 0 } }), ["ended", "exited", "COMPLETED"]);
  assert.deepEqual(word("FAILED", { exit: { code: 7, signal: 0 } }), ["ended", "failed", "FAILED 7:0"]);
  assert.deepEqual(word("CANCELLED", { exit: { code: 0, signal: 15 } }), ["ended", "cancelled", "CANCELLED"]);
  assert.deepEqual(word("TIMEOUT"), ["ended", "time-limit", "TIMEOUT"]);
  assert.deepEqual(word("NODE_FAIL"), ["ended", "node-failure", "NODE_FAIL"]);
  assert.deepEqual(word("PREEMPTED"), ["ended", "preempted", "PREEMPTED"]);
  assert.deepEqual(word("OUT_OF_MEMORY"), ["ended", "out-of-memory", "OUT_OF_MEMORY"]);
  assert.deepEqual(word("A_NEW_STATE"), ["ended", "unknown", "A_NEW_STATE"]);
});

test("partitions: nodes and states added up, GPUs without their sockets, everyone's jobs", () => {
  const sinfo = "low*|up|1|gpu:2(S:0-1)|infinite|idle\nlow*|up|3|gpu:2|infinite|down*\nhigh|down|4|(null)|10:00|idle\n";
  assert.deepEqual(parsePartitions(sinfo, "low|PENDING\nlow,high|PENDING\nlow|RUNNING\nlow|COMPLETED\ngone|RUNNING\n"), [
    { name: "low", default: true, state: "1 idle, 3 down", nodes: 4, gpus: "gpu:2", limit: "infinite", waiting: 2, running: 1 },
    { name: "high", default: false, state: "down", nodes: 4, gpus: null, limit: "10:00", waiting: 1, running: 0 },
  ]);
});
