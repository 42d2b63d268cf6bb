import assert from "node:assert/strict";
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { ReplayMembership } from "../../../../src/domain/rows/membership.ts";
import { rowHover } from "../../../../src/host/rows/rowHover.ts";
import { RowReader, type RowsInView } from "../../../../src/host/rows/rowReader.ts";
import { rolesOf } from "../../../../src/host/rows/rowRoles.ts";
import { arrayText, rowLenses, rowMarks } from "../../../../src/host/rows/rowWords.ts";
import { silentLog } from "../../../../src/util/log.ts";
import { FakeDocument, recorded } from "./recorded.ts";

const space = await recorded();
const all = (document: FakeDocument): { first: number; last: number }[] => [{ first: 0, last: document.lineCount - 1 }];
const read = async (document: FakeDocument, reader = new RowReader(space.host, silentLog)): Promise<RowsInView> => {
  const found = await reader.rows(document, all(document), { calm: true });
  assert.ok(found);
  return found;
};
const open = (name: string): FakeDocument => new FakeDocument(space.file(name), readFileSync(space.file(name), "utf8"));
const texts = ({ rows, knowledge }: RowsInView): Map<number, string[]> => new Map(rows.map(({ line, row }) => [line, rowLenses(row, knowledge).map(({ text }) => text)]));

test("a file is known by what pipelines name: data, probes, OOD probes, buffers; nothing else", () => {
  assert.deepEqual(rolesOf(space.file("math.train.jsonl"), space.views)[0]?.stages, ["math"]);
  assert.deepEqual(rolesOf(space.file("math.ood.jsonl"), space.views)[0]?.probes, [{ skill: "math", split: "ood" }]);
  assert.deepEqual(rolesOf(`${space.root}/other.jsonl`, space.views), []);
});

test("probe rows say how far they drifted, where, and since when their check fails", async () => {
  const found = await read(open("math.probe.jsonl"));
  const lenses = [...texts(found).values()].map(([text]) => text ?? "");
  assert.equal(lenses.length, 64);
  const lost = lenses.filter((text) => / · lost since M[23]$/.test(text));
  assert.ok(lost.length > 10, lenses.slice(0, 5).join("\n"));
  assert.ok(lost.every((text) => /^drift [+−]\d+\.\d nats at M[23]/.test(text)), lost[0]);
  for (const { row } of found.rows) {
    const [probe] = found.knowledge.probes.get(row.hashes.full) ?? [];
    assert.ok(probe);
    const checks = probe.row.cells.map(({ correct }) => correct);
    const [text] = rowLenses(row, found.knowledge).map((lens) => lens.text);
    // A line that ends out of sight has its marks over it.
    const [long] = rowLenses(row, found.knowledge, 101);
    assert.equal(long?.text, `${text} · ${probe.row.cells.map(({ label, correct }) => `${label} ${correct ? "✓" : "✗"}`).join("  ")}`);
    assert.equal(rowLenses(row, found.knowledge, 100)[0]?.text, text);
    const since = /lost since (M\d)/.exec(text ?? "")?.[1];
    // Worked out in another way: the check is wrong from there to the end, and was right just before.
    if (since !== undefined) {
      const place = probe.row.cells.findIndex(({ label }) => label === since);
      assert.deepEqual([checks.slice(place).includes(true), checks[place - 1]], [false, true], text);
    }
    const worst = Math.max(...probe.row.cells.flatMap(({ delta }) => delta ?? []));
    if (worst > 0.1) assert.ok(text?.startsWith(`drift −${worst.toFixed(1)} nats at `), `${text} ${worst}`);
  }
});

test("a click leads to the prompt", async () => {
  const { rows, knowledge } = await read(open("search.ood.jsonl"));
  const target = rowLenses(rows[5]!.row, knowledge)[0]?.target;
  assert.deepEqual(target, { file: `${space.root}/replay/seesaw.yaml`, skill: "search", split: "ood", row: 5 });
});

