"""Replay buffers and the ledger of draws."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from seesaw_runner.replay.buffer import Buffer, Ledger, ReplayError, build_buffer, ledger_totals, share_out
from seesaw_runner.replay.near_duplicates import NearDuplicates, jaccard, row_shingles, shingles

SKILLS = [{"id": "math", "check": {"kind": "number-after", "marker": "so"}}]


def write(path: Path, rows: list[dict]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def chat(prompt: str, answer: str, **fields) -> dict:
    return {"messages": [{"role": "user", "content": prompt}, {"role": "assistant", "content": answer}], **fields}


def words(seed: int, count: int = 12) -> str:
    source = random.Random(seed)
    return " ".join(f"w{source.randrange(1000)}" for _ in range(count))


def spec(*sources: tuple[str, str], rows: int = 10, quality=None, diversity=None) -> dict:
    origins = [{"stage": stage, "data": data, "skill": stage if stage == "math" else None} for stage, data in sources]
    return {"buffer": "main", "ratio": 0.1, "rows": rows, "from": origins, "quality": quality, "diversity": diversity}


def build(tmp_path: Path, replay: dict, seed: int = 0) -> Buffer:
    return build_buffer(replay, skills=SKILLS, seed=seed, root=tmp_path, trusted=False)


@pytest.mark.parametrize(
    ("total", "available", "shares"),
    [
        (10, [100, 100], [5, 5]),
        (10, [2, 100, 100], [2, 4, 4]),
        (11, [9, 9, 9], [4, 4, 3]),
        (10, [3, 3], [3, 3]),
        (5, [0, 9], [0, 5]),
        (5, [], []),
        (1, [5, 5], [1, 0]),
    ],
)
def test_even_shares_by_availability(total, available, shares):
    assert share_out(total, available) == shares


def test_the_same_seed_gives_the_same_buffer(tmp_path):
    math = write(tmp_path / "math.jsonl", [chat(words(i), f"so {i}") for i in range(50)])
    tool = write(tmp_path / "tool.jsonl", [chat(words(i + 99), f"t {i}") for i in range(4)])
    replay = spec(("math", math), ("tool", tool), rows=20)
    first = build(tmp_path, replay)
    assert first == build(tmp_path, replay) and first != build(tmp_path, replay, seed=1)
    assert [sum(row.since == stage for row in first.rows) for stage in ("math", "tool")] == [16, 4]
    assert first.sources[1] == {"stage": "tool", "data": "tool.jsonl", "rows": 4, "kept": 4, "taken": 4}
    first.save(tmp_path / "buffer.json")
    again = Buffer.load(tmp_path / "buffer.json")
    assert again == first and json.loads((tmp_path / "buffer.json").read_text())["v"] == 1
    values = again.values(tmp_path)
    assert [value["messages"][1]["content"] for value in values[:2]] == [f"so {row.line - 1}" for row in first.rows[:2]]
    assert not list(tmp_path.glob("*.tmp"))


def test_rows_of_an_array_on_one_line_are_told_apart(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps([chat(words(i), f"a {i}") for i in range(8)]))
    buffer = build(tmp_path, spec(("s", str(path)), rows=3))
    assert len({value["messages"][1]["content"] for value in buffer.values(tmp_path)}) == 3


def test_a_changed_file_is_noticed(tmp_path):
    data = write(tmp_path / "a.jsonl", [chat(words(i), "a") for i in range(3)])
    buffer = build(tmp_path, spec(("s", data)))
    write(tmp_path / "a.jsonl", [chat(words(i + 7), "a") for i in range(3)])
    with pytest.raises(ReplayError, match="line 1 of a.jsonl is no longer the row"):
        buffer.values(tmp_path)


def test_quality_by_reward_or_score(tmp_path):
    rewards = [
        {"reward": 1.0},
        {"reward": 0.69},
        {"reward": 0.7},
        {"score": 0.9},
        {"reward": 0.1, "score": 1.0},
        {},
        {"reward": "1.0"},
        {"reward": float("nan")},
        {"reward": True},
    ]
    data = write(tmp_path / "a.jsonl", [chat(words(i), f"a {i}", **fields) for i, fields in enumerate(rewards)])
    buffer = build(tmp_path, spec(("s", data), quality={"field": None, "min": 0.7}))
    assert [row.line for row in buffer.rows] == [1, 3, 4] and buffer.dropped == {
        "quality": 6,
        "duplicate": 0,
        "probe": 0,
    }
    assert [row.line for row in build(tmp_path, spec(("s", data), quality={"field": "score", "min": 0.7})).rows] == [
        4,
        5,
    ]
    with pytest.raises(ReplayError, match="no row of .* has a rank of at least 1"):
        build(tmp_path, spec(("s", data), quality={"field": "rank", "min": 1}))


def test_quality_by_the_skills_check(tmp_path):
    data = write(tmp_path / "m.jsonl", [chat("q 1", "so 2"), chat("q 2", "two")])
    assert [row.line for row in build(tmp_path, spec(("math", data), quality={"check": True})).rows] == [1]
    with pytest.raises(ReplayError, match="needs a skill for the stage other"):
        build(tmp_path, spec(("other", data), quality={"check": True}))


def test_bad_and_empty_rows_never_enter(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"messages":[]}\n{broken\n[]\n{"foo":1}\n' + json.dumps(chat("q", " ")) + "\n")
    with pytest.raises(ReplayError, match="the buffer main is empty"):
        build(tmp_path, spec(("s", str(path))))


def test_copies_always_and_near_duplicates_on_request_are_dropped(tmp_path):
    base = words(3, 30)
    rows = [chat(base, "done"), chat(base, "done"), chat(f"Please. {base}", "done"), chat(words(4, 30), "done")]
    data = write(tmp_path / "a.jsonl", rows)
    assert [row.line for row in build(tmp_path, spec(("s", data))).rows] == [1, 3, 4]
    diverse = build(tmp_path, spec(("s", data), diversity={"minhash": 0.8}))
    assert [row.line for row in diverse.rows] == [1, 4] and diverse.dropped["duplicate"] == 2


def test_shingles():
    assert len(shingles("a b c d e f")) == 2 and shingles("A  b\nC d e f") == shingles("a b c d e f")
    assert len(shingles("a b")) == 1 and shingles(" \n") == frozenset()
    assert len(shingles("你好世界再见")) == 2, "each Chinese character is a word"


def test_the_bands_find_near_duplicates_and_only_the_exact_similarity_decides():
    found = near = 0
    for seed in range(300):
        source = random.Random(seed)
        text = words(seed, 60).split()
        other = list(text)
        other[source.randrange(6, 54)] = "changed"
        a, b = row_shingles(chat(" ".join(text), "x")), row_shingles(chat(" ".join(other), "x"))
        index = NearDuplicates(0.8)
        assert index.add(a)
        if jaccard(a, b) >= 0.8:
            near += 1
            found += not index.add(b)
        else:
            assert index.add(b)
    assert near > 200 and found / near > 0.9


def test_the_ledger_counts_draws(tmp_path):
    ledger = Ledger(tmp_path / "ledger.jsonl")
    assert ledger.draw(1, ["b", "a", "b"], "main") == (3, 2)
    assert ledger.draw(2, [], "main") == (0, 0)
    ledger.draw(3, ["a"], "main")
    ledger.close()
    assert ledger_totals(tmp_path / "ledger.jsonl") == {"a": (2, 3), "b": (2, 1)}
    lines = [json.loads(line) for line in (tmp_path / "ledger.jsonl").read_text().splitlines()]
    assert lines[1] == {"v": 1, "seq": 2, "attempt": 1, "step": 1, "draws": [["a", 1], ["b", 2]], "buffer": "main"}


def test_a_resumed_attempt_voids_the_draws_of_lost_steps(tmp_path):
    path = tmp_path / "ledger.jsonl"
    first = Ledger(path, attempt=1)
    for step in range(1, 8):
        first.draw(step, [f"row{step}"], "main")
    with open(path, "ab") as file:
        file.write(b'{"v":1,"seq":99,"st')  # killed while writing
    second = Ledger(path, attempt=2, resumed_from=4)
    second.draw(5, ["row5"], "main")
    assert ledger_totals(path) == {f"row{step}": (1, step) for step in range(1, 6)}
    third = Ledger(path, attempt=3, resumed_from=None)
    third.draw(1, ["new"], "main")
    assert ledger_totals(path) == {"new": (1, 1)}
    seqs = [json.loads(line)["seq"] for line in path.read_bytes().split(b"\n") if line.endswith(b"}")]
    assert seqs == list(range(1, len(seqs) + 1))


def test_no_ledger_is_no_draws(tmp_path):
    assert ledger_totals(tmp_path / "absent.jsonl") == {}


def test_probes_never_get_into_a_buffer(tmp_path):
    """Neither the very row nor its prompt with another answer; rows without a prompt are compared whole."""
    source = write(
        tmp_path / "a.jsonl",
        [*(chat(words(i), f"a {i}") for i in range(6)), {"text": "one two three"}, {"text": "four five six"}],
    )
    probes = write(tmp_path / "p.jsonl", [chat(words(1), "a 1"), chat(words(4), "another"), {"text": "four five six"}])
    skills = [
        {"id": "s", "check": {"kind": "text"}, "probes": {"id": str(probes), "ood": str(tmp_path / "gone.jsonl")}}
    ]
    replay = spec(("s", str(source)), rows=20)
    buffer = build_buffer(replay, skills=skills, seed=0, root=tmp_path, trusted=False)
    assert [row.line for row in buffer.rows] == [1, 3, 4, 6, 7] and buffer.dropped["probe"] == 3
