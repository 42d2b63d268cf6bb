"""One JSON text → its value, with what is wrong or odd about it said in sentences.

Accepts what Python's own writer produces (NaN, Infinity) and keeps the text of numbers that a float cannot hold.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from seesaw_runner.data.canonical import Number

MAX_DEPTH = 256
_MAX_INT_DIGITS = 4000  # Python refuses to convert longer ones; they are kept as text
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class RowError:
    """Why a row cannot be used. Line and column count from 1, the column in characters."""

    message: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}: {self.message}"


@dataclass(frozen=True)
class Note:
    """Something odd that does not stop a row or a file from being used."""

    code: str
    message: str


class _Pairs(list):
    """An object as the list of its pairs, to see which keys come twice."""


def _integer(text: str) -> int | Number:
    return int(text) if len(text) <= _MAX_INT_DIGITS else Number(text)


def _real(text: str) -> Number:
    if len(text) > _MAX_INT_DIGITS and len(text.lower().partition("e")[2]) > _MAX_INT_DIGITS:
        raise ValueError(f"a number has an exponent of more than {_MAX_INT_DIGITS} digits")
    return Number(text)


def parse_json(text: str, line: int = 1) -> tuple[Any, RowError | None, list[Note]]:
    """Value, error and notes of one JSON text that starts at the given line of its file."""
    notes: list[Note] = []
    doubled = False

    def to_dict(pairs: list[tuple[str, Any]]) -> dict:
        nonlocal doubled
        result = dict(pairs)
        doubled = doubled or len(result) != len(pairs)
        return result

    def constant(name: str) -> float:
        notes.append(
            Note("non-finite", f"line {line}: the number {name} is not JSON; it is read, and left out of statistics")
        )
        return float(name)

    def real(digits: str) -> Number:
        number = _real(digits)
        if math.isinf(number):
            shown = digits if len(digits) <= 40 else f"{digits[:40]}…"
            notes.append(
                Note("overflow", f"line {line}: the number {shown} is too large for a float; its digits are kept")
            )
        return number

    try:
        value = json.loads(
            text, object_pairs_hook=to_dict, parse_int=_integer, parse_float=real, parse_constant=constant
        )
    except json.JSONDecodeError as error:
        return None, _explain(error, text, line), []
    except RecursionError:
        return None, _too_deep(line), []
    except ValueError as error:
        return None, RowError(f"{error}; shorten it", line, 1), []
    if text.count("[") + text.count("{") > MAX_DEPTH and _deeper_than(value, MAX_DEPTH):
        return None, _too_deep(line), []
    if doubled:
        pairs = json.loads(text, object_pairs_hook=_Pairs)
        notes += [
            Note("duplicate-key", f'line {line}: duplicate key "{path}"; the last value is used')
            for path in _doubles(pairs, "")
        ]
    halves = _count_surrogates(value) if "\\u" in text else 0
    if halves:
        notes.append(
            Note(
                "unpaired-surrogate",
                f"line {line}: unpaired surrogate ({halves} code unit{'s' * (halves > 1)}); U+FFFD is used in "
                "its place",
            )
        )
    return value, None, notes


def _too_deep(line: int) -> RowError:
    return RowError(f"the row is nested deeper than {MAX_DEPTH} levels; flatten it", line, 1)


def _explain(error: json.JSONDecodeError, text: str, line: int) -> RowError:
    """Names the usual mistakes; Python's own words differ from version to version."""
    at = error.pos
    before, after = text[:at].rstrip(" \t\r\n"), text[at:].lstrip(" \t\r\n")
    message = f"not valid JSON, {error.msg[:1].lower()}{error.msg[1:]}"
    if error.msg.startswith("Extra data"):
        message = (
            "a comma after the row; in JSON Lines rows are not separated by commas, remove it"
            if set(after.strip(" \t\r\n")) == {","}
            else f"more than one JSON value on line {line}; put each on a line of its own"
            if after[:1] in '{["'
            else "text after the end of the row; remove it"
        )
    elif after[:1] in ("}", "]") and before.endswith(","):
        message, at = "a comma before the closing bracket; remove it", len(text) - len(after)
    elif after[:1] == "," and after[1:].lstrip(" \t\r\n")[:1] in ("}", "]"):  # where Python 3.13 points
        message, at = "a comma before the closing bracket; remove it", len(text) - len(after[1:].lstrip(" \t\r\n"))
    elif text[at : at + 1] == "\ufeff":
        message = "a byte order mark in the middle of the file (from joining files?); remove it"
    elif error.msg.startswith("Invalid control character"):
        message = f"the control character U+{ord(text[at]):04X} in a string; write it as an escape"
    elif not after or error.msg.startswith("Unterminated"):
        what = "string" if error.msg.startswith("Unterminated") else "value"
        message = f"the row ends in the middle of a {what}; it may have been cut off"
    start = text.rfind("\n", 0, at) + 1
    return RowError(message, line + text.count("\n", 0, at), at - start + 1)


def _deeper_than(value: Any, limit: int) -> bool:
    level = [value]
    for _ in range(limit):
        level = [
            child
            for item in level
            if isinstance(item, (dict, list))
            for child in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return False
    return any(isinstance(item, (dict, list)) for item in level)


def _doubles(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for key, item in value:
            name = f"{path}.{key}" if path else key
            if key in seen:
                yield name
            seen.add(key)
            yield from _doubles(item, name)
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from _doubles(item, f"{path}[{i}]")


def _count_surrogates(value: Any) -> int:
    if isinstance(value, str):
        return len(_SURROGATE.findall(value))
    if isinstance(value, dict):
        return sum(_count_surrogates(key) + _count_surrogates(item) for key, item in value.items())
    return sum(map(_count_surrogates, value)) if isinstance(value, list) else 0
