"""Verifiable instructions: each row carries `constraints`, and all of them must hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from seesaw_runner.checks.base import Check


def _case(text: str, wanted: Any, case: Any) -> bool:
    if wanted == "title":
        return all(word == word[:1].upper() + word[1:].lower() for word in text.split())
    return text == (text.upper() if wanted == "upper" else text.lower()) and wanted in ("upper", "lower")


def _words(text: str, wanted: Any, case: Any) -> bool:
    count = len(text.split())
    if isinstance(wanted, dict):
        return wanted.get("min", 0) <= count <= wanted.get("max", count)
    return count == wanted


def _listed(wanted: Any) -> list[str]:
    return [str(item) for item in wanted] if isinstance(wanted, list) else [str(wanted)]


def _words_from(text: str, wanted: Any, case: Any) -> bool:
    # As often as it is listed, not more: else one word repeated would pass.
    given, listed = Counter(_folded(text, case).split()), Counter(_folded(word, case) for word in _listed(wanted))
    return all(count <= listed[word] for word, count in given.items())


def _folded(text: str, case: Any) -> str:
    """Where a case is asked for, the words keep no case of their own."""
    return text.casefold() if case else text


CONSTRAINTS: dict[str, Callable[[str, Any, Any], bool]] = {
    "case": _case,
    "words": _words,
    "starts_with": lambda text, wanted, case: _folded(text, case).startswith(_folded(str(wanted), case)),
    "ends_with": lambda text, wanted, case: _folded(text, case).endswith(_folded(str(wanted), case)),
    "contains": lambda text, wanted, case: all(_folded(part, case) in _folded(text, case) for part in _listed(wanted)),
    "words_from": _words_from,
}


class FormatCheck(Check):
    """Passes when the trimmed text is not empty and every constraint of the row holds."""

    kind = "format"

    def passes(self, text: str, row: dict) -> bool:
        text, constraints = text.strip(), row.get("constraints")
        if (
            not text
            or not isinstance(constraints, dict)
            or not constraints
            or not constraints.keys() <= CONSTRAINTS.keys()
        ):
            return False
        try:
            return all(CONSTRAINTS[name](text, wanted, constraints.get("case")) for name, wanted in constraints.items())
        except TypeError:  # such as words: {min: "3"}
            return False

    def problem(self, row: dict) -> str | None:
        constraints = row.get("constraints")
        if not isinstance(constraints, dict) or not constraints:
            return "the row has no constraints, which the check format needs"
        unknown = sorted(constraints.keys() - CONSTRAINTS.keys())
        if unknown:
            return f"the row has the unknown constraint {unknown[0]!r}; known are {', '.join(CONSTRAINTS)}"
        return super().problem(row)
