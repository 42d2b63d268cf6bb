import { note } from "../runSuite.ts";
import { seesaw } from "../support.ts";

/** The driver expects this host to die, and then the run to finish without it. */
describe("killing the extension host", function () {
  this.timeout(120_000);

  it("starts a stage", async () => {
    const { host } = await seesaw();
    const view = host.model.views()[0]!;
    const started = await host.launcher.startStage(view.pipeline!, view.diagnostics, "math", await host.startOptions(view));
    note("run", started.id);
  });

  it("dies", () => {
    process.kill(process.pid, "SIGKILL");
  });
});
