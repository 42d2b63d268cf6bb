"""The text equals the reference, or does so after a marker."""

from __future__ import annotations

from seesaw_runner.checks.base import Check, Segment, after_marker, marker_pattern, reasoning_and_answer, reference_of


class TextCheck(Check):
    """Passes when the trimmed text (after the last `after` marker) equals the reference's."""

    kind = "text"
    options = {"after": (str, False), "ignore_case": (bool, False)}

    def setup(self, options: dict, *, trusted: bool, root: str) -> None:
        self._after = marker_pattern(options["after"]) if options.get("after") else None
        self._ignore_case = options.get("ignore_case", False)

    def passes(self, text: str, row: dict) -> bool:
        expected, given = self._split(reference_of(row).text), self._split(text)
        # A text without the marker is wrong even if the rest happens to fit: the skill includes the form.
        return bool(expected[1]) and expected == given

    def _split(self, text: str) -> tuple[bool, str]:
        start = after_marker(self._after, text) if self._after else None
        rest = text[start or 0 :].replace("\r\n", "\n").strip()
        return start is not None, rest.casefold() if self._ignore_case else rest

    def own_segments(self, reference: str, row: dict) -> list[Segment]:
        return reasoning_and_answer(after_marker(self._after, reference) if self._after else None, reference)
