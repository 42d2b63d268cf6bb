"""The row reader, file by file, and what is said about rows that can be read but not trained on."""

from __future__ import annotations

import base64
import gzip
import json
import random
from pathlib import Path

import pytest
from seesaw_runner.data.row_problems import row_problems
from seesaw_runner.data.row_shapes import printable, split_turns, to_messages, to_turns
from seesaw_runner.data.row_summary import summarize
from seesaw_runner.data.rows import RowReader, read_rows, row_format

FIXTURES = Path(__file__).parents[1] / "fixtures"
FILES = json.loads((FIXTURES / "protocol/row-files.json").read_text())


def read(tmp_path: Path, data: bytes, name: str = "data.jsonl"):
    path = tmp_path / name
    path.write_bytes(data)
    reader = read_rows(path)
    return list(reader), reader


@pytest.mark.parametrize("case", FILES, ids=lambda case: case["name"])
def test_file_fixture(case, tmp_path):
    rows, reader = read(tmp_path, base64.b64decode(case["base64"]))
    assert reader.form == case["form"]
    assert [note.code for note in reader.notes] == case["notes"]
    assert [(row.line, row.offset) for row in rows] == [(row["line"], row["offset"]) for row in case["rows"]]
    assert [row.index for row in rows] == list(range(len(rows)))
    for row, expected in zip(rows, case["rows"], strict=True):
        assert [note.code for note in row.warnings] == expected["warnings"]
        assert (row.error is None) == (expected["error"] is None)
        if row.error:
            assert (row.error.line, row.error.column, row.error.message) == tuple(expected["error"].values())


def test_offsets_point_at_the_row_in_the_file(tmp_path):
    data = b'\xef\xbb\xbf[\r\n  {"text": "\xc3\xa9"},\r\n  {"text": "b"}\r\n]'
    rows, _ = read(tmp_path, data)
    assert [data[row.offset :].startswith(b'{"text"') for row in rows] == [True, True]


def test_a_huge_row_hides_no_neighbour(tmp_path):
    huge = json.dumps({"prompt": "word " * 1_000_000, "completion": "b"}).encode()
    rows, _ = read(tmp_path, gzip.compress(b'{"text":"a"}\n' + huge + b'\n{"text":"c"}\n', compresslevel=1))
    assert [row.error for row in rows] == [None] * 3 and len(rows[1].value["prompt"]) == 5_000_000


def test_chunk_borders_do_not_matter(tmp_path, monkeypatch):
    lines = [json.dumps({"text": "é😀" * random.Random(i).randrange(20)}, ensure_ascii=False) for i in range(200)]
    data = "\r\n".join(lines).encode()
    whole, _ = read(tmp_path, data)
    monkeypatch.setattr("seesaw_runner.data.row_bytes.CHUNK", 7)
    packed = gzip.compress(data)
    for form in (data, packed):
        assert read(tmp_path, form)[0] == whole


def test_a_limit_on_what_an_archive_unpacks_to_is_named(tmp_path):
    path = tmp_path / "bomb.jsonl"
    path.write_bytes(gzip.compress(b'{"text":"a"}\n' * 500_000))
    reader = RowReader(path, max_unpacked=2_000_000)
    assert 0 < sum(1 for row in reader if not row.error) < 500_000
    assert "more than 2000000 bytes" in reader.notes[0].message


