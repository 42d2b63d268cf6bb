import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { gunzipSync } from "node:zlib";
import { alarmsIn } from "../../src/domain/battery/alarmText.ts";
import { evaluate, type BankFile } from "../../src/domain/battery/bank.ts";
import { candidateById } from "../../src/domain/battery/candidates.ts";
import { ranking } from "../../src/domain/battery/choose.ts";
import { readRawRun, type RawRun } from "../../src/domain/battery/rawRun.ts";
import { truthOfRun } from "../../src/domain/battery/truth.ts";
import { repo } from "../unit/cli/bundledCli.ts";

// Two runs of each bank made again from their seeds: what REPORT_CARD.md is computed from is not made up. Of bank A a skill
// lost, and a model that only got more hesitant; of bank B everything lost, and a DPO too gentle to hurt. Both runs of a bank
// begin at one start, which is trained again as well.
const again = { A: ["a-061", "a-005"], B: ["b-015", "b-108"] };
const python = process.env["SEESAW_PYTHON"] ?? join(repo, ".venv/bin/python");
const folder = mkdtempSync(join(tmpdir(), "seesaw-battery-"));
after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));

const json = <T>(path: string): T => JSON.parse(readFileSync(join(repo, path), "utf8")) as T;

// Which detector won, and its limit, are bank A's; bank B is judged with them.
const chosen = json<BankFile>("media/battery/bank-A.json");
const winner = ranking(chosen)[0]?.id as string;
const { knob } = chosen.candidates.find(({ id }) => id === winner) as BankFile["candidates"][number];

for (const [name, ids] of Object.entries(again)) {
  test(`a sample of the runs of bank ${name} comes out again as it is in the repository`, () => {
    const bank = json<BankFile>(`media/battery/bank-${name}.json`);
    const env = { ...process.env, HF_HUB_OFFLINE: "1", TOKENIZERS_PARALLELISM: "false" };
    execFileSync(python, ["-m", "battery", "--bank", name, "--only", ids.join(","), "--cache", folder, "--jobs", "2"], { cwd: join(repo, "runner"), env, stdio: "pipe" });
    for (const id of ids) compare(bank, name, id);
  });
}

function compare(bank: BankFile, name: string, id: string): void {
  const path = join(folder, "raw", name, `${id}.json.gz`);
  assert.ok(existsSync(path), path);
  const run = readRawRun(JSON.parse(gunzipSync(readFileSync(path)).toString("utf8"))) as RawRun;
  const recorded = bank.runs.find((one) => one.id === id);
  assert.ok(recorded !== undefined, `${id} is in bank-${name}.json`);
  const { class: kind, skills } = truthOfRun(run);
  assert.equal(kind, recorded.class);
  assert.deepEqual(run.skills, recorded.skills);
  run.skills.forEach((skill, place) => {
    const [now, then] = [skills[skill], recorded.truth[place]];
    assert.equal(now?.class, then?.class, `${id} ${skill}`);
    // Another processor rounds otherwise, and a training amplifies it; on the same one the numbers are the same.
    now?.loss.forEach((loss, look) => assert.ok(Math.abs(loss - (then?.loss[look] ?? NaN)) <= 6, `${id} ${skill} look ${look}: ${loss} against ${then?.loss[look]} points`));
  });
  const place = bank.candidates.findIndex((one) => one.id === winner);
  const found = evaluate(candidateById(winner), [run], knob).alarms[0] as string;
  const [here, there] = [alarmsIn(found), alarmsIn(recorded.alarms[place] as string)];
  here.forEach((look, skill) => assert.ok((look === null) === (there[skill] === null) && Math.abs((look ?? 0) - (there[skill] ?? 0)) <= 1, `${id}: alarms ${found} against ${recorded.alarms[place]}`));
}
