import { openWindow } from "./window.ts";

// The other end of followProcess.ts: follows the workspace until it is asked to end.
const [root = "", install = ""] = process.argv.slice(2);
const say = (message: string): void => void process.stderr.write(process.env["SEESAW_TEST_VERBOSE"] ? `[${process.pid}] ${message}\n` : "");
const window = openWindow(root, install, { debug: say, info: say, warn: say, error: say });
const alive = setInterval(() => {}, 60_000); // the watch itself keeps no process alive
process.once("SIGTERM", () => {
  clearInterval(alive);
  void window.close().then(() => process.exit(0));
});
console.log("follows");
