import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { test } from "node:test";
import { reasonText } from "../../../src/domain/run/reasonText.ts";
import { fault } from "../shared/fault.ts";
import { Lab } from "../shared/lab.ts";
import { sampleChain } from "../shared/sampleChain.ts";
import type { RayHead } from "./head.ts";

/** The real recipes as Ray jobs, with a Python that is not Ray's own, and what a job says whose Python cannot run them. On the head of the other tests. */
export function registerSample({ head, skip }: { head: () => RayHead; skip: string | null }): void {
  void test("ray: the sample chain, each stage from the checkpoint that stayed on the cluster, as on this machine", { timeout: 1_200_000, ...(skip !== null && { skip }) }, async () => {
    const lab = Lab.open({ kind: "ray", address: head().address, resources: { cpus: 1 } }, { real: true });
    try {
      for (const id of Object.values(await sampleChain(lab))) assert.equal((await lab.run(id)).state.remote?.word?.end, "exited");
    } finally {
      await lab.close();
    }
  });

  const bare = "/usr/bin/python3";
  fault("ray", "Python of the node without packages", async ({ judge }) => {
    const lab = Lab.open({ kind: "ray", address: head().address, python: bare });
    try {
      const { id } = await lab.start();
      await lab.window();
      const { state } = await judge(lab, id, { status: "failed" });
      assert.match(reasonText(state.reason), new RegExp(`^It failed \\(preflight\\): On \\S+, ${bare} \\(Python [\\d.]+\\) lacks torch, .*\\. Run .*pip install 'torch>=.* there, or name another Python`));
      assert.deepEqual(lab.there(id).starts(), [], "nothing was started");
    } finally {
      await lab.close();
    }
  }, { skip: skip ?? (existsSync(bare) ? null : `${bare} is not there`) });
}
