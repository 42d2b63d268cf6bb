import { readdir, readFile, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { parseCheckedFlag, type CheckedFlag, type FlagChecks, type UnreadableCheck } from "../../domain/run/checkedFlag.ts";
import { messageOf } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";

/** A folder's time stamp may be coarser than this, in ms: one that was changed so lately is read again. */
const stampPatienceMs = 2000;

/** The checks on further prompts of one run folder (`checked/`); every one comes by a rename, which the folder's time stamp shows. */
export class CheckedFlags {
  private readonly dir: string;
  private stamp: number | null = null;
  private known: FlagChecks | null = null;

  constructor(runDir: string) {
    this.dir = join(runDir, "checked");
  }

  /** null where nothing was checked. Never throws. */
  async read(): Promise<FlagChecks | null> {
    const stamp = (await stat(this.dir).catch(() => null))?.mtimeMs ?? null;
    if (stamp === null) return (this.known = this.stamp = null);
    if (stamp === this.stamp) return this.known;
    const checks = await this.readAll();
    this.stamp = Date.now() - stamp > stampPatienceMs ? stamp : null;
    return (this.known = checks.size === 0 ? null : checks);
  }

  private async readAll(): Promise<Map<string, CheckedFlag | UnreadableCheck>> {
    const checks = new Map<string, CheckedFlag | UnreadableCheck>();
    for (const file of (await readdir(this.dir).catch(() => [])).sort()) {
      const skill = /^([\w-]+)\.json$/.exec(file)?.[1];
      if (skill === undefined) continue;
      const name = t("{0} of run {1}", `checked/${file}`, basename(join(this.dir, "..")));
      checks.set(skill, await readFile(join(this.dir, file), "utf8").then((text) => parseCheckedFlag(text, name), (error: unknown) => ({ problem: t("{0} cannot be read: {1}", name, messageOf(error)) })));
    }
    return checks;
  }
}
