// The licences of other people's code inside the VSIX, as one text: of what the bundles hold (`dist/packages.json`, written by
// the build) and of the native modules beside them.
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { SetupError } from "./progress.mjs";
import { root } from "./setup.mjs";

/** `natives`: names of packages that ship as they are. Throws when the build left no list: a text without it would lie. */
export function thirdPartyLicences(natives) {
  const list = join(root, "dist", "packages.json");
  if (!existsSync(list)) throw new SetupError("dist/packages.json is missing, so the licences of the bundled packages are unknown. Run `npm run build` first.");
  const names = [...new Set([...JSON.parse(readFileSync(list, "utf8")), ...natives])].sort();
  return `${names.map(licenceOf).join(`\n\n${"-".repeat(80)}\n\n`)}\n`;
}

function licenceOf(name) {
  const folder = join(root, "node_modules", name);
  const { version, license, author, homepage } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((one) => /^(licen[cs]e|copying)/i.test(one));
  const by = typeof author === "string" ? author : author?.name;
  const text = file === undefined ? [`Licence: ${license}. The package has no licence file.`, by && `Author: ${by}.`, homepage && `See ${homepage}.`].filter(Boolean).join(" ") : readFileSync(join(folder, file), "utf8").trim();
  return `${name} ${version} (${license})\n\n${text}`;
}
