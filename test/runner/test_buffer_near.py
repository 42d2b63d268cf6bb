"""Rows that a buffer takes first because they are like named ones: `near`."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
from conftest import chat, copy_rows, events, outcome, write_rows
from seesaw_runner.preflight.data import check_data
from seesaw_runner.preflight.packages import _WHEN
from seesaw_runner.replay import coverage, features
from seesaw_runner.replay.buffer import Buffer, ReplayError, build_buffer
from seesaw_runner.replay.nearness import _turns

TOPICS = {
    "sum": "add number total plus count digit result",
    "fish": "river salmon trout water swim pond lake",
    "code": "loop function return variable class compile",
}


def topic_rows(counts: dict[str, int], seed: int = 5, crossed: bool = False) -> list[dict]:
    """crossed: the answers have another topic's words."""
    source, rows = random.Random(seed), []
    for topic, count in counts.items():
        words = TOPICS[topic].split()
        answer = TOPICS["sum" if topic == "fish" else "fish"] if crossed else topic
        rows += [
            chat(" ".join(source.choices(words, k=8)) + f" n{k}", f"{answer} {k}", topic=topic) for k in range(count)
        ]
    return rows


PROBES = [chat("river salmon swim", "yes"), chat("add plus total", "no"), "{torn", chat("unheard words", "?")]


@pytest.fixture
def probes(tmp_path):
    path = tmp_path / "probes.jsonl"
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in PROBES))
    return str(path)


def spec(tmp_path, values: list[dict], lines: list[int] | None, *, stage: str = "old", **more) -> dict:
    data = write_rows(tmp_path / f"{stage}.jsonl", values)
    near = {} if lines is None else {"near": {"rows": str(tmp_path / "probes.jsonl"), "lines": lines}}
    origin = {"stage": stage, "data": str(data), "skill": None}
    return {
        "buffer": "main",
        "ratio": 0.1,
        "rows": 12,
        "from": [origin],
        "quality": None,
        "diversity": None,
        **near,
        **more,
    }


def build(tmp_path, replay: dict, seed: int = 0, skills=(), **more) -> Buffer:
    return build_buffer(replay, skills=list(skills), seed=seed, root=tmp_path, trusted=False, **more)


def topics(buffer: Buffer, tmp_path, near: bool | None = None) -> dict[str, int]:
    rows = zip(buffer.rows, buffer.values(tmp_path), strict=True)
    found = [value["topic"] for row, value in rows if near is None or (row.near is not None) == near]
    return {name: found.count(name) for name in sorted(set(found))}


def test_the_nearest_rows_are_taken_first_and_only_up_to_half_of_the_share(tmp_path, probes):
    rows = topic_rows({"sum": 150, "fish": 4, "code": 50}, crossed=True)
    replay = spec(tmp_path, rows, [1])
    buffer = build(tmp_path, replay)
    assert len(buffer.rows) == 12 and topics(buffer, tmp_path, near=True) == {"fish": 4}, (
        "no other row has a word of it"
    )
    (told,) = buffer.nearness
    assert (told["stage"], told["rows"], told["compared"]) == ("old", 4, 204)
    assert told["mean"] == pytest.approx(np.mean([row.near for row in buffer.rows if row.near]), abs=1e-6)
    assert told["mean"] > 0.2 > told["random"]["mean"]

    rows = topic_rows({"fish": 90, "sum": 90}, crossed=True)
    many = build(tmp_path, spec(tmp_path, rows, [1]))
    near = [row for row in many.rows if row.near is not None]
    assert len(near) == 6 and topics(many, tmp_path, near=True) == {"fish": 6}
    # By hand: the same similarity, of prompts alone.
    table = features.tfidf([*rows, PROBES[0]], text=features.prompt_text).toarray()
    likeness = np.round(table[:-1] @ table[-1], 6)
    best = sorted(range(180), key=lambda i: (-likeness[i], i))[:6]
    assert [row.line for row in near] == sorted(i + 1 for i in best)
    assert [row.near for row in near] == pytest.approx([float(likeness[i]) for i in sorted(best)], abs=1e-6)