test("marks: a check per checkpoint and the worst token, as the traces have it; nothing coloured within the noise", async () => {
  const reader = new RowReader(space.host, silentLog);
  const { rows, knowledge } = await read(open("math.probe.jsonl"), reader);
  const probes = rows.map(({ row }) => knowledge.probes.get(row.hashes.full)![0]!);
  const tokens = reader.worstTokens(knowledge, probes);
  let coloured = 0;
  for (const [index, probe] of probes.entries()) {
    const token = tokens[index] ?? null;
    const marks = rowMarks(probe, token);
    assert.match(marks.marks, /^M0 [✓✗]  M1 [✓✗]  M2 [✓✗]  M3 [✓✗]$/);
    const film = knowledge.film(probe)!;
    const falls = film.frames.flatMap(({ label, cells }) => (cells ?? []).flatMap((cell, place) => (cell.coloured ? [{ label, place, delta: cell.delta! }] : []))).sort((a, b) => a.delta - b.delta);
    assert.equal(token?.delta ?? null, falls[0]?.delta ?? null);
    if (token === null) continue;
    coloured++;
    assert.equal(token.display, film.tokens[falls[0]!.place]!.display);
    assert.match(marks.token, new RegExp(`^‘.+’ −\\d+\\.\\d at ${token.label}$`));
    assert.ok(marks.tokenColour === "lost" || marks.tokenColour === "weakened");
  }
  assert.ok(coloured > 20);
  const quiet = rowMarks({ ...probes[0]!, row: { ...probes[0]!.row, withinNoise: true } }, tokens[0] ?? null);
  assert.deepEqual([quiet.marksColour, quiet.token, quiet.tokenColour], ["plain", "", "plain"]);
});

test("rows of a train file say in which buffer they are and how often they were drawn, or why not", async () => {
  const found = await read(open("math.train.jsonl"));
  const lenses = [...texts(found).values()].map(([text]) => text ?? "");
  assert.equal(lenses.length, 2000);
  const members = lenses.filter((text) => text.startsWith("replay: "));
  const record = found.knowledge.replay.find(({ record: { buffer } }) => buffer === "after-math")!.record;
  assert.ok(members.length >= record.rows.length);
  assert.ok(members.some((text) => /replay: after-math since math · drawn \d+×/.test(text)), members[0]);
  const low = found.rows.filter(({ row }) => /below the quality threshold/.test(rowLenses(row, found.knowledge)[0]?.text ?? ""));
  const wanted = readFileSync(space.file("math.train.jsonl"), "utf8").split("\n").filter((line) => line !== "" && (JSON.parse(line) as { reward: number }).reward < 0.7);
  assert.equal(low.length, wanted.length);
  assert.ok(low.length > 0, "the sample has rows below the threshold");
  assert.ok(lenses.some((text) => /not in the replay buffers?: .*not among the \d+ of [\d,]+ taken at random/.test(text)));
  assert.deepEqual([...texts(await read(open("format.train.jsonl"))).values()].flat(), [], "no buffer draws from it");
});

