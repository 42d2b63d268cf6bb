"""Canonical JSON and row hashes: by hand where that is possible, and against the fixture that TypeScript reads too."""

from __future__ import annotations

import hashlib
import json
import pickle
from pathlib import Path

import pytest
from seesaw_runner.data.canonical import Number, canonical, canonical_number, row_hashes
from seesaw_runner.data.row_parse import parse_json
from seesaw_runner.data.row_shapes import row_format

CASES = json.loads((Path(__file__).parents[1] / "fixtures/protocol/rows.json").read_text())
BY_NAME = {case["name"]: case for case in CASES}


def value_of(line: str):
    value, error, _ = parse_json(line.strip("\r"))
    assert error is None
    return value


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_fixture(case):
    value = value_of(case["line"])
    assert row_format(value) == case["format"]
    assert canonical(value) == case["canonical"]
    assert row_hashes(value) == (case["full"], case["prompt"], case["answer"])
    assert case["full"] == hashlib.sha256(case["canonical"].encode()).hexdigest()


def test_the_fixture_is_not_empty_and_its_names_are_unique():
    assert len(CASES) >= 100 and len(BY_NAME) == len(CASES)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", "0"), ("-0", "0"), ("0.000", "0"), ("0e9", "0"), ("1", "1"), ("1.0", "1"), ("100", "1e2"),
        ("1E+2", "1e2"), ("0.5", "5e-1"), ("0.10", "1e-1"), ("-1.50", "-15e-1"), ("1e400", "1e400"),
        ("123.450e-5", "12345e-7"), ("9007199254740993", "9007199254740993"),
        ("12345678901234567890", "1234567890123456789e1"),
    ],
)  # fmt: skip
def test_numbers_by_hand(text, expected):
    assert canonical_number(text) == expected
    assert canonical(value_of(text)) == expected


def test_a_number_keeps_its_text_through_copies():
    number = value_of('{"a": 1e400}')["a"]
    assert isinstance(number, Number) and number.text == "1e400" and number == float("inf")
    assert pickle.loads(pickle.dumps(number)).text == "1e400"


def test_the_same_canonical_text_by_hand():
    assert BY_NAME["same-row-a"]["canonical"] == '{"m":{"x":[1,2],"y":"z"},"n":1,"prompt":"café"}'
    assert BY_NAME["keys-by-code-point"]["canonical"] == '{"":5,"10":6,"9":7,"Z":4,"z":3,"é":8,"！":2,"😀":1}'
    assert BY_NAME["long-escapes"]["canonical"] == '{"s":"\\u0000 \\u0001 \\u001f \x7f A \\n"}'
    assert BY_NAME["unpaired-swapped"]["canonical"] == '{"completion":"ok","prompt":"swapped \\ude00\\ud83d"}'


def test_the_hash_of_turns_by_hand():
    text = '[["user","What is 2 + 2?",null]]'
    assert BY_NAME["messages"]["prompt"] == hashlib.sha256(text.encode()).hexdigest()
    assert BY_NAME["messages"]["answer"] == hashlib.sha256(b'[["assistant","4",null]]').hexdigest()


def test_spelling_does_not_matter_and_content_does():
    full = {name: case["full"] for name, case in BY_NAME.items()}
    assert full["same-row-a"] == full["same-row-b-other-spelling"]
    assert full["line-separators-raw"] == full["line-separators-escaped"]
    assert full["emoji-raw"] == full["emoji-escaped"]
    assert len({full["same-row-a"], full["decomposed-accent-differs"], full["list-order-differs"]}) == 3
    assert full["integers-beyond-2-53-a"] != full["integers-beyond-2-53-b"]


def test_formats_that_say_the_same_have_the_same_prompt_and_answer():
    chat = BY_NAME["messages"]
    alike = [case for case in CASES if case["name"].endswith("as-messages")]
    assert len(alike) >= 9
    for case in alike:
        assert (case["prompt"], case["answer"]) == (chat["prompt"], chat["answer"]), case["name"]
    preference = {
        (case["prompt"], case["answer"])
        for case in CASES
        if case["name"] in ("preference-explicit", "preference-implicit", "preference-text", "preference-repeated")
    }
    assert len(preference) == 1


def test_a_label_that_is_a_number_is_not_its_text():
    assert BY_NAME["slime-label-number"]["answer"] != BY_NAME["slime-as-messages"]["answer"]
