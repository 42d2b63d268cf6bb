import { existsSync } from "node:fs";
import { cp, mkdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { AppError, messageOf } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";

/** Name of the folder the sample is copied into. */
export const folderName = "seesaw-sample";

/** Copies `media/sample` to the first free name in `parent`; returns the new folder. What was recorded while developing is left out. */
export async function copySample(extensionDir: string, parent: string): Promise<string> {
  const source = join(extensionDir, "media", "sample");
  if (!existsSync(source)) throw new AppError("not-found", t("The sample is missing from this installation of Seesaw: install it again."));
  const target = freeName(parent);
  const aside = `${target}.part`;
  try {
    await mkdir(aside);
    await cp(source, aside, { recursive: true, filter: (path) => !/[\\/]\.seesaw([\\/]|$)/.test(path.slice(source.length)) });
    await rename(aside, target);
    return target;
  } catch (error) {
    await rm(aside, { recursive: true, force: true }).catch(() => {});
    throw new AppError("not-writable", t("The sample could not be copied to {0}: {1}", target, messageOf(error)), { cause: error });
  }
}

function freeName(parent: string): string {
  for (let number = 1; ; number++) {
    const path = join(parent, number === 1 ? folderName : `${folderName}-${number}`);
    if (!existsSync(path) && !existsSync(`${path}.part`)) return path;
  }
}
