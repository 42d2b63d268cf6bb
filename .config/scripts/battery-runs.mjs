// The battery's raw runs, as the runner wrote them.
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";

/** The bank's whole runs by id, and what is wrong with the others. */
export async function readRuns(folder) {
  const { readRawRun } = await import("../../src/domain/battery/rawRun.ts");
  const files = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith(".json.gz")).sort() : [];
  const [runs, leftOut] = [[], []];
  for (const file of files) {
    try {
      const run = readRawRun(JSON.parse(gunzipSync(readFileSync(join(folder, file))).toString("utf8")));
      if (typeof run === "string") leftOut.push({ file, why: run });
      else runs.push(run);
    } catch (error) {
      leftOut.push({ file, why: `It cannot be read: ${error.message}` });
    }
  }
  return { runs, leftOut };
}
