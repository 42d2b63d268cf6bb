// `npm run vscode`: a real VS Code workbench on 127.0.0.1 with the extension and the sample open. Ctrl-C stops it.
// `npm run vscode -- --port 8123 --folder DIR --dir DATA`: another port, another workspace, another place for its data.
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { packageExtension } from "./package.mjs";
import { SetupError, done, failWith, say } from "./progress.mjs";
import { root, setup } from "./setup.mjs";
import { installCodeServer } from "./vscode-install.mjs";
import { Interrupted, claimFolder, installVsix, startServer } from "./vscode-server.mjs";

async function main() {
  const { port, folder, dir } = options();
  const stop = onSignal();
  const { python } = await setup({ python: "run" });
  const release = claimFolder(dir);
  try {
    await installCodeServer();
    const [{ vsix }] = await packageExtension({ platforms: [`${process.platform}-${process.arch}`], out: join(dir, "vsix") });
    await installVsix(dir, vsix);
    if (stop.signal.aborted) throw new Interrupted();
    // The person's own code-server may be open on the same machine: this one has its own data and trusts its workspace.
    const settings = { "seesaw.python.path": python, "git.enabled": true, "workbench.colorTheme": "Default Dark Modern" };
    const server = await startServer({ dir, settings, signal: stop.signal, ...(port === undefined ? {} : { port }) });
    stop.now = server.kill;
    done(`VS Code is at ${server.origin}/?folder=${encodeURIComponent(folder)}`);
    say("open the Seesaw icon on the left, or press F1 and type `Seesaw: Run Stage`; Ctrl-C stops it (runs go on)");
    const ended = await Promise.race([stop.asked, server.ended.then(() => "ended")]);
    await server.stop();
    if (ended === "ended") throw new SetupError(`code-server ended by itself; see ${join(dir, "server.log")}`);
    done("stopped");
  } catch (error) {
    // A Ctrl-C reaches the step that is at work, too: its end is no fault.
    if (!stop.signal.aborted && !(error instanceof Interrupted)) throw error;
    done("stopped before it was ready");
    process.exitCode = 130;
  } finally {
    release();
  }
}

function options() {
  let values;
  try {
    ({ values } = parseArgs({ options: { port: { type: "string" }, folder: { type: "string" }, dir: { type: "string" } } }));
  } catch (error) {
    throw new SetupError(`${error.message.split(".")[0]}: \`npm run vscode -- [--port N] [--folder DIR] [--dir DATA]\`.`);
  }
  const port = values.port === undefined ? undefined : Number(values.port);
  if (port !== undefined && !(Number.isInteger(port) && port > 0 && port < 65536)) throw new SetupError(`--port ${values.port} is no port: give a number from 1 to 65535.`);
  const folder = values.folder === undefined ? join(root, "media", "sample") : resolve(values.folder);
  if (!existsSync(folder)) throw new SetupError(`${folder} does not exist: give --folder an existing folder.`);
  return { port, folder, dir: resolve(values.dir ?? join(root, ".cache", "vscode")) };
}

/** Hears Ctrl-C and polite kills from the first moment on; a second one does not wait for the server. */
function onSignal() {
  const abort = new AbortController();
  const stop = { signal: abort.signal, now: () => {}, asked: undefined };
  stop.asked = new Promise((wake) => {
    for (const name of ["SIGINT", "SIGTERM", "SIGHUP"]) {
      process.on(name, () => {
        if (abort.signal.aborted) {
          stop.now();
          process.exit(130);
        }
        abort.abort();
        wake("asked");
      });
    }
  });
  return stop;
}

main().catch(failWith);
