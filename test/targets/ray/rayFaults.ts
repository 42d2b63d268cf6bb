import assert from "node:assert/strict";
import type { RayClient } from "../../../src/targets/remote/ray/rayClient.ts";
import { fault, type FaultCase } from "../shared/fault.ts";
import { Lab } from "../shared/lab.ts";
import { identify, sleep } from "../shared/leftovers.ts";
import type { RayHead } from "./head.ts";
import { until } from "./rayLab.ts";

/** Seconds for what takes a few: the machine may be busy. */
const patience = 300;

/** Faults from a workspace: launcher, supervisor and what every surface shows. They share one head with the tests of the adapter. */
export function registerFaults({ head, client, skip }: { head: () => RayHead; client: () => RayClient; skip: string | null }): void {
  function faultOnRay(name: string, body: (lab: Lab, the: FaultCase) => Promise<void>, resources: Record<string, unknown> = {}): void {
    fault("ray", name, async (the) => {
      const lab = Lab.open({ kind: "ray", address: head().address, ...(Object.keys(resources).length > 0 && { resources }) });
      try {
        await body(lab, the);
      } finally {
        await lab.close();
      }
    }, { timeout: 900_000, skip });
  }

  const jobId = (lab: Lab, id: string): string => lab.remoteFile(id).attempts.at(-1)?.job?.id ?? "";

  faultOnRay("log that is no UTF-8, from start to end", async (lab, { judge }) => {
    const { id } = await lab.start({ steps: 12, bytes: true });
    await lab.window();
    await judge(lab, id, { status: "done", step: 12, seconds: patience });
  });

  faultOnRay("link cut for 30 s", async (lab, { judge }) => {
    const { id } = await lab.start({ steps: 300, dt: 0.3 });
    await lab.window();
    await lab.until(id, "at step 5 here", ({ state }) => state.step >= 5, patience);
    await head().host.cut();
    try {
      const cut = await lab.until(id, "unreachable", ({ state }) => state.status === "unreachable", patience);
      assert.equal(cut.state.reason, null);
      await sleep(10_000);
    } finally {
      await head().host.mend();
    }
    const { step } = (await lab.run(id)).state;
    await lab.until(id, "followed on", ({ state }) => state.step > step + 5, patience);
    await lab.stop(id);
    await judge(lab, id, { status: "cancelled", seconds: patience });
  });

  faultOnRay("job stopped from outside, then resumed", async (lab, { judge }) => {
    const { id } = await lab.start({ steps: 60, dt: 0.2 });
    await lab.window();
    await lab.untilStep(id, 5, patience);
    await client().stop(jobId(lab, id));
    const { state } = await judge(lab, id, { status: "killed", seconds: patience });
    assert.deepEqual(state.reason, { kind: "killed", signal: "SIGTERM" });
    assert.equal(state.checkpoints.at(-1)?.step, state.step, "Ray waited until it was saved");
    await lab.resume(id);
    await judge(lab, id, { status: "done", step: 60, attempts: 2, seconds: patience });
  });

  faultOnRay("stopped before it could start", async (lab, { judge }) => {
    const { id } = await lab.start();
    await lab.window();
    await lab.until(id, "queued with its reason", ({ state }) => state.status === "queued" && state.remote?.word?.reason === "no node of the cluster has 3 GPUs", patience);
    await lab.stop(id);
    await judge(lab, id, { status: "cancelled", reason: "scheduler", attempts: 0, compare: false, seconds: patience });
  }, { gpus: 3 });

  faultOnRay("job deleted from outside", async (lab, { judge }) => {
    const { id } = await lab.start({ steps: 8 });
    await until("the end", async () => (await client().job(jobId(lab, id)))?.status === "SUCCEEDED", patience);
    await client().forget(jobId(lab, id));
    await lab.window();
    await judge(lab, id, { status: "done", step: 8, seconds: patience });
  });

  faultOnRay("head restart", async (lab, { judge }) => {
    const { id } = await lab.start({ steps: 3000 });
    await lab.window();
    await lab.untilStep(id, 12, patience);
    const { pid, start } = lab.there(id).started();
    await head().crash();
    await until("the training is gone", () => identify(pid)?.start !== start, 60);
    await head().start();
    await judge(lab, id, { status: "lost", seconds: patience });
  });
}
