// Drives the real workbench as a person would. `--check` tells the stories that must hold (part of `npm test`); without it the
// pictures of the README are taken again. `node test/vscode/ui.mjs [story or theme…] [--check] [--no-build]`
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { packageExtension } from "../../.config/scripts/package.mjs";
import { SetupError, done, failWith, seconds } from "../../.config/scripts/progress.mjs";
import { node24, root, setup } from "../../.config/scripts/setup.mjs";
import { installCodeServer } from "../../.config/scripts/vscode-install.mjs";
import { base } from "./workbench.mjs";

async function main() {
  const { python } = await setup({ python: "run", browser: true });
  await installCodeServer();
  const [spaces, { literalStory }, { bigStory }, { trustStory }, { runsStory }, { commandStory }, { picturesStory, themes }, { rowsStory }] = await Promise.all([
    import("./workspaces.mjs"), import("./stories/literal.mjs"), import("./stories/big.mjs"), import("./stories/trust.mjs"), import("./stories/runs.mjs"), import("./stories/command.mjs"), import("./stories/pictures.mjs"), import("./stories/rows.mjs"),
  ]);
  const checks = {
    literal: (vsix) => literalStory(vsix, spaces),
    big: (vsix) => bigStory(vsix, spaces),
    trust: (vsix) => trustStory(vsix, spaces),
    runs: (vsix) => runsStory(vsix, python, spaces),
    command: () => commandStory(spaces.recordedWorkspace(join(base, "command-ws"), ["math"])),
  };
  const pictures = { ...Object.fromEntries(Object.keys(themes).map((theme) => [theme, (vsix) => picturesStory(theme, vsix, python, spaces)])), rows: (vsix) => rowsStory(vsix, python, spaces) };
  const all = { ...checks, ...pictures };
  const wanted = process.argv.slice(2).filter((argument) => !argument.startsWith("-"));
  for (const name of wanted) if (!(name in all)) throw new SetupError(`${name}: no such story; there are ${Object.keys(all).join(", ")}.`);
  const stories = wanted.length > 0 ? wanted : Object.keys(process.argv.includes("--check") ? checks : pictures);
  const [{ vsix }] = await packageExtension({ platforms: [`${process.platform}-${process.arch}`], out: join(base, "vsix"), build: !process.argv.includes("--no-build") });
  const began = Date.now();
  for (const name of stories) await all[name](vsix);
  done(`Workbench: ${stories.length} passed in ${seconds(began)} (${stories.join(", ")})`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  if (Number(process.versions.node.split(".")[0]) < 24) {
    await setup({ python: false });
    process.exitCode = spawnSync(node24, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], { cwd: root, stdio: "inherit" }).status ?? 1;
  } else {
    main().catch(failWith);
  }
}
