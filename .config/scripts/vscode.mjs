// `npm run vscode`: a real VS Code workbench on 127.0.0.1 with the extension and the sample open. Ctrl-C stops it.
// `npm run vscode -- --port 8123 --folder DIR --dir DATA`: another port, another workspace, another place for its data.
import { existsSync, mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { packageExtension } from "./package.mjs";
import { SetupError, done, failWith, say } from "./progress.mjs";
import { root, setup } from "./setup.mjs";
import { installCodeServer } from "./vscode-install.mjs";
import { installVsix, startServer } from "./vscode-server.mjs";

async function main() {
  const { values } = parseArgs({ options: { port: { type: "string" }, folder: { type: "string" }, dir: { type: "string" } } });
  const { python } = await setup({ python: "run" });
  await installCodeServer();
  const dir = resolve(values.dir ?? join(root, ".cache", "vscode"));
  mkdirSync(dir, { recursive: true });
  const [{ vsix }] = await packageExtension({ platforms: [`${process.platform}-${process.arch}`], out: join(dir, "vsix") });
  await installVsix(dir, vsix);
  const folder = values.folder === undefined ? join(root, "media", "sample") : resolve(values.folder);
  if (!existsSync(folder)) throw new SetupError(`${folder} does not exist: give --folder an existing folder.`);
  // The person's own code-server may be open on the same machine: this one has its own data and trusts its workspace.
  const settings = { "seesaw.python.path": python, "git.enabled": true, "workbench.colorTheme": "Default Dark Modern" };
  const port = values.port === undefined ? undefined : Number(values.port);
  const server = await startServer({ dir, settings, ...(port === undefined ? {} : { port }) });
  done(`VS Code is at ${server.origin}/?folder=${encodeURIComponent(folder)}`);
  say("open the Seesaw icon on the left, or press F1 and type `Seesaw: Run Stage`; Ctrl-C stops it (runs go on)");
  await untilStopped();
  await server.stop();
  done("stopped");
}

/** Waits for Ctrl-C or a polite kill; a second one does not wait for the server. */
function untilStopped() {
  return new Promise((wake) => {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
      process.once(signal, () => {
        process.once(signal, () => process.exit(130));
        wake();
      });
    }
  });
}

main().catch(failWith);