def test_the_same_spec_gives_the_same_buffer_and_the_seed_only_decides_the_rest(tmp_path, probes):
    replay = spec(tmp_path, topic_rows({"sum": 80, "fish": 40, "code": 80}), [1, 2])
    first, other = build(tmp_path, replay), build(tmp_path, replay, seed=1)
    assert first == build(tmp_path, replay) and first.rows != other.rows
    nearest = [[row for row in one.rows if row.near is not None] for one in (first, other)]
    assert nearest[0] == nearest[1] and len(nearest[0]) == 6
    plain = build(tmp_path, spec(tmp_path, topic_rows({"sum": 80, "fish": 40, "code": 80}), None))
    assert plain.nearness == [] and all(row.near is None for row in plain.rows)


def test_named_rows_take_turns_and_equal_ones_go_by_line(tmp_path, probes):
    likeness = np.array([[0.9, 0.1], [0.8, 0.0], [0.7, 0.2], [0.8, 0.2]], np.float32)
    assert list(_turns(likeness)) == [0, 2, 1, 3], "the second has the third before the fourth, both 0.2"
    assert list(_turns(np.zeros((3, 2), np.float32))) == []
    buffer = build(tmp_path, spec(tmp_path, topic_rows({"sum": 60, "fish": 60, "code": 60}), [1, 2]))
    assert topics(buffer, tmp_path, near=True) == {"fish": 3, "sum": 3}
    same = [chat("river", f"{k}", topic="fish") for k in range(20)]
    assert [row.line for row in build(tmp_path, spec(tmp_path, same, [1], rows=6)).rows if row.near] == [1, 2, 3]


def test_with_quotas_each_stage_has_its_own_half(tmp_path, probes):
    replay = spec(tmp_path, topic_rows({"fish": 30, "sum": 30}), [1], stage="a", quotas={"a": 9, "b": 4, "c": 1})
    replay["from"] += spec(tmp_path, topic_rows({"fish": 1, "code": 30}, 6), [1], stage="b")["from"]
    replay["from"] += spec(tmp_path, topic_rows({"fish": 9}, 7), [1], stage="c")["from"]
    buffer = build(tmp_path, replay)
    assert [(source["taken"], source["quota"]) for source in buffer.sources] == [(9, 9), (4, 4), (1, 1)]
    assert [(told["stage"], told["rows"]) for told in buffer.nearness] == [("a", 4), ("b", 1), ("c", 0)]
    assert [row.since for row in buffer.rows] == ["a"] * 9 + ["b"] * 4 + ["c"]


@pytest.mark.parametrize(
    "diversity", [{"k_center": {"features": "tfidf"}}, {"clusters": {"count": 3, "features": "tfidf"}}]
)
def test_the_rest_stands_for_the_others(tmp_path, probes, diversity):
    rows = topic_rows({"sum": 40, "fish": 35, "code": 20})
    diversity = {"minhash": 0.9, **diversity}
    buffer = build(tmp_path, spec(tmp_path, rows, [1], rows=10, diversity=diversity))
    assert len({row.hash for row in buffer.rows}) == 10 and topics(buffer, tmp_path, near=True) == {"fish": 5}
    assert topics(buffer, tmp_path, near=False).keys() >= {"sum", "code"}
    plain = build(tmp_path, spec(tmp_path, rows, None, rows=10, diversity=diversity))
    assert buffer.coverage[0]["random"] == plain.coverage[0]["random"], "the same choice by chance to be held against"
    assert buffer == build(tmp_path, spec(tmp_path, rows, [1], rows=10, diversity=diversity))


def test_k_center_goes_on_from_the_rows_that_are_taken():
    table = np.random.default_rng(1).normal(size=(60, 5)).astype(np.float32)
    table /= np.linalg.norm(table, axis=1, keepdims=True)
    away = 1 - table @ table.T
    order = [7, 9]
    while len(order) < 6:
        left = [i for i in range(60) if i not in order]
        order.append(max(left, key=lambda i: (away[i, order].min(), -i)))
    assert coverage.k_center(table, 6, random.Random(0), [7, 9]) == sorted(order)
    assert coverage.k_center(table, 60, random.Random(0), [7, 9]) == list(range(60))


def test_rows_too_many_to_compare_are_thinned_out_and_what_is_near_stays(tmp_path, probes, monkeypatch):
    rows = topic_rows({"fish": 30, "sum": 30})
    monkeypatch.setattr(features, "MOST_ROWS", 12)
    buffer = build(tmp_path, spec(tmp_path, rows, [1], rows=8, diversity={"k_center": {"features": "tfidf"}}))
    assert buffer.nearness[0]["compared"] == 12 == buffer.coverage[0]["compared"]
    assert len({row.hash for row in buffer.rows}) == 8 and topics(buffer, tmp_path, near=True) == {"fish": 4}
    half = build(
        tmp_path, spec(tmp_path, rows, [1], rows=60, diversity={"clusters": {"count": 2, "features": "tfidf"}})
    )
    assert len({row.hash for row in half.rows}) == 60


