import assert from "node:assert/strict";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import type { RunResult } from "../../../src/targets/spawn.ts";
import { recordRuns } from "../../vscode/recordRuns.ts";
import { BundledCli, repo } from "./bundledCli.ts";

const bundled = await BundledCli.build();
const box = mkdtempSync(join(tmpdir(), "seesaw-flags-"));
after(() => {
  rmSync(box, { recursive: true });
  bundled.dispose();
});
for (const name of ["data", "seesaw.yaml"]) cpSync(join(repo, "media/sample", name), join(box, name), { recursive: true });
mkdirSync(join(box, ".git"));
const ids = recordRuns({ root: box, stages: ["math", "search"] });
const cli = (...args: string[]): Promise<RunResult> => bundled.run(box, ["flags", ...args]);

test("flags have their facts under the newest word on them, for people and as JSON", async () => {
  const { stdout, code } = await cli();
  assert.equal(code, 0);
  assert.match(stdout, /✗ search step 60 {2}math \(in-domain\) has lost accuracy/);
  assert.equal(stdout.match(/Expected loss: /g)?.length, 1, "once, not under every change");
  for (const fact of [/Moved most: line 4 \(−/, /Replay: no replay in this stage/, /For runs like yours: no history yet/, /False-alarm budget: 10 % per run, 6 % of it spent here so far/]) assert.match(stdout, fact);
  if (!existsSync(join(repo, "media/battery/card.json"))) assert.match(stdout, /Track record: this installation has no report card/);
  const document = JSON.parse((await cli("search", "--json")).stdout) as { flags: { run: string; unit: string; facts: { id: string }[] }[] };
  assert.ok(document.flags.length > 0 && document.flags.every(({ run }) => run === ids["search"]));
  assert.ok(document.flags.every(({ unit, facts }) => unit === "points" && facts.some(({ id }) => id === "loss")));
});

test("verdicts are made again from the traces; what was journalled by hand differs, and --check says so", async () => {
  const { stdout, code } = await cli("search", "--recompute");
  assert.equal(code, 0);
  assert.match(stdout, new RegExp(`^${ids["search"]}: detector soft, tolerance 2\\.00 points, false-alarm budget 10 %`));
  assert.match(stdout, /math\.id \(64\) +60 +\d+\.\d points .* confirmed ⚑/);
  assert.match(stdout, /differences? from the journal:\n {2}math\.id/);
  assert.equal((await cli("search", "--recompute", "--check")).code, 1);
  const other = JSON.parse((await cli("search", "--recompute", "--detector", "nll", "--tolerance", "0.5", "--json")).stdout) as { equal: boolean | null; detector: string; tolerance: number };
  assert.deepEqual([other.equal, other.detector, other.tolerance], [null, "nll", 0.5]);
});

test("options that do not go together are refused with the way out", async () => {
  for (const [args, words] of [
    [["--check"], /--check goes with --recompute/],
    [["search", "--detector", "shift"], /--detector goes with --recompute/],
    [["search", "--recompute", "--tolerance", "much"], /--tolerance takes a number from 0 to 100, not `much`/],
    [["search", "--recompute", "--check", "--tolerance", "1"], /leave --detector and --tolerance out/],
    [["search", "--recompute", "--detector", "kl"], /Allowed choices are limit, nll, shift, soft, strict/],
  ] as const) {
    const { code, stderr } = await cli(...args);
    assert.equal(code, 2, args.join(" "));
    assert.match(stderr, words);
  }
  assert.equal((await cli("nowhere", "--recompute")).code, 3);
});

test("a confirmation is refused with a reason before anything is started", async () => {
  const confirm = (...args: string[]): Promise<RunResult> => bundled.run(box, ["confirm", ...args]);
  for (const [args, code, words] of [
    [["search", "sing"], 3, /has no skill sing: its skills are math, search, tool, format/],
    [["search", "math", "-n", "0"], 2, /--count takes a whole number from 1/],
    [["search", "math", "--prompts", "data/math.train.jsonl"], 2, /is what stage math trains on/],
    [["search", "math", "--prompts", "data/none.jsonl"], 3, /There is no file of prompts at/],
    [["math"], 3, /No flag stands in math-/],
  ] as const) {
    const found = await confirm(...args);
    assert.equal(found.code, code, `${args.join(" ")}: ${found.stderr}`);
    assert.match(found.stderr, words);
  }
});

test("what was checked on further prompts, here or in the editor, stands with the flag and in the status", async () => {
  const folder = join(box, ".seesaw", "runs", String(ids["search"]), "checked");
  mkdirSync(folder);
  const put = (text: string): void => writeFileSync(join(folder, "math.json"), text);
  const whole = readFileSync(join(repo, "test/fixtures/protocol/checked/math.json"), "utf8");
  put(whole);
  assert.match((await cli()).stdout, /Checked again: The loss of math is confirmed: 96\.9 % at the start of search/);
  const { flags } = JSON.parse((await cli("--json")).stdout) as { flags: { skill: string; state: string; facts: { id: string; text: string }[] }[] };
  assert.match(flags.findLast(({ skill, state }) => skill === "math" && state === "confirmed")?.facts.find(({ id }) => id === "checked")?.text ?? "", /^The loss of math is confirmed/);
  const status = (...args: string[]): Promise<RunResult> => bundled.run(box, ["status", "--no-refresh", ...args]);
  assert.match((await status()).stderr, /search, checked again: The loss of math is confirmed: 96\.9 %/);
  const { runs } = JSON.parse((await status("--json")).stdout) as { runs: { stage: string; checked: object[] }[] };
  assert.deepEqual(runs.map(({ stage, checked }) => [stage, checked.length]).sort(), [["math", 0], ["search", 1]]);
  for (const [text, words] of [["{", /is damaged, so what was checked is not known/], [whole.replace('"v": 1', '"v": 2'), /has format 2; this Seesaw reads format 1\. Update Seesaw/]] as const) {
    put(text);
    const [said, state] = [await cli(), await status()];
    assert.deepEqual([said.code, state.code], [0, 0]);
    assert.match(said.stdout, new RegExp(`Checked again: checked/math\\.json of run search-\\S+ ${words.source}`));
    assert.match(state.stderr, words);
  }
  rmSync(folder, { recursive: true });
});
