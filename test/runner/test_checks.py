"""Checks: what passes, what does not, what they name, and that no text makes them raise."""

from __future__ import annotations

import random
import sys

import pytest
from seesaw_runner.checks import KINDS, CheckError, make_check

SUM = "7+5+0=12; 2+4+1=07; so 72"
CALL = '{"tool": "weather", "city": "Da \\"q\\" ko", "days": [1, true]}'


def row(answer: str | None, **fields) -> dict:
    return {"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": answer}], **fields}


def check(kind: str, segments: list[dict] | None = None, trusted: bool = False, root: str = ".", **options):
    return make_check({"kind": kind, **options}, trusted=trusted, root=root, segments=segments)


def named(check, reference: str, value: dict | None = None) -> list[tuple[str, str]]:
    """Text and name of every segment; asserts that they cover the reference without gaps."""
    parts = check.segments(reference, value or row(reference))
    assert [part.start for part in parts] == [0, *(part.end for part in parts)][: len(parts)]
    assert not reference or parts[-1].end == len(reference)
    return [(reference[part.start : part.end], part.name) for part in parts]


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("so 72", True), ("x; so 3; so 72", True), ("so 72.0", True), ("so 072.", True), ("so the answer: $72!", True),
        ("so 7200e-2", True), ("so 144/2", True), ("so 73", False), ("also 72", False), ("so", False), ("72", False),
        ("so -72", False), ("so 72; so 73", False), ("", False), ("so " + "9" * 10_000, False),
        ("so 1e" + "9" * 5000, False),
    ],
)  # fmt: skip
def test_number_after(text, passes):
    assert check("number-after", marker="so").passes(text, row(SUM)) is passes


def test_numbers_are_compared_exactly():
    plain = check("number-after", marker="####")
    assert plain.passes("#### 1,234.50", row("####1234.5"))
    assert not plain.passes("#### 9007199254740992", row("#### 9007199254740993"))
    assert plain.passes("#### \u22125", row("#### -5"))
    assert plain.passes("#### 2/4", row("#### 1/2")) and not plain.passes("#### 1", row("#### 1/2"))


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("city Paris; answer Paris", True),
        ("answer Paris \n", True),
        ("Paris", False),
        ("answer paris", False),
        ("answered Paris", False),
        ("", False),
    ],
)
def test_text_after_a_marker(text, passes):
    assert check("text", after="answer").passes(text, row("city Paris; answer Paris")) is passes


def test_text_whole_and_case():
    assert check("text").passes("Yes\r\n", row(" Yes"))
    assert not check("text").passes("yes", row("Yes"))
    assert check("text", ignore_case=True).passes("yES", row("Yes"))
    assert not check("text").passes("", row("")), "an empty reference cannot be met"


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        (CALL, True),
        ('{"days":[1.0,true],"city":"Da \\u0022q\\" ko","tool":"weather"}', True),
        (CALL.replace("[1, true]", "[true, 1]"), False),
        (CALL.replace("true", "1"), False),
        (CALL + " done", False),
        (CALL[:-1] + ', "tool": "weather"}', False),
        (CALL[:-2], False),
        ("[" * 100_000, False),
        ("", False),
    ],
)
def test_json_tool_call(text, passes):
    assert check("json-tool-call").passes(text, row(CALL)) is passes


def test_json_tool_call_against_tool_calls():
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
    value = {
        "messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": None, "tool_calls": [call]}]
    }
    native = check("json-tool-call")
    assert native.problem(value) is None
    assert native.passes('<tool_call>\n{"arguments": {"city": "Oslo"}, "name": "weather"}\n</tool_call>', value)
    assert not native.passes('{"name": "weather", "arguments": {"city": "Rome"}}', value)


def test_regex():
    assert check("regex", pattern=r"^final: \d+$", flags="im").passes("x\nFINAL: 7\n", row("a"))
    assert not check("regex", pattern="b").passes("a", row("a"))


@pytest.mark.parametrize(
    ("constraints", "good", "bad"),
    [
        (
            {"case": "upper", "words": 2, "words_from": ["red", "cat"]},
            ["RED CAT", "CAT RED "],
            ["red cat", "RED RED", "RED", "RED DOG", ""],
        ),
        ({"case": "lower"}, ["a b1"], ["A"]),
        ({"case": "title"}, ["It's A Dog"], ["It's a Dog", "DOG"]),
        ({"words": {"min": 2, "max": 3}}, ["a b", "a b c"], ["a", "a b c d"]),
        ({"words": {"min": 2}}, ["a b"], ["a"]),
        ({"starts_with": "In short", "ends_with": "."}, ["In short, no."], ["in short.", "In short"]),
        ({"contains": ["red", "cat"]}, ["a red cat"], ["a cat"]),
        ({"case": "upper", "ends_with": "Mimi"}, ["X MIMI"], ["X Mimi"]),
        ({"words_from": ["red", "cat"]}, ["red"], ["Red", "red red"]),
    ],
)
def test_format(constraints, good, bad):
    formal = check("format")
    assert [formal.passes(text, row(good[0], constraints=constraints)) for text in good + bad] == [True] * len(good) + [
        False
    ] * len(bad)
    assert formal.problem(row(good[0], constraints=constraints)) is None


