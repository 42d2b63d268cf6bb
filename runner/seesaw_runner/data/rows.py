"""Streaming reader of dataset files: one `Row` for each row, good or bad, in one pass. See `.github/contracts.md` §3.

A bad row never stops the reading; it comes out as a `Row` with an `error`. Memory is bounded by the largest single row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seesaw_runner.data.row_array import BLANK, elements, resplit
from seesaw_runner.data.row_bytes import MAX_UNPACKED, ByteSource, Line
from seesaw_runner.data.row_parse import Note, RowError, parse_json
from seesaw_runner.data.row_shapes import row_format, to_messages, to_turns

__all__ = ["Note", "Row", "RowError", "RowReader", "read_rows", "row_format", "to_messages", "to_turns"]

_KINDS = {dict: "an object", list: "an array", str: "a string", bool: "a Boolean", type(None): "null"}


@dataclass(frozen=True)
class Row:
    """`index` counts rows from 0 (bad ones too), `line` physical lines from 1, `offset` bytes (of the unpacked
    content).
    """

    index: int
    line: int
    offset: int
    value: Any
    error: RowError | None = None
    warnings: list[Note] = field(default_factory=list)


class RowReader:
    """Iterate once. Afterwards `notes` says what is odd about the file as a whole and `form` how it is written."""

    def __init__(self, path: str | Path, max_unpacked: int = MAX_UNPACKED) -> None:
        self._source = ByteSource(path, max_unpacked)
        self.form = "lines"

    @property
    def notes(self) -> list[Note]:
        return self._source.notes

    def __iter__(self) -> Iterator[Row]:
        index = 0
        for raw in self._raw_rows():
            for row in self._parse(index, raw):
                yield row
                index = row.index + 1
        if self._source.foreign:
            yield Row(0, 1, 0, None, RowError(f"this is {self._source.foreign}", 1, 1))

    def _raw_rows(self) -> Iterator[Line]:
        lines = (line for line in self._source.lines())
        ahead = self._look_ahead(lines)
        if self.form == "array":
            yield from elements(_then(ahead, lines), self.notes)
        else:
            yield from (line for line in _then(ahead, lines) if line.data.strip(BLANK))

    def _look_ahead(self, lines: Iterator[Line]) -> list[Line]:
        """Decides between lines and array: an array starts with `[` and is not just the first of several
        complete rows.
        """
        ahead: list[Line] = []
        for line in lines:
            ahead.append(line)
            if not line.data.strip(BLANK):
                continue
            if (
                self.form == "array"
            ):  # a second row: the whole array on the first one is only a (wrong) row among others
                self.form = "lines"
                return ahead
            if not line.data.lstrip(BLANK).startswith(b"["):
                return ahead
            value, error, _ = parse_json(line.data.decode("utf-8", "replace").strip(" \t\r"))
            if error or all(isinstance(item, dict) for item in value):
                self.form = "array"
            if error or self.form == "lines":
                return ahead
        return ahead

    def _parse(self, index: int, raw: Line) -> Iterator[Row]:
        row = _to_row(index, raw)
        parts = resplit(raw) if row.error and self.form == "array" and b"\n" in raw.data else []
        if len(parts) < 2:
            yield row
            return
        rows = [_to_row(index + i, part) for i, part in enumerate(parts)]
        if not any(row.error for row in rows):
            self.notes.append(
                Note("array-comma", f"line {raw.number}: a comma is missing between elements of the array; add it")
            )
        yield from rows


def read_rows(path: str | Path) -> RowReader:
    """All rows of a file, with everything that is wrong with them. Raises OSError only if the file cannot be
    opened or read.
    """
    return RowReader(path)


def _then(ahead: list[Line], rest: Iterator[Line]) -> Iterator[Line]:
    yield from ahead
    yield from rest


def _to_row(index: int, raw: Line) -> Row:
    warnings: list[Note] = []
    try:
        text = raw.data.decode()
    except UnicodeDecodeError as error:
        text = raw.data.decode("utf-8", "replace")
        warnings.append(
            Note(
                "invalid-utf8",
                f"invalid UTF-8, byte 0x{raw.data[error.start]:02X} at file offset {raw.offset + error.start}; "
                "U+FFFD is shown in its place",
            )
        )
    value, error, notes = parse_json(text.removesuffix("\r"), raw.number)
    if error is None and not isinstance(value, dict):
        error = RowError(f"the row is {_KINDS.get(type(value), 'a number')}, not an object", raw.number, 1)
    if error:
        column = error.column + raw.column - 1 if error.line == raw.number else error.column
        message = (
            error.message
            if raw.ended
            else f"{error.message}; the last line has no end, the file may still be being written"
        )
        error = RowError(message, error.line, column)
    return Row(index, raw.number, raw.offset, value, error, warnings + notes)
