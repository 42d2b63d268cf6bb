"""The elements of a JSON array that spans lines, one at a time and each with the place where it starts.

Only brackets and strings are looked at here; every element is parsed on its own later, so a broken one hides no other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from seesaw_runner.data.row_bytes import Line
from seesaw_runner.data.row_parse import Note

BLANK = b" \t\r\n"
# A string cannot span lines: one that is not closed ends with its line, and its element will not parse.
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[\]{},]', re.DOTALL)


def elements(lines: Iterable[Line], notes: list[Note]) -> Iterator[Line]:
    """Elements as `Line`s whose data may hold several lines. Text after the array is handed on line by line."""
    depth, pieces, start, after_comma = 0, [], None, False
    source = iter(lines)
    for line in source:
        data = line.data + b"\n" if line.ended else line.data
        begin = 0
        for token in _TOKEN.finditer(data):
            mark = token.group()
            if mark in b"[{":
                depth += 1
                if depth == 1:
                    begin, start = token.end(), None
            elif mark in b"]}" and depth > 1:
                depth -= 1
            elif depth == 1 and mark in b",]":
                pieces.append(data[begin : token.start()])
                element = _element(pieces, start or _at(line, begin))
                if element:
                    yield element
                elif mark == b"," or after_comma:
                    notes.append(Note("array-comma", f"line {line.number}: a comma too many in the array; remove it"))
                after_comma = mark == b","
                pieces, start, begin = [], None, token.end()
                if mark == b"]":
                    rest = line.data[begin:]
                    if rest.strip(BLANK):
                        yield _at(line, begin)._replace(data=rest)
                    yield from (line for line in source if line.data.strip(BLANK))
                    return
        if depth:
            start = start or _at(line, begin)
            pieces.append(data[begin:])
    notes.append(Note("array-open", "the array has no closing bracket; the file may have been cut off"))
    element = _element(pieces, start) if start else None
    if element:
        yield element._replace(ended=False)


def _at(line: Line, begin: int) -> Line:
    column = line.column + len(line.data[:begin].decode("utf-8", "replace"))
    return Line(line.number, line.offset + begin, b"", line.ended, column)


def _element(pieces: list[bytes], start: Line) -> Line | None:
    """The element without the blanks around it, or None if there is nothing else."""
    data = b"".join(pieces)
    text = data.lstrip(BLANK)
    if not text:
        return None
    lead = data[: len(data) - len(text)]
    column = start.column + len(lead) if b"\n" not in lead else len(lead) - lead.rfind(b"\n")
    return Line(start.number + lead.count(b"\n"), start.offset + len(lead), text.rstrip(BLANK), True, column)


def resplit(element: Line) -> list[Line]:
    """A broken element, cut where a line begins like the element itself: a missing brace swallows all elements
    after it.
    """
    indent = element.column - 1
    pattern = re.compile(rb"\n(?=[ \t]{%d}\{)" % indent)
    cuts = [0, *(match.end() + indent for match in pattern.finditer(element.data)), len(element.data)]
    result = []
    for begin, end in zip(cuts, cuts[1:], strict=False):
        data = element.data[begin:end].rstrip(BLANK)
        last = end == len(element.data)
        if last and data.endswith(b"]") and data.count(b"[") < data.count(b"]"):
            data = data[:-1].rstrip(BLANK)
        data = data[:-1] if data.endswith(b",") else data
        number = element.number + element.data.count(b"\n", 0, begin)
        result.append(Line(number, element.offset + begin, data, True, element.column))
    return result
