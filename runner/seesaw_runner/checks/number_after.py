"""The number after a marker, compared by value."""

from __future__ import annotations

import re
from fractions import Fraction

from seesaw_runner.checks.base import Check, Segment, after_marker, marker_pattern, reasoning_and_answer, reference_of
from seesaw_runner.data.canonical import canonical_number

_PLAIN = r"(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,6}(?![0-9]))?|\.[0-9]+"
_NUMBER = re.compile(rf"((?<![\w.)])[-+\u2212])?\s?\$?({_PLAIN})(?:\s?/\s?([0-9]{{1,40}})(?![0-9./]))?")


def number_value(text: str) -> str | None:
    """The first number of a text in canonical form, or None. Exact: no float, so 0.1 + 0.2 is not 0.3 by accident."""
    match = _NUMBER.search(text)
    if match is None:
        return None
    sign = "-" if match.group(1) in ("-", "\u2212") else ""
    digits = match.group(2).replace(",", "")
    digits = sign + ("0" + digits if digits.startswith(".") else digits)
    if match.group(3) and "." not in digits and "e" not in digits.lower() and len(digits) <= 40 and int(match.group(3)):
        ratio = Fraction(int(digits), int(match.group(3)))
        if ratio.denominator != 1:
            return str(ratio)
        digits = str(ratio.numerator)
    return canonical_number(digits)


class NumberAfter(Check):
    """Passes when the number after the last marker equals the reference's: `72`, `72.0` and `072` are one number."""

    kind = "number-after"
    options = {"marker": (str, True)}

    def setup(self, options: dict, *, trusted: bool, root: str) -> None:
        self._marker = marker_pattern(options["marker"])
        self._name = options["marker"]

    def passes(self, text: str, row: dict) -> bool:
        expected = self._number(reference_of(row).text)
        return expected is not None and self._number(text) == expected

    def problem(self, row: dict) -> str | None:
        if self._number(reference_of(row).text) is None:
            return f"the reference has no number after {self._name!r}"
        return None

    def _number(self, text: str) -> str | None:
        start = after_marker(self._marker, text)
        return None if start is None else number_value(text[start:])

    def own_segments(self, reference: str, row: dict) -> list[Segment]:
        return reasoning_and_answer(after_marker(self._marker, reference), reference)