test("the hover: tokens, answers, membership; and it is silent where nothing is known", async () => {
  const probes = await read(open("math.probe.jsonl"));
  const hover = rowHover(probes.rows[0]!.row, probes.knowledge) ?? "";
  assert.match(hover, /\*\*math\\?.* · compared with M1 · \[Show Token Drift\]\(command:seesaw\.showDrift\?%5B%7B/);
  assert.match(hover, /\| M3\u00a0+\u2060 \| [✓✗]\u00a0+\u2060 \| .*«/);
  assert.match(hover, /Greedy answers:\n- /);
  assert.match(hover, /What is 56 \\\+ 68\\\?/);
  const train = await read(open("math.train.jsonl"));
  const [member] = train.knowledge.replay[0]!.record.rows;
  const row = train.rows.find(({ row: { hashes } }) => hashes.full === member?.hash)!.row;
  assert.match(rowHover(row, train.knowledge) ?? "", /In the replay buffer\.\n\n- buffer \*\*after\\-math\*\*: came in with the data of math, replayed in search, drawn \d+×, (?:at step|from step)/);
  const near = new ReplayMembership([{ ...train.knowledge.replay[0]!.record, rows: [{ ...member!, near: 0.61 }] }]);
  assert.match(rowHover(row, { ...train.knowledge, membership: near }) ?? "", /step \d+.*, taken first for its prompt: similarity 0\.61 to a row that "near" names$/);
  const low = train.rows.find(({ row: { value } }) => value instanceof Map && Number((value.get("reward") as { text: string }).text) < 0.7)!.row;
  assert.match(rowHover(low, train.knowledge) ?? "", /Not in a replay buffer\.\n\n- buffer \*\*after\\-math\*\*, replayed in search: below the quality threshold/);
  const format = await read(open("format.train.jsonl"));
  assert.equal(rowHover(format.rows[0]!.row, format.knowledge), null);
});

test("an edited row says so; one that moved, or is written in another way, says the same", async () => {
  const document = open("math.probe.jsonl");
  const reader = new RowReader(space.host, silentLog);
  const before = texts(await read(document, reader));
  const parsed = reader.parsed;
  document.lines.unshift("", "");
  document.version++;
  const moved = texts(await read(document, reader));
  assert.deepEqual(moved.get(2), before.get(0));
  assert.equal(reader.parsed, parsed, "nothing was parsed again");
  document.edit(2, document.lines[2]!.replaceAll(": ", ":").replaceAll(", ", " , "));
  assert.deepEqual(texts(await read(document, reader)).get(2), before.get(0), "blanks are no difference");
  document.edit(2, document.lines[2]!.replace("What", "what"));
  assert.deepEqual(texts(await read(document, reader)).get(2), ["no scores: edited or added since the probes were scored"]);
  assert.equal(reader.parsed, parsed + 2, "only the edited line was parsed");
});

test("CRLF, a byte order mark, bad and blank lines and U+2028 change nothing for the others", async () => {
  const odd = await recorded((root) => {
    const file = `${root}/data/math.probe.jsonl`;
    const rows = readFileSync(file, "utf8").split("\n").slice(0, 4);
    writeFileSync(file, [rows[0], rows[1]!.replace("What", "\u2028What"), rows[2], rows[3]].join("\n"));
  });
  const lines = readFileSync(odd.file("math.probe.jsonl"), "utf8").split("\n");
  const document = new FakeDocument(odd.file("math.probe.jsonl"), `\ufeff${[lines[0], "", "{bad", lines[1], '{"a": 1}{"b": 2}', "[1]", lines[3]].join("\r\n")}\r\n`);
  const found = await new RowReader(odd.host, silentLog).rows(document, all(document), { calm: true });
  const lenses = texts(found!);
  assert.deepEqual([...lenses.keys()], [0, 3, 6]);
  for (const line of [0, 3, 6]) assert.match(lenses.get(line)?.[0] ?? "", /^drift /);
});

test("a row that looks like Markdown, HTML or a command stays text", async () => {
  const evil = "[x](command:workbench.action.quit) <img src=x onerror=alert(1)> **b** `c` | d\n# h\n- https://example.com www.example.com a@b.cd $(zap) &amp; ![i](http://e.vil/i.png)";
  const hostile = await recorded((root) => {
    const file = `${root}/data/math.probe.jsonl`;
    const rows = readFileSync(file, "utf8").split("\n");
    rows[0] = JSON.stringify({ messages: [{ role: "user", content: evil }, { role: "assistant", content: evil }] });
    writeFileSync(file, rows.join("\n"));
  });
  const document = new FakeDocument(hostile.file("math.probe.jsonl"), readFileSync(hostile.file("math.probe.jsonl"), "utf8"));
  const found = (await new RowReader(hostile.host, silentLog).rows(document, [{ first: 0, last: 0 }], { calm: true }))!;
  const hover = rowHover(found.rows[0]!.row, found.knowledge) ?? "";
  const ours = /\[Show Token Drift\]\(command:seesaw\.showDrift\?[^)]*\)/g;
  assert.equal([...hover.matchAll(ours)].length, 1);
  const rest = hover.replace(ours, "");
  assert.doesNotMatch(rest, /(?<!\\)[<[\]`&!@$#]/, "every sign of Markdown is escaped");
  assert.doesNotMatch(rest, /https?:|www\./);
  for (const line of rest.split("\n").filter((one) => one.startsWith("| M"))) assert.equal(line.match(/(?<!\\)\|/g)?.length, 5, line);
});

test("a long line waits until its document is calm; a cancelled or outdated request gets nothing", async () => {
  const document = open("math.train.jsonl");
  const reader = new RowReader(space.host, silentLog);
  const long = JSON.stringify({ messages: [{ role: "user", content: "x".repeat(200_000) }, { role: "assistant", content: "y" }], reward: 0.1 });
  document.edit(0, long);
  const busy = (await reader.rows(document, [{ first: 0, last: 1 }], { calm: false }))!;
  assert.deepEqual([busy.again, busy.rows.map(({ line }) => line)], [true, [1]]);
  const calm = (await reader.rows(document, [{ first: 0, last: 1 }], { calm: true }))!;
  assert.match(rowLenses(calm.rows[0]!.row, calm.knowledge)[0]?.text ?? "", /below the quality threshold \(reward 0.1, at least 0.7\)/);
  assert.equal((await reader.rows(document, [{ first: 0, last: 0 }], { calm: false }))!.again, false, "known by now");
  assert.equal(await reader.rows(document, all(document), { calm: true, token: { isCancellationRequested: true } }), null);
  const outdated = new RowReader(space.host, silentLog).rows(document, all(document), { calm: true });
  document.version++;
  assert.equal(await outdated, null);
});

test("a new draw is read, the traces are not read again for it; a new trace is", async () => {
  const live = await recorded();
  let opened = 0;
  const store = await live.host.traces();
  const reader = new RowReader({ ...live.host, traces: () => Promise.resolve({ open: (path) => (opened++, store.open(path)) }) }, silentLog);
  const train = new FakeDocument(live.file("math.train.jsonl"), readFileSync(live.file("math.train.jsonl"), "utf8"));
  const probes = new FakeDocument(live.file("math.probe.jsonl"), readFileSync(live.file("math.probe.jsonl"), "utf8"));
  await reader.rows(probes, all(probes), { calm: true });
  const count = opened;
  assert.ok(count >= 4);
  const draws = async (): Promise<number> => {
    const found = (await reader.rows(train, all(train), { calm: true }))!;
    return found.rows.flatMap(({ row }) => found.knowledge.membership.of(row.hashes.full)).reduce((sum, member) => sum + member.draws, 0);
  };
  const before = await draws();
  const run = live.views[0]!.chain!.newest["search"]!;
  const [member] = (await live.host.ledgers([{ dir: run.dir, run: run.id, stage: run.stage }])).records[0]!.rows;
  appendFileSync(`${run.dir}/ledger.jsonl`, `${JSON.stringify({ v: 1, seq: 999, attempt: 1, step: 61, draws: [[member!.hash, 5]], buffer: "after-math" })}\n`);
  run.state.ledger.push({} as (typeof run.state.ledger)[0]);
  assert.equal(await draws(), before + 5);
  await reader.rows(probes, all(probes), { calm: true });
  assert.equal(opened, count, "no trace was opened for a draw");
  live.views[0]!.chain!.checkpoints[2]!.traces = {};
  const found = (await reader.rows(probes, all(probes), { calm: true }))!;
  assert.ok(opened > count);
  assert.match(rowMarks(found.knowledge.probes.get(found.rows[0]!.row.hashes.full)![0]!, null).marks, /M2 –/);
});

test("what cannot be read is a problem, not the end", async () => {
  const failing = { ...space.host, traces: () => Promise.reject(new Error("SQLite cannot be loaded here.")) };
  const document = open("math.probe.jsonl");
  const found = (await new RowReader(failing, silentLog).rows(document, all(document), { calm: true }))!;
  assert.deepEqual(found.knowledge.problems, ["Drift is not shown: SQLite cannot be loaded here."]);
  assert.deepEqual([...texts(found).values()].flat(), []);
  const train = open("math.train.jsonl");
  assert.match([...texts((await new RowReader(failing, silentLog).rows(train, all(train), { calm: true }))!).values()].flat().join(), /replay: after-math/);
});

test("over a JSON array one sentence is said, over rows none", () => {
  assert.match(arrayText("[") ?? "", /^one JSON array/);
  assert.match(arrayText('\ufeff  [{"text": "a"},') ?? "", /^one JSON array/);
  for (const line of ["", '{"text": "["}', '["a header", 1]']) assert.equal(arrayText(line), null, line);
});
