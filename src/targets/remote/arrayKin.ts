import { randomBytes } from "node:crypto";
import { readdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { JobRef, RemoteAttempt } from "../../protocol/remote.ts";
import type { RemotePlan } from "./port.ts";
import { readRemote, withAttempt } from "./remoteFolder.ts";

/** Runs that one job array starts. A scheduler takes an array as a whole or not at all: each of its runs vouches for the others. */

/** Makes plans of the same stage tasks of one array, in this order. Of one plan nothing is made. */
export function asArray(plans: readonly RemotePlan[], limit: number | null): RemotePlan[] {
  if (plans.length < 2) return [...plans];
  const nonce = randomBytes(16).toString("hex");
  const name = `seesaw-${plans[0]?.spec.stage}-array-${nonce.slice(0, 12)}`;
  const runs = plans.map(({ remote, spec }) => ({ dir: remote.dir, seed: spec.seed }));
  return plans.map((plan, task) => {
    const attempt: RemoteAttempt = { attempt: plan.attempt, nonce: `${nonce}_${task}`, state: "prepared", job: null, asked: null, array: { nonce, name, task } };
    return { ...plan, remote: withAttempt(plan.remote, attempt), attemptSpec: { ...plan.attemptSpec, nonce: attempt.nonce }, array: { nonce, name, task, limit, runs } };
  });
}

/** The job of an attempt, told by that of another task of its array: `12_0` tells of `12_3`. */
export function taskRef(other: Pick<JobRef, "id">, { nonce, array }: Pick<RemoteAttempt, "nonce" | "array">): JobRef {
  return { id: `${other.id.replace(/_\d+$/, "")}_${array?.task ?? 0}`, nonce };
}

/** The job of an attempt as a sibling beside its run folder has heard it; null where none has, or it is of no array. */
export async function jobOfKin(runDir: string, asked: RemoteAttempt): Promise<JobRef | null> {
  const { array } = asked;
  if (array === undefined) return null;
  const stage = basename(runDir).replace(/-[^-]+-[^-]+$/, "");
  const names = await readdir(dirname(runDir)).catch(() => []);
  for (const name of names.filter((one) => one.startsWith(`${stage}-`) && one !== basename(runDir))) {
    const kin = await readRemote(join(dirname(runDir), name)).catch(() => null);
    const found = kin?.attempts.find((one) => one.array?.nonce === array.nonce && one.job !== null);
    if (found?.job != null) return taskRef(found.job, asked);
  }
  return null;
}
