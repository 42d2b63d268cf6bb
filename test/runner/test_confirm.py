"""A skill's check on further prompts: both checkpoints answer the same rows; rows that are trained on are left out."""

import json

import pytest
from conftest import copy_rows, write_rows
from seesaw_runner.confirm import confirm, main
from seesaw_runner.run_folder import StageError

TRAINED = copy_rows(48, 1)


def fresh(n):
    """Rows of which none, by its prompt, is trained on, and none is there twice."""
    seen, rows = {row["messages"][0]["content"] for row in TRAINED}, []
    for row in copy_rows(400, 23):
        prompt = row["messages"][0]["content"]
        if prompt not in seen:
            seen.add(prompt)
            rows.append(row)
    return rows[:n]


def test_both_checkpoints_answer_the_same_prompts(make_run, base_folder, taught_folder, tmp_path):
    run = make_run(train=TRAINED)
    prompts = write_rows(tmp_path / "more.jsonl", fresh(40))
    found = confirm(run, "copy", str(prompts), [str(taught_folder), str(base_folder)], 100)
    assert found["left_out"] == {"unusable": 0, "trained": 0, "more": 0}
    assert [row["line"] for row in found["rows"]] == list(range(1, 41))
    before, now = ([row[which] for row in found["rows"]] for which in ("before", "now"))
    assert sum(before) > sum(now) + 4  # taught to copy, against random weights
    swapped = confirm(run, "copy", str(prompts), [str(base_folder), str(taught_folder)], 100)
    assert [(r["now"], r["before"]) for r in swapped["rows"]] == [(r["before"], r["now"]) for r in found["rows"]]


def test_trained_and_broken_rows_are_left_out_and_so_is_what_is_too_many(make_run, base_folder, tmp_path):
    run = make_run(train=TRAINED)
    prompts = write_rows(tmp_path / "mixed.jsonl", [*TRAINED[:5], *fresh(20), {"text": 3}])
    found = confirm(run, "copy", str(prompts), [str(base_folder), str(base_folder)], 12)
    assert found["left_out"] == {"unusable": 1, "trained": 5, "more": 8}
    lines = [row["line"] for row in found["rows"]]
    assert len(lines) == 12
    assert lines == sorted(lines)
    assert all(5 < line <= 25 for line in lines)
    assert all(row["before"] == row["now"] for row in found["rows"])


def test_what_cannot_be_asked_is_a_sentence(make_run, base_folder, tmp_path, capsys):
    run = make_run()
    with pytest.raises(StageError, match="no skill 'sing'"):
        confirm(run, "sing", str(tmp_path / "x.jsonl"), [str(base_folder)] * 2, 9)
    prompts = write_rows(tmp_path / "more.jsonl", copy_rows(3, 23))
    assert main([str(run), "copy", str(prompts), str(tmp_path / "gone"), str(base_folder)]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["error"] == "bad-checkpoint"
    assert "gone" in told["message"]