def test_a_damaged_archive_gives_the_rows_before_the_damage(tmp_path):
    packed = bytearray(
        gzip.compress(b"".join(json.dumps({"text": str(i) * 9}).encode() + b"\n" for i in range(20_000)))
    )
    packed[len(packed) // 2] ^= 0xFF
    rows, reader = read(tmp_path, bytes(packed))
    assert rows and reader.notes and reader.notes[0].code.startswith("archive")


def test_any_bytes_can_be_read(tmp_path):
    source = random.Random(5)
    good = b'[{"a": [1, {"b": "\\u00e9\\"]}"}], "c": NaN},\n {"d": "\xc3\xa9\xf0\x9f\x98\x80"}]\n{"e":1}\n'
    for _ in range(400):
        data = bytearray(good)
        for _ in range(source.randrange(1, 6)):
            data[source.randrange(len(data))] = source.choice(b'{}[]",:\\\n\r 0aN\xff\xc3\x00')
        rows, _ = read(tmp_path, bytes(data))
        for row in rows:
            row_problems(row.value)
            split_turns(row.value)


def test_doubled_keys_are_named_with_their_path(tmp_path):
    rows, _ = read(tmp_path, b'{"completion":"first","completion":"second","m":[{"k":1,"k":2}]}\n')
    assert rows[0].value["completion"] == "second"
    assert ['"completion"' in rows[0].warnings[0].message, '"m[0].k"' in rows[0].warnings[1].message] == [True, True]


def test_a_number_that_overflows_is_noted_and_keeps_its_digits(tmp_path):
    rows, _ = read(tmp_path, b'{"a": 1e400, "b": 9007199254740993}\n')
    assert "the number 1e400 is too large for a float" in rows[0].warnings[0].message
    assert rows[0].value["a"].text == "1e400" and rows[0].value["b"] == 9007199254740993


def test_an_invalid_byte_is_named_with_its_offset(tmp_path):
    rows, _ = read(tmp_path, b'{"text":"ok"}\n{"text":"it\x92s"}\n')
    assert rows[1].warnings[0].message.startswith("invalid UTF-8, byte 0x92 at file offset 25")
    assert rows[1].value["text"] == "it\ufffds"


def test_an_unpaired_surrogate_is_flagged_and_can_be_encoded(tmp_path):
    rows, _ = read(tmp_path, rb'{"prompt":"half \ud83d end","completion":"\ude00\ud83d"}' + b"\n")
    assert "unpaired surrogate (3 code units)" in rows[0].warnings[0].message
    assert [message["content"] for message in to_messages(rows[0].value)] == ["half \ufffd end", "\ufffd\ufffd"]
    assert printable("\ud83d").encode()


def test_messages_for_a_template_have_text_only():
    row = {"messages": [
        {"role": "user", "content": [{"type": "text", "text": "Look at "}, {"type": "image_url"}, {"text": "it."}]},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c"}]},
        {"role": "tool", "tool_call_id": "c", "content": 4},
        {"role": "assistant", "tool_calls": []},
    ]}  # fmt: skip
    messages = to_messages(row)
    assert [message["content"] for message in messages] == ["Look at it.", "", "4", ""]
    assert (
        messages[1]["tool_calls"] == [{"id": "c"}]
        and "tool_calls" not in messages[3]
        and messages[2]["tool_call_id"] == "c"
    )
    assert row["messages"][1]["content"] is None, "the row itself is left alone"


def test_preference_forms_are_one():
    turn = {
        "user": {"role": "user", "content": "Name a fruit"},
        "good": {"role": "assistant", "content": "Apple"},
        "bad": {"role": "assistant", "content": "Car"},
    }
    forms = [
        {"prompt": [turn["user"]], "chosen": [turn["good"]], "rejected": [turn["bad"]]},
        {"chosen": [turn["user"], turn["good"]], "rejected": [turn["user"], turn["bad"]]},
        {"prompt": [turn["user"]], "chosen": [turn["user"], turn["good"]], "rejected": [turn["user"], turn["bad"]]},
        {"prompt": "Name a fruit", "chosen": "Apple", "rejected": "Car"},
    ]
    assert all(to_turns(form) == to_turns(forms[0]) and row_format(form) == "preference" for form in forms)


def share(*turns: tuple[str, str]) -> dict:
    return {"conversations": [{"from": role, "value": text} for role, text in turns]}


def chat(*turns: tuple[str, str | None]) -> dict:
    return {"messages": [{"role": role, "content": text} for role, text in turns]}


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (chat(("user", "q"), ("assistant", "")), "no trainable text"),
        (chat(("user", "q"), ("assistant", " \n")), "no trainable text"),
        (chat(("user", "q")), "no trainable text: there is no assistant turn"),
        ({"instruction": "x", "input": "", "output": ""}, "no trainable text"),
        (chat(("user", "q"), ("assistant", None)), "assistant turn with neither content nor tool_calls"),
        (share(("human", "a"), ("human", "b"), ("gpt", "c")), "two human turns in a row at turn 1"),
        (share(("gpt", "a"), ("human", "b"), ("gpt", "c")), "starts with an assistant turn"),
        (share(("human", "a")), "no assistant turn (odd number of turns)"),
        (share(("human", "a"), ("gpt", "b"), ("human", "c")), "ends without an answer (odd number of turns)"),
        (share(("human", "a"), ("bot", "b")), 'unknown role "bot" at turn 1'),
        (share(), "empty conversation"),
        ({"chosen": "a", "rejected": "b"}, "no prompt"),
        ({"prompt": "p", "chosen": "a", "rejected": "a"}, "chosen equals rejected"),
        (
            {"chosen": [{"role": "user", "content": "A"}], "rejected": [{"role": "user", "content": "B"}]},
            "no common prompt",
        ),
        ({"prompt": "p"}, "no label"),
        ({"prompt": [], "label": "x"}, "empty prompt"),
        ({"foo": 1}, "no known row format; its keys are foo"),
        ({"messages": ["hi"]}, "turn 0 is not an object"),
        ({"messages": [{"role": "assistant", "content": 4}]}, "neither text nor a list of parts"),
    ],
)  # fmt: skip
def test_problems_are_named(row, sentence):
    assert any(sentence in problem.message for problem in row_problems(row))


@pytest.mark.parametrize(
    "row",
    [
        chat(("user", "q"), ("assistant", "a")),
        share(("system", "s"), ("human", "q"), ("gpt", "a")),
        share(("user", "q"), ("assistant", "a")),
        {"prompt": "p", "completion": "c"},
        {"prompt": "p", "label": 42},
        {"text": "t"},
        {"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "tool_calls": [{"id": "c"}]}]},
    ],
)
def test_good_rows_have_no_problem(row):
    assert row_problems(row) == []


def test_a_summary_counts_per_row(tmp_path):
    rows, _ = read(
        tmp_path,
        b'{"text":"a","score":NaN}\n{"text":"b","score":0.5}\n{"prompt":"p","completion":null,"score":1.5}\n[]\n{"x":\n',
    )
    summary = summarize(rows)
    assert (summary.rows, summary.good, summary.error_count) == (5, 3, 2)
    assert summary.formats == {"text": 2, "prompt-completion": 1}
    assert (summary.score_mean, summary.finite, summary.non_finite) == (1.0, 2, 1)
    assert summary.types["completion"] == {"null": 1} and summary.problems["no-trainable-text"] == 1
    assert summary.errors[0] == "line 4, column 1: the row is an array, not an object"


def test_an_unreadable_file_raises_only_os_error(tmp_path):
    with pytest.raises(OSError):
        list(read_rows(tmp_path / "missing.jsonl"))
