import assert from "node:assert/strict";
import { test } from "node:test";
import { confusionsOf, mostTokens, planeOf, radiusOf, shownEntries, skillsIn, sweepsOf, testOf } from "../../../../src/domain/arena/arenaCharts.ts";
import { spread } from "../../../../src/domain/arena/arenaDrawings.ts";
import { ticks } from "../../../../src/domain/arena/arenaMarks.ts";
import type { ArenaResult, Share } from "../../../../src/domain/arena/arenaResult.ts";
import { placeLabels, type Labelled } from "../../../../src/domain/arena/placeLabels.ts";
import { seededRandom } from "../../../../src/domain/statistics/random.ts";
import { madeUpArena, skills } from "./madeUpArena.ts";

const arena = madeUpArena();
const share = (value: number, low = value, high = value): Share => ({ value, interval: { low, high }, seeds: [{ seed: 0, value }] });

test("the plane has every system with scores once, each with all its seeds; points of a curve other than its merge are left to the curve", () => {
  const plane = planeOf(arena);
  assert.ok(plane);
  assert.equal(plane.points.length, 15);
  assert.ok(plane.points.some(({ id }) => id === "merge-task-arithmetic") && !plane.points.some(({ id }) => /-w0_3|gone/.test(id)));
  assert.deepEqual(plane.points.find(({ id }) => id === "replay-5")?.seeds.map(({ seed }) => seed), [0, 1, 2]);
  assert.deepEqual(plane.points.find(({ id }) => id === "distill-forward-kl")?.seeds.map(({ seed }) => seed), [0, 1]);
  assert.deepEqual(plane.points.filter(({ family }) => family === "chain").map(({ id }) => id), ["chain"]);
  for (const { x, y } of plane.points) assert.ok(x.interval.low >= plane.x.low && x.interval.high <= plane.x.high && y.interval.low >= plane.y.low && y.interval.high <= plane.y.high);
});

test("axes are whole tenths around the data and never less than three of them", () => {
  const of = (old: Share, fresh: Share): ReturnType<typeof planeOf> => {
    const entries = arena.entries.slice(0, 1).map((entry) => ({ ...entry, scores: entry.scores && { ...entry.scores, oldSkills: old, newSkill: fresh } }));
    return planeOf({ ...arena, entries } as ArenaResult);
  };
  assert.deepEqual(of(share(0.52, 0.47, 0.61), share(1, 0.97, 1)), { ...of(share(0.52, 0.47, 0.61), share(1, 0.97, 1)), x: { low: 0.4, high: 0.7 }, y: { low: 0.7, high: 1 } });
  assert.deepEqual(of(share(0), share(0.2, 0.1, 0.9))?.x, { low: 0, high: 0.3 });
  assert.deepEqual(ticks({ low: 0.4, high: 0.7 }), [0.4, 0.5, 0.6, 0.7]);
  assert.deepEqual(ticks({ low: 0.1, high: 1 }), [0.2, 0.4, 0.6, 0.8, 1]);
  assert.equal(planeOf({ ...arena, entries: [] }), null);
});

test("the area of a mark is proportional to its tokens, and what cost none can still be seen", () => {
  const most = mostTokens(planeOf(arena)?.points ?? []);
  assert.equal(most, 492_000);
  assert.ok(Math.abs((radiusOf(most, most) / radiusOf(most / 4, most)) ** 2 - 4) < 1e-9);
  assert.deepEqual([radiusOf(0, most), radiusOf(null, most), radiusOf(0, 0)], [3.5, 3.5, 3.5]);
});

test("a sensitivity curve is sorted by its weight and has every skill", () => {
  const [curve, ...more] = sweepsOf(arena);
  assert.ok(curve);
  assert.deepEqual([more.length, curve.title, curve.skills, curve.points.map(({ weight }) => weight)], [0, "merge, task-arithmetic", skills, [0.3, 0.5, 0.7, 1]]);
  assert.ok(curve.points.every((point) => skills.every((skill) => point.skills[skill]?.seeds.length === 3)));
  assert.deepEqual(sweepsOf({ ...arena, entries: [] }), []);
});

test("confusion: an expert a row, a skill a column, shares of each skill's prompts", () => {
  const tables = confusionsOf(arena);
  assert.deepEqual(tables.map(({ id, skills: of }) => [id, of]), [["experts", skills], ["together-10", skills]]);
  assert.deepEqual(tables[0]?.rows.map(({ expert }) => expert), [...skills, "base"]);
  for (const column of [0, 1, 2, 3]) assert.ok(Math.abs((tables[0]?.rows ?? []).reduce((sum, { shares }) => sum + (shares[column] ?? 0), 0) - 1) < 1e-9);
});

test("every system but the chain and the missing one has its tests, paired over the seeds that both have", () => {
  assert.deepEqual([skillsIn(arena), shownEntries(arena).length], [skills, 18]);
  assert.equal(testOf(arena, "chain", "old-skills"), undefined);
  assert.equal(testOf(arena, "gone", "old-skills"), undefined);
  const replay = testOf(arena, "replay-10", "old-skills");
  assert.ok(replay?.estimate && replay.estimate > 0.5 && (replay.adjusted ?? 1) < 0.001 && replay.seeds === 3);
  assert.equal(testOf(arena, "distill-forward-kl", "old-skills")?.seeds, 2);
});

test("names cover neither each other nor a mark, and stay inside, however crowded it is", () => {
  const random = seededRandom(3);
  const area = { left: 0, top: 0, width: 900, height: 420 };
  for (let round = 0; round < 20; round++) {
    // Fifteen systems, most of them at the upper edge.
    const marks: Labelled[] = Array.from({ length: 15 }, (_, index) => ({ x: 60 + random() * 780, y: index < 9 ? 50 : 60 + random() * 340, radius: 3 + random() * 8, width: 60 + random() * 130, height: 14 }));
    const labels = placeLabels(marks, area);
    const overlap = (a: (typeof labels)[number], b: (typeof labels)[number]): boolean => a.left < b.left + b.width && b.left < a.left + a.width && a.top < b.top + b.height && b.top < a.top + a.height;
    labels.forEach((label, index) => {
      assert.ok(label.left >= area.left && label.top >= area.top && label.left + label.width <= area.width && label.top + label.height <= area.height, `round ${round}: a name leaves the picture`);
      assert.deepEqual(labels.filter((other, place) => place > index && overlap(label, other)), [], `round ${round}`);
    });
  }
  const [only] = placeLabels([{ x: 100, y: 100, radius: 5, width: 50, height: 14 }], area);
  assert.deepEqual(only, { left: 108, top: 93, width: 50, height: 14, far: false });
  assert.deepEqual(spread([10, 11, 50], 13, 0, 100), [10, 23, 50]);
  assert.deepEqual(spread([95, 96], 13, 0, 100), [87, 100]);
});
