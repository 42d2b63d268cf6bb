"""Canonical JSON and the three hashes that identify a dataset row. See `.github/contracts.md` §3.

Numbers are compared by value, from the digits as they were written: a float would round 9007199254740993 and
merge two rows.
"""

from __future__ import annotations

import hashlib
import math
import re
from json.encoder import encode_basestring
from typing import Any, NamedTuple

from seesaw_runner.data.row_shapes import Turn, split_turns

_NUMBER = re.compile(r"(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?")
_SURROGATE = re.compile("[\ud800-\udfff]")


class Number(float):
    """A JSON number that is no small integer. It calculates as a float and remembers its `text`."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> Number:
        self = super().__new__(cls, text)
        self.text = text
        return self

    def __reduce__(self) -> tuple:
        return Number, (self.text,)


class RowHashes(NamedTuple):
    """Lower-case hex SHA-256. `prompt` is None where a row has no prompt turn, `answer` where it has no answer."""

    full: str
    prompt: str | None
    answer: str | None


def canonical_number(text: str) -> str:
    """`1.0` → `1`, `100` → `1e2`, `0.10` → `1e-1`, `-0` → `0`: equal values give equal text, unequal ones never do."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a JSON number")
    sign, whole, fraction, exponent_text = match.groups()
    fraction = fraction or ""
    significant = (whole + fraction).lstrip("0")
    if not significant:
        return "0"
    digits = significant.rstrip("0")
    exponent = int(exponent_text or 0) - len(fraction) + len(significant) - len(digits)
    return f"{sign}{digits}e{exponent}" if exponent else sign + digits


def canonical_string(text: str) -> str:
    """A JSON string literal in which only what must be escaped is escaped."""
    if _SURROGATE.search(text):
        # Joined text parts can bring two halves together; JavaScript then has one character, so have we.
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        return _SURROGATE.sub(lambda half: f"\\u{ord(half.group()):04x}", encode_basestring(text))
    return encode_basestring(text)


def canonical(value: Any) -> str:
    """Canonical JSON text of a value as `row_parse.parse_json` returns it."""
    if isinstance(value, str):
        return canonical_string(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{canonical_string(key)}:{canonical(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(canonical, value)) + "]"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Number):
        return canonical_number(value.text)
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
    return canonical_number(repr(value))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _turns(turns: list[Turn]) -> str:
    return "[" + ",".join(canonical([turn.role, turn.text, turn.tool_calls]) for turn in turns) + "]"


def prompt_or_row_hash(value: Any) -> str:
    """What two rows that ask the same have in common: the hash of the prompt, of the whole row where there is none."""
    prompt, _ = split_turns(value)
    return _sha256(_turns(prompt)) if prompt else _sha256(canonical(value))


def row_hashes(value: Any) -> RowHashes:
    """The identity of a row: the whole record, its prompt alone, its answer alone."""
    prompt, answer = split_turns(value)
    return RowHashes(
        _sha256(canonical(value)),
        _sha256(_turns(prompt)) if prompt else None,
        _sha256(_turns([answer])) if answer else None,
    )
