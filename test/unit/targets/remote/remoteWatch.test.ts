import assert from "node:assert/strict";
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { test, type TestContext } from "node:test";
import { FolderRunStore } from "../../../../src/storage/runs/folderRunStore.ts";
import { followRun } from "../../../../src/targets/followRun.ts";
import { RemoteWatch } from "../../../../src/targets/remote/remoteWatch.ts";
import { keepingLog, LoopRun, LoopTarget, until } from "./loop.ts";

const long = { timeout: 300_000 };

function bench(context: TestContext): { run: LoopRun; target: LoopTarget; watch: RemoteWatch; store: FolderRunStore; made: string[]; log: ReturnType<typeof keepingLog> } {
  const [run, target, log, store, made] = [new LoopRun(), new LoopTarget(), keepingLog(), new FolderRunStore({ pollMs: 200 }), [] as string[]];
  const watch = new RemoteWatch({
    target: (settings) => {
      made.push(settings.id);
      return Promise.resolve(target);
    },
    log,
    pollMs: 100,
  });
  context.after(async () => {
    await watch.dispose();
    target.dispose();
    store.dispose();
    run.dispose();
  });
  return { run, target, watch, store, made, log };
}

test("what is complete, local or not there is left alone; what is live is followed, and so is its next attempt", long, async (context) => {
  const { run, target, watch, store, made, log } = bench(context);
  const runs = dirname(run.local);
  // A run that is complete, one of this machine, one that cannot be read.
  for (const [name, files] of Object.entries({ "done-20260101T000000-0001": ["remote", "mirror"], "here-20260101T000000-0002": [], "torn-20260101T000000-0003": ["torn"] } as Record<string, string[]>)) {
    mkdirSync(join(runs, name));
    run.asked({});
    if (files.includes("remote")) cpSync(join(run.local, "remote.json"), join(runs, name, "remote.json"));
    if (files.includes("mirror")) writeFileSync(join(runs, name, "mirror.json"), JSON.stringify({ v: 1, files: {}, attempt: 1, complete: true }));
    if (files.includes("torn")) writeFileSync(join(runs, name, "remote.json"), "{");
  }
  rmSync(join(run.local, "remote.json"));
  const stop = watch.watch(run.root);
  await new Promise((resolve) => setTimeout(resolve, 400));
  assert.deepEqual([made, target.calls], [[], []], "nothing is contacted where nothing is to come");

  const remote = run.asked({ plan: { steps: 5, code: 1 } });
  await target.submit(run.plan(remote));
  const complete = (attempt: number) => (): boolean => existsSync(join(run.local, "mirror.json")) && run.mirror().complete && run.mirror().attempt === attempt;
  await until("the first attempt is here", complete(1));
  const state = async (): Promise<[string, number]> => (await store.list(run.root)).runs.filter(({ dir }) => dir === run.local).map(({ state: { status, attempt } }): [string, number] => [status, attempt])[0] ?? ["", 0];
  assert.deepEqual(await state(), ["failed", 1]);
  const two = run.asked({}, { plan: { steps: 3 } });
  await target.submit(run.plan(two, 2));
  await until("the second attempt is here", complete(2));
  assert.deepEqual([await state(), run.different()], [["done", 2], []]);
  await stop();
  assert.deepEqual([log.lines.filter((line) => /^(warn|error)/.test(line)), watch.troubles], [[], []]);
});

test("the command line follows the run that it shows, and everything is here when it returns", long, async (context) => {
  const { run, target, watch, store } = bench(context);
  const remote = run.asked({ plan: { steps: 30, seconds: 0.05 } });
  await target.submit(run.plan(remote));
  const other = `${run.local.slice(0, -1)}c`;
  cpSync(run.local, other, { recursive: true });
  writeFileSync(join(other, "run.json"), readFileSync(join(run.local, "run.json"), "utf8").replace(run.id, basename(other)));
  const seen: number[] = [];
  const end = await followRun(store, run.root, run.id, ({ state }) => void seen.push(state.step), undefined, watch);
  assert.deepEqual([end.state.status, end.state.remote?.complete, end.state.metrics.length], ["done", true, 30]);
  assert.deepEqual(run.different(), []);
  assert.ok(!existsSync(join(other, "mirror.json")), "only the run that was asked for");
});

test("stopping leaves on disk what was heard; to ask once brings it up to date", long, async (context) => {
  const { run, target, watch, store } = bench(context);
  const remote = run.asked({ plan: { steps: 200, seconds: 0.05 } });
  await target.submit(run.plan(remote));
  const stop = watch.watch(run.root);
  await until("something is here", () => run.journalHere().length > 0);
  await stop();
  const size = readFileSync(join(run.local, "journal.jsonl")).length;
  assert.ok(run.mirror().files["journal.jsonl"]?.size === size && !existsSync(join(run.local, ".lease")));
  await new Promise((resolve) => setTimeout(resolve, 300));
  assert.equal(readFileSync(join(run.local, "journal.jsonl")).length, size, "nobody follows");
  await watch.refresh(run.root, { run: run.id });
  assert.ok(readFileSync(join(run.local, "journal.jsonl")).length > size);
  await target.stop(remote, 1);
  await until("the end is there", () => existsSync(join(run.attemptDir(1), "exit.json")));
  await watch.refresh(run.root);
  assert.equal((await store.list(run.root)).runs[0]?.state.status, "cancelled");
});

test("what stands in the way on this machine is told once, and told to be gone", long, async (context) => {
  const { run, target, watch, log } = bench(context);
  const remote = run.asked({ plan: { steps: 30, seconds: 0.05 } });
  await target.submit(run.plan(remote));
  // A file where a folder has to be: nothing can be written there until somebody moves it.
  writeFileSync(join(run.local, "attempt-0001"), "in the way");
  const told: string[][] = [];
  watch.onTrouble(() => void told.push(watch.troubles.map(({ message }) => message)));
  const stop = watch.watch(run.root);
  await until("it is told", () => told.length > 0);
  assert.match(told[0]?.[0] ?? "", /attempt-0001.* could not be written/);
  renameSync(join(run.local, "attempt-0001"), join(run.dir, "moved"));
  watch.poke(run.root);
  await until("it is complete", () => run.mirror().complete);
  await stop();
  assert.deepEqual([told.at(-1), run.different()], [[], []]);
  assert.ok(log.lines.filter((line) => line.startsWith("warn")).length <= 2, log.lines.join("\n"));
});