def test_a_probe_is_never_taken_however_near_it_is(tmp_path, probes):
    rows = [*topic_rows({"sum": 20}), chat("river salmon swim", "another answer", topic="fish")]
    skills = [{"id": "s", "check": {"kind": "text"}, "probes": {"id": probes}}]
    near = build(tmp_path, spec(tmp_path, rows, [1]), skills=skills)
    assert near.dropped["probe"] == 1 and near.nearness[0]["rows"] == 0
    assert topics(near, tmp_path) == {"sum": 12}
    assert topics(build(tmp_path, spec(tmp_path, rows, [1])), tmp_path, near=True) == {"fish": 1}


def test_buffer_json_says_which_rows_and_older_ones_are_read(tmp_path, probes):
    path = tmp_path / "buffer.json"
    buffer = build(tmp_path, spec(tmp_path, topic_rows({"fish": 30, "sum": 30}), [1]))
    buffer.save(path)
    assert Buffer.load(path) == buffer
    written = json.loads(path.read_text())
    assert sum("near" in row for row in written["rows"]) == 6 == written["nearness"][0]["rows"]
    for row in written["rows"]:
        row.pop("near", None)
    del written["nearness"]
    path.write_text(json.dumps(written))
    older = Buffer.load(path)
    assert [row.hash for row in older.rows] == [row.hash for row in buffer.rows] and older.nearness == []
    assert all(row.near is None for row in older.rows)


def test_lines_that_are_not_there_are_said_before_the_run(tmp_path, probes):
    def said(lines: list[int]) -> list[tuple[str, str, str]]:
        replay = spec(tmp_path, topic_rows({"sum": 9}), lines)
        found = check_data(
            {"recipe": "sft", "data": replay["from"][0]["data"], "replay": replay, "skills": []}
        ).findings
        return [(one.severity, one.message, one.where) for one in found]

    assert said([1, 4]) == []
    names = "`near` of the buffer main names rows"
    assert said([1, 3, 9]) == [("warning", f"{names} that are not there: lines 3, 9", f"{probes}:3")]
    assert said([9]) == [("error", f"{names} of {probes} that are not there: line 9", probes)]
    with pytest.raises(ReplayError, match="names rows of .* that are not there: lines 3, 5"):
        build(tmp_path, spec(tmp_path, topic_rows({"sum": 9}), [3, 5]))
    (tmp_path / "probes.jsonl").unlink()
    assert said([1])[0][1] == "the rows that `near` of the buffer main names cannot be read: No such file or directory"
    with pytest.raises(ReplayError, match="cannot be read: No such file"):
        build(tmp_path, spec(tmp_path, topic_rows({"sum": 9}), [1]))
    assert _WHEN["scikit-learn"]({"replay": spec(tmp_path, [], [1])})
    assert not _WHEN["scikit-learn"]({"replay": spec(tmp_path, [], None)})


def test_a_run_takes_them_and_tells_that_the_probes_are_no_longer_independent(make_run, recipe, tmp_path):
    rows = copy_rows(30, 5)
    old = write_rows(tmp_path / "project" / "data" / "old.jsonl", rows)
    named = write_rows(tmp_path / "project" / "data" / "named.jsonl", copy_rows(4, 8))
    replay = {
        "buffer": "main",
        "ratio": 1,
        "rows": 10,
        "quality": None,
        "diversity": None,
        "near": {"rows": str(named), "lines": [2, 4]},
        "from": [{"stage": "earlier", "data": str(old), "skill": None}],
    }
    skill = {"id": "copy", "probes": {"id": str(named)}, "check": {"kind": "text"}, "own_stage": None}
    run = make_run(recipe="replay", data=None, replay=replay, options={"buffer": "main"}, skills=[skill])
    assert recipe("replay", run) == 0, outcome(run)
    written = json.loads((run / "buffer.json").read_text())
    assert written["nearness"][0]["rows"] == 5 == sum("near" in row for row in written["rows"])
    (told,) = [event for event in events(run, "warning") if event["code"].startswith("near-")]
    assert (told["code"], told["severity"], told["where"]) == ("near-probes", "info", f"{named}:2")
    assert "chosen by probes (lines 2, 4), which are thus no longer independent of the training" in told["message"]
