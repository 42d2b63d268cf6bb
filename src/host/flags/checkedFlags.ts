import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { confirmationText, type Confirmation, type ConfirmationPlan } from "../../domain/run/confirmation.ts";
import type { ChainRun } from "../../domain/run/chain.ts";
import { messageOf } from "../../util/errors.ts";
import type { Log } from "../../util/log.ts";

/** What a person had checked on further prompts. */
export interface CheckedFlag {
  v: 1;
  step: number;
  found: Confirmation;
}

/**
 * The newest check of every skill of a run on further prompts, in `.seesaw/cache/checked`: the run folder is the run's own, and
 * its flags stay as the run decided them. A file is read when somebody first asks; `changed` is called when more is known.
 */
export class CheckedFlags {
  private readonly changed: () => void;
  private readonly log: Log;
  private readonly known = new Map<string, CheckedFlag | null>();

  constructor(changed: () => void, log: Log) {
    this.changed = changed;
    this.log = log;
  }

  of(run: Pick<ChainRun, "dir" | "id">, skill: string): CheckedFlag | null {
    const file = fileOf(run, skill);
    const known = this.known.get(file);
    if (known !== undefined) return known;
    this.known.set(file, null);
    readFile(file, "utf8").then(
      (text) => {
        const value = JSON.parse(text) as Partial<CheckedFlag> | null;
        // What was checked meanwhile is newer.
        if (value?.v !== 1 || typeof value.found?.n !== "number" || this.known.get(file) !== null) return;
        this.known.set(file, value as CheckedFlag);
        this.changed();
      },
    ).catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") this.log.info(`${file} is not read: ${messageOf(error)}`);
    });
    return null;
  }

  async keep({ run, skill, step }: ConfirmationPlan, found: Confirmation): Promise<void> {
    const file = fileOf(run, skill);
    const kept: CheckedFlag = { v: 1, step, found };
    this.known.set(file, kept);
    this.changed();
    try {
      await mkdir(join(file, ".."), { recursive: true });
      await writeFile(`${file}.tmp`, JSON.stringify(kept));
      await rename(`${file}.tmp`, file);
    } catch (error) {
      this.log.warn(`${file} could not be written, so this window alone knows of the check: ${messageOf(error)}`);
    }
  }
}

/** The check as the run's flag shows it. */
export function checkedText(run: ChainRun, skill: string, { step, found }: CheckedFlag): string {
  return confirmationText({ run, skill, step }, found);
}

function fileOf({ dir, id }: Pick<ChainRun, "dir" | "id">, skill: string): string {
  return join(dir, "..", "..", "cache", "checked", `${id}.${skill}.json`);
}
