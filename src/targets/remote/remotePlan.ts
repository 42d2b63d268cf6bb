import type { AttemptSpec } from "../../protocol/attempt.ts";
import type { RemoteFile, RemoteSettings } from "../../protocol/remote.ts";
import type { RunSpec } from "../../protocol/runSpec.ts";
import { attemptName } from "../../storage/runs/runStore.ts";
import { recipeArgv, remoteEnv } from "../runnerEnv.ts";
import { PathMap, type PlannedModel, type PlannedTree } from "./pathMap.ts";
import type { FileHash } from "../hashFiles.ts";
import type { RemoteInput, RemotePlan } from "./port.ts";

/** Everything that a plan is made of; none of it is looked up here. */
export interface PlanParts {
  /** As the local run folder has it. */
  spec: RunSpec;
  /** Local run folder. */
  dir: string;
  attempt: number;
  nonce: string;
  settings: RemoteSettings;
  address: string;
  /** What the target said of itself. */
  where: { dir: string; python: string };
  /** Names the version of the runner. */
  runner: string;
  /** Files that go by what they hold: data, probes, a launcher's configuration. */
  objects: readonly FileHash[];
  /** Files whose place decides: modules and programs, below the root or below another folder. */
  tree: PlannedTree;
  /** By local folder. */
  models: ReadonlyMap<string, PlannedModel>;
}

const graceSeconds = 20;

/** The run as it will be on the target: no path of this machine is left in what goes there. */
export function remotePlan(parts: PlanParts): RemotePlan {
  const { spec, where, settings, attempt, nonce } = parts;
  const paths = new PathMap(parts);
  const runDir = `${where.dir}/runs/${spec.id}`;
  const runner = `${where.dir}/runner/${parts.runner}`;
  const there = remoteSpec(spec, paths, where.python);
  const remote: RemoteFile = {
    v: 1, target: settings.id, kind: settings.kind, address: parts.address, dir: runDir, runner, python: where.python, settings,
    attempts: [{ attempt, nonce, state: "prepared", job: null, asked: null }],
  };
  const attemptSpec: AttemptSpec = {
    v: 1,
    nonce,
    argv: recipeArgv(where.python, spec.recipe, runDir, there.launch),
    cwd: paths.work,
    env: remoteEnv(runner, there.env),
    epoch: attempt,
    grace_s: graceSeconds,
    beat_s: 1,
    // A scheduler takes what outlives its job for a stray; on a machine of one's own the training outlives its agent.
    fate: settings.kind !== "ssh",
    run: "..",
    ...nodeCheck(settings, where.python, runDir),
  };
  return { id: spec.id, dir: parts.dir, remote, spec: there, attempt, attemptSpec, inputs: inputsOf(parts, paths) };
}

/** The next attempt of a run that a plan was made for, with the runner as it is now: a job of its own, also where the first was a task of an array. */
export function nextAttempt({ array: _, ...plan }: RemotePlan, { attempt, nonce, runner, remote }: { attempt: number; nonce: string; runner: string; remote: RemoteFile }): RemotePlan {
  const { spec } = plan;
  const base = plan.remote.runner.replace(/[^/]+$/, runner);
  const file: RemoteFile = { ...remote, runner: base, attempts: [...remote.attempts, { attempt, nonce, state: "prepared", job: null, asked: null }] };
  const attemptSpec: AttemptSpec = { ...plan.attemptSpec, nonce, epoch: attempt, argv: recipeArgv(file.python, spec.recipe, file.dir, spec.launch), env: remoteEnv(base, spec.env), ...nodeCheck(file.settings, file.python, file.dir) };
  return { ...plan, remote: file, attempt, attemptSpec };
}

/** A scheduler's job may get another machine than the one on which everything was checked, with another Python at the same path. */
function nodeCheck({ kind }: RemoteSettings, python: string, runDir: string): Pick<AttemptSpec, "check"> {
  return kind === "ssh" ? {} : { check: [python, "-m", "seesaw_runner.node_check", runDir] };
}

/** Where the attempt's folder is on the target. */
export function attemptDir(remote: Pick<RemoteFile, "dir">, attempt: number): string {
  return `${remote.dir}/${attemptName(attempt)}`;
}

function inputsOf({ objects, tree, models }: PlanParts, paths: PathMap): RemoteInput[] {
  const files = [...objects.map((file) => ({ file, remote: paths.object(file) })), ...tree.files.map((file) => ({ file, remote: paths.of(file.path) as string }))];
  return [
    ...files.map(({ file, remote }): RemoteInput => ({ local: file.path, kind: "file", sha256: file.sha256, bytes: file.bytes, remote })),
    ...[...models.values()].flatMap((model): RemoteInput[] => (model.kind === "there" ? [] : [{ local: model.folder, kind: "model", sha256: model.sha256, bytes: model.bytes, remote: paths.model(model) }])),
  ];
}

/** Every path of the spec, wherever it stands: a field that comes later is not forgotten here. */
function remoteSpec({ models, ...spec }: RunSpec, paths: PathMap, python: string): RunSpec {
  const there = paths.deep(spec);
  return {
    ...there,
    // What options name by a path is found there by the path that it has there.
    ...(models !== undefined && { models: Object.fromEntries(Object.entries(models).map(([name, model]) => [paths.of(name) ?? name, paths.deep(model)])) }),
    target: { ...spec.target, python },
  };
}
