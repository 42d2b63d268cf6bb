import { AppError } from "../../util/errors.ts";
import { t } from "../../util/l10n.ts";
import type { SqliteDatabase } from "../sqliteDriver.ts";

/**
 * Brings a database to the newest schema: `steps[n]` leads from version n to n + 1. Forward only.
 * Throws AppError("newer-schema") for a database of a later release.
 */
export function migrate(database: SqliteDatabase, steps: readonly string[], what: string): void {
  if (versionOf(database) === steps.length) return;
  database.transaction(() => {
    // Read again inside: another window may have migrated meanwhile.
    const version = versionOf(database);
    if (version > steps.length) {
      throw new AppError("newer-schema", t("{0} {1} has schema version {2}; this Seesaw knows up to {3}. Update Seesaw, or delete the file: it is rebuilt.", what, database.path, version, steps.length));
    }
    for (const step of steps.slice(version)) database.exec(step);
    database.exec(`PRAGMA user_version = ${steps.length}`);
  });
}

function versionOf(database: SqliteDatabase): number {
  return Number(database.prepare("PRAGMA user_version").get()?.["user_version"] ?? 0);
}