def test_format_says_when_a_row_cannot_be_checked():
    assert "no constraints" in check("format").problem(row("a"))
    assert "unknown constraint 'colour'" in check("format").problem(row("a", constraints={"colour": "red"}))
    assert not check("format").passes("a", row("a", constraints={"words": {"min": "1"}}))


def test_a_check_that_fails_its_own_reference_says_so():
    assert check("regex", pattern="z").problem(row("a")) == "the check fails on the row's own reference"
    assert check("number-after", marker="so").problem(row("72")) == "the reference has no number after 'so'"
    assert check("json-tool-call").problem(row("call it")) == "the reference is no JSON value"
    assert check("text").problem(row(None)) == "the row has no reference answer"


def test_segments():
    assert named(check("number-after", marker="so"), SUM) == [
        ("7+5+0=12; 2+4+1=07; so", "reasoning"),
        (" 72", "answer"),
    ]
    assert named(check("number-after", marker="so"), "72") == [("72", "answer")]
    assert named(check("text", after="answer"), "city P; answer P") == [
        ("city P; answer", "reasoning"),
        (" P", "answer"),
    ]
    assert named(check("text"), "abc") == named(check("format"), "abc") == [("abc", "answer")]
    assert named(check("text"), "") == []


def test_segments_of_a_tool_call():
    names = dict(named(check("json-tool-call"), CALL))
    assert names["weather"] == "tool name" and names["city"] == names["days"] == "argument key"
    assert (
        names['Da \\"q\\" ko'] == names["1"] == names["true"] == "argument value"
        and names['{"tool": "'] == "punctuation"
    )
    nested = named(
        check("json-tool-call"),
        '[{"name": "a", "arguments": {"name": "b", "o": {"k": -2.5}}}, {"name": "c", "arguments": {}}]',
    )
    assert [part for part in nested if part[1] != "punctuation"] == [
        ("a", "tool name"), ("name", "argument key"), ("b", "argument value"),
        ("o", "argument key"), ("k", "argument key"), ("-2.5", "argument value"), ("c", "tool name"),
    ]  # fmt: skip
    assert named(check("json-tool-call"), "not JSON") == [("not JSON", "answer")]


def test_the_skills_own_patterns_come_first():
    own = check(
        "number-after", [{"name": "work", "pattern": "^.*;"}, {"name": "sum", "pattern": r"so (\d+)"}], marker="so"
    )
    assert named(own, SUM) == [("7+5+0=12; 2+4+1=07;", "work"), (" so ", "answer"), ("72", "sum")]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "function"])
def test_no_text_makes_a_check_raise(kind):
    options = {"number-after": {"marker": "so"}, "regex": {"pattern": "a+"}}.get(kind, {})
    one, source = check(kind, **options), random.Random(1)
    value = row(CALL, constraints={"case": "upper", "words": 2, "contains": "a", "words_from": ["a"]})
    alphabet = 'so 0123456789eE.,-+/{}[]":\\\n\r\u2028\ud83d\x00é😀NaNInfinity'
    for _ in range(2000):
        text = "".join(source.choice(alphabet) for _ in range(source.randrange(30)))
        assert one.passes(text, value) in (True, False)
        named(one, text, value)
        assert one.passes(text, {"odd": 1}) in (True, False)


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ({}, "needs a kind"),
        ({"kind": "numer-after"}, "did you mean 'number-after'"),
        ({"kind": "number-after"}, "needs the option marker"),
        ({"kind": "text", "afer": "x"}, "did you mean 'after'"),
        ({"kind": "text", "after": 3}, "must be a text"),
        ({"kind": "regex", "pattern": "("}, "no regular expression"),
        ({"kind": "regex", "pattern": "a", "flags": "q"}, "no flag 'q'"),
        ({"kind": "function", "function": "a:b"}, "not trusted"),
    ],
)
def test_wrong_settings_are_sentences(spec, sentence):
    with pytest.raises(CheckError, match=sentence):
        make_check(spec, trusted=False, root=".")
    with pytest.raises(CheckError, match="no regular expression"):
        check("text", [{"name": "a", "pattern": "("}])


def test_a_function_runs_only_when_trusted(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "my_seesaw_check.py").write_text(
        "open(__file__ + '.ran', 'w').close()\n"
        "def half(text, row):\n    return {'yes': 0.5, 'no': 0.4, 'nan': float('nan'), 'true': True}[text]\n"
        "def leave(text, row):\n    raise SystemExit(3)\n"
    )
    spec = {"function": "my_seesaw_check:half", "path": "lib"}
    with pytest.raises(CheckError, match="trust the workspace"):
        check("function", root=str(tmp_path), **spec)
    assert not (tmp_path / "lib" / "my_seesaw_check.py.ran").exists()
    own = check("function", trusted=True, root=str(tmp_path), **spec)
    assert [own.passes(text, row("a")) for text in ("yes", "no", "nan", "true", "boom")] == [
        True,
        False,
        False,
        True,
        False,
    ]
    assert (own.errors, own.last_error) == (1, "my_seesaw_check:half: KeyError: 'boom'")
    assert not check("function", trusted=True, root=str(tmp_path), function="my_seesaw_check:leave").passes(
        "a", row("a")
    )
    for name, sentence in (
        ("my_seesaw_check:absent", "cannot be imported"),
        ("absent_module:f", "cannot be imported"),
        ("plain", "module:name"),
    ):
        with pytest.raises(CheckError, match=sentence):
            check("function", trusted=True, root=str(tmp_path), function=name)
