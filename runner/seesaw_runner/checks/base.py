"""What every check is, and what the kinds share."""

from __future__ import annotations

import re
from typing import Any, ClassVar, NamedTuple

from seesaw_runner.checks.patterns import CheckError, Segment, by_patterns
from seesaw_runner.data.row_shapes import split_turns

__all__ = ["Check", "CheckError", "Segment", "after_marker", "marker_pattern", "reference_of"]


class Answer(NamedTuple):
    text: str
    tool_calls: Any


def reference_of(row: dict) -> Answer:
    """The expected answer: the row's last assistant turn, trimmed; empty if there is none."""
    turn = split_turns(row)[1]
    if turn is None:
        return Answer("", None)
    text = turn.text if isinstance(turn.text, str) else getattr(turn.text, "text", None) or str(turn.text)
    return Answer(text, turn.tool_calls)


def marker_pattern(marker: str) -> re.Pattern[str]:
    """The marker as a word of its own: `so` is not found in `also`, `####` anywhere."""
    left = r"(?<!\w)" if marker[:1].isalnum() else ""
    right = r"(?!\w)" if marker[-1:].isalnum() else ""
    return re.compile(left + re.escape(marker) + right)


def after_marker(pattern: re.Pattern[str], text: str) -> int | None:
    """Where the text after the last marker begins, or None without a marker."""
    end = None
    for match in pattern.finditer(text):
        end = match.end()
    return end


class Check:
    """One kind of check. `passes` and `segments` never raise, whatever the text."""

    kind: ClassVar[str]
    # name → (type or types, needed)
    options: ClassVar[dict[str, tuple[Any, bool]]] = {}

    def __init__(self, options: dict, *, trusted: bool, root: str) -> None:
        self.patterns: list[tuple[str, re.Pattern[str]]] = []
        self.setup(options, trusted=trusted, root=root)

    def setup(self, options: dict, *, trusted: bool, root: str) -> None:
        """Reads the options; raises CheckError."""

    def passes(self, text: str, row: dict) -> bool:
        """Whether the generated text counts as right for this row."""
        raise NotImplementedError

    def problem(self, row: dict) -> str | None:
        """Why no text at all can pass on this row, or None. Asked before a run, on every probe."""
        reference = reference_of(row)
        if not reference.text and not reference.tool_calls:
            return "the row has no reference answer"
        return None if self.passes(reference.text, row) else "the check fails on the row's own reference"

    def segments(self, reference: str, row: dict) -> list[Segment]:
        """Named parts of the reference, in order and without gaps; offsets in characters. The terminator is not
        among them.
        """
        if self.patterns:
            return by_patterns(self.patterns, reference)
        return [part for part in self.own_segments(reference, row) if part.end > part.start]

    def own_segments(self, reference: str, row: dict) -> list[Segment]:
        return [Segment(0, len(reference), "answer")]


def reasoning_and_answer(start: int | None, reference: str) -> list[Segment]:
    """What comes before the place where the answer starts, and the answer; all of it is answer if there is no
    such place.
    """
    start = start or 0
    return [Segment(0, start, "reasoning"), Segment(start, len(reference), "answer")]
