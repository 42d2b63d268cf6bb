"""A skill's own segment patterns: regular expressions over the reference, instead of the names its check gives."""

from __future__ import annotations

import re
from typing import NamedTuple


class CheckError(ValueError):
    """A check's settings are wrong; the text is a sentence for the person who wrote them."""


class Segment(NamedTuple):
    start: int
    end: int
    name: str


def compile_patterns(segments: list[dict]) -> list[tuple[str, re.Pattern[str]]]:
    """Name and compiled pattern of each. Raises CheckError with a sentence."""
    result = []
    for item in segments:
        if (
            not isinstance(item, dict)
            or not isinstance(item.get("name"), str)
            or not isinstance(item.get("pattern"), str)
        ):
            raise CheckError("each of segments needs a name and a pattern, both texts")
        try:
            result.append((item["name"], re.compile(item["pattern"])))
        except re.error as error:
            raise CheckError(f"the pattern of the segment {item['name']!r} is no regular expression: {error}") from None
    return result


def by_patterns(patterns: list[tuple[str, re.Pattern[str]]], reference: str) -> list[Segment]:
    """All matches of all patterns (group 1, if the pattern has groups); earlier patterns win, the rest is `answer`."""
    names = ["answer"] * len(reference)
    free = [True] * len(reference)
    for name, pattern in patterns:
        for match in pattern.finditer(reference):
            for i in range(*match.span(1 if pattern.groups else 0)):
                if free[i]:
                    names[i], free[i] = name, False
    return merged(names)


def merged(names: list[str]) -> list[Segment]:
    """One name per character → runs of equal names."""
    result: list[Segment] = []
    for i, name in enumerate(names):
        if result and result[-1].name == name:
            result[-1] = result[-1]._replace(end=i + 1)
        else:
            result.append(Segment(i, i + 1, name))
    return result
