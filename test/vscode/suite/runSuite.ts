import { writeFileSync } from "node:fs";
import Mocha from "mocha";

/** What a suite leaves behind. The driver believes nothing else: an extension host that died writes no such file. */
export interface SuiteResult {
  scenario: string;
  tests: { title: string; state: "passed" | "failed" | "pending"; ms: number; error?: string }[];
  notes: Record<string, unknown>;
}

const notes: Record<string, unknown> = {};

/** Adds a measurement or an id to the result file. */
export function note(key: string, value: unknown): void {
  notes[key] = value;
}

/** Runs the tests that `load` declares and writes the result file. Rejects when one failed or none ran. */
export async function runSuite(scenario: string, load: () => void): Promise<void> {
  const mocha = new Mocha({ ui: "bdd", timeout: 60_000, reporter: "spec", color: false, forbidOnly: true });
  mocha.suite.emit("pre-require", globalThis, null as unknown as string, mocha);
  load();
  const result: SuiteResult = { scenario, tests: [], notes };
  const failures = await new Promise<number>((resolve) => {
    const runner = mocha.run(resolve);
    const add = (test: Mocha.Test, state: "passed" | "failed" | "pending", error?: Error): void => {
      result.tests.push({ title: test.fullTitle(), state, ms: test.duration ?? 0, ...(error === undefined ? {} : { error: error.stack ?? String(error) }) });
      save(result);
    };
    runner.on("pass", (test) => add(test, "passed"));
    runner.on("fail", (test, error: Error) => add(test as Mocha.Test, "failed", error));
    runner.on("pending", (test) => add(test, "pending"));
  });
  save(result);
  if (failures > 0) throw new Error(`${failures} of ${result.tests.length} tests failed.`);
  if (result.tests.length === 0) throw new Error("No test was declared.");
}

/** Written after every test, so that a host that dies leaves what it had done. */
function save(result: SuiteResult): void {
  const file = process.env["SEESAW_TEST_RESULT"];
  if (file === undefined) throw new Error("SEESAW_TEST_RESULT is not set: start this through test/vscode/run.mjs.");
  writeFileSync(file, JSON.stringify(result, null, 2));
}
