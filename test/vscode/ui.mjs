// Drives the real workbench as a person would. `--check` tells the stories that must hold (part of `npm test`); without it the
// pictures of the README are taken again. `node test/vscode/ui.mjs [story or theme…] [--check] [--no-build]`
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { packageExtension } from "../../.config/scripts/package.mjs";
import { SetupError, done, failWith, say, seconds } from "../../.config/scripts/progress.mjs";
import { node24, root, setup } from "../../.config/scripts/setup.mjs";
import { installCodeServer } from "../../.config/scripts/vscode-install.mjs";
import { base } from "./workbench.mjs";

async function main() {
  const { python } = await setup({ python: "run", browser: true });
  await installCodeServer();
  const spaces = await import("./workspaces.mjs");
  const { themes } = await import("./stories/pictures.mjs");
  // Each story is a file: test/vscode/stories/NAME.mjs exports NAMEStory.
  const story = async (name, ...args) => (await import(`./stories/${name}.mjs`))[`${name}Story`](...args);
  const checks = {
    big: (vsix) => story("big", vsix, spaces),
    whole: (vsix) => story("whole", vsix, python, spaces),
    queue: (vsix) => story("queue", vsix, python, spaces),
    targets: (vsix) => story("targets", vsix, python, spaces),
    flags: (vsix) => story("flags", vsix, spaces),
    confirm: (vsix) => story("confirm", vsix, python, spaces),
    misuse: (vsix) => story("misuse", vsix, spaces),
    remote: (vsix) => story("remote", vsix, python, spaces),
    runs: (vsix) => story("runs", vsix, python, spaces),
    literal: (vsix) => story("literal", vsix, spaces),
    trust: (vsix) => story("trust", vsix, spaces),
    live: (vsix) => story("live", vsix, python, spaces),
    walkthrough: (vsix) => story("walkthrough", vsix, spaces),
    chinese: (vsix) => story("chinese", vsix, spaces),
    scroll: () => story("scroll"),
    weights: () => story("weights", python, spaces),
    arena: () => story("arena"),
    "arena-run": async (vsix) => (await import("./stories/arena-run.mjs")).arenaRunStory(vsix, python),
    command: () => story("command", spaces.recordedWorkspace(join(base, "command-ws"), ["math"])),
  };
  const pictures = Object.fromEntries(
    Object.keys(themes).flatMap((theme) => [
      [theme, (vsix) => story("pictures", theme, vsix, python, spaces)],
      [`arena-${theme}`, () => story("arena", theme)],
      [`weights-${theme}`, () => story("weights", python, spaces, theme)],
      [`rows-${theme}`, (vsix) => story("rows", theme, vsix, python, spaces)],
      [`queue-${theme}`, (vsix) => story("queue", vsix, python, spaces, theme)],
      [`targets-${theme}`, (vsix) => story("targets", vsix, python, spaces, theme)],
      [`walkthrough-${theme}`, (vsix) => story("walkthrough", vsix, spaces, theme)],
    ]),
  );
  // Pictures to look at, in .cache: nothing in the README shows them.
  const looks = Object.fromEntries(Object.keys(themes).map((theme) => [`flags-${theme}`, (vsix) => story("flags", vsix, spaces, theme)]));
  const all = { ...checks, ...pictures, ...looks };
  const wanted = process.argv.slice(2).filter((argument) => !argument.startsWith("-"));
  for (const name of wanted) if (!(name in all)) throw new SetupError(`${name}: no such story; there are ${Object.keys(all).join(", ")}.`);
  const stories = wanted.length > 0 ? wanted : Object.keys(process.argv.includes("--check") ? checks : pictures);
  const vsix = process.env.SEESAW_VSIX ?? (await packageExtension({ platforms: [`${process.platform}-${process.arch}`], out: join(base, "vsix"), build: !process.argv.includes("--no-build") }))[0].vsix;
  const began = Date.now();
  const again = await tellAll(stories, (name) => all[name](vsix));
  for (const name of again) console.log(`!! HELD ONLY ALONE, at the second try: ${name}`);
  done(`Workbench: ${stories.length} passed in ${seconds(began)} (${stories.join(", ")})`);
}

/**
 * Stories mostly wait: two at a time, but alone what measures time, and what takes pictures. A story that failed is told once more
 * when the others have ended, alone: a browser on a busy machine misses a deadline now and then. What only then held is returned,
 * and said; a story that fails twice fails.
 */
async function tellAll(names, tell) {
  const alone = names.filter((name) => name === "big" || /^(dark|light|high-contrast)$|-(dark|light|contrast)$/.test(name));
  for (const name of alone) await tell(name);
  const left = names.filter((name) => !alone.includes(name));
  const failed = [];
  const teller = async () => {
    for (let name = left.shift(); name !== undefined; name = left.shift()) {
      await tell(name).catch((error) => {
        console.error(`✗ ${name}:`, error);
        failed.push(name);
      });
    }
  };
  await Promise.all([teller(), teller()]);
  // More than two at once are no accident.
  if (failed.length > 2) throw new Error(`The stories ${failed.join(", ")} failed; how is printed above.`);
  for (const name of failed) {
    say(`Once more, alone: ${name}`);
    await tell(name).catch((error) => {
      throw new Error(`The story ${name} failed twice.`, { cause: error });
    });
  }
  return failed;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  if (Number(process.versions.node.split(".")[0]) < 24) {
    await setup({ python: false });
    process.exitCode = spawnSync(node24, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], { cwd: root, stdio: "inherit" }).status ?? 1;
  } else {
    main().catch(failWith);
  }
}
