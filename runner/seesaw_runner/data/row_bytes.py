"""The bytes of a dataset file as lines: unpacked if it is a gzip file, without its byte order mark, split on LF only.

What a file is follows from its first bytes, never from its name.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from seesaw_runner.data.row_parse import Note

CHUNK = 1 << 20
MAX_UNPACKED = 64 << 30  # a gzip file of a few MB can unpack to more than the machine has
_BOM = b"\xef\xbb\xbf"
_FOREIGN = {
    b"\x28\xb5\x2f\xfd": "a zstd file; unpack it with `zstd -d` or pack it as gzip",
    b"PAR1": "a Parquet file; convert it to JSON Lines, for instance with `Dataset.from_parquet(…).to_json(…)`",
    b"PK\x03\x04": "a ZIP archive; unpack it",
    b"BZh": "a bzip2 file; unpack it or pack it as gzip",
    b"\xfd7zXZ": "an xz file; unpack it or pack it as gzip",
    b"\xff\xfe": "UTF-16 text; save it as UTF-8",
    b"\xfe\xff": "UTF-16 text; save it as UTF-8",
}


class Line(NamedTuple):
    """A physical line without its LF. `offset` counts the (unpacked) bytes before it, `column` the characters
    before it plus 1.
    """

    number: int
    offset: int
    data: bytes
    ended: bool = True
    column: int = 1


class ByteSource:
    """Reads one file front to back. `notes` is complete, and `foreign` known, when the lines have been read."""

    def __init__(self, path: str | Path, max_unpacked: int = MAX_UNPACKED) -> None:
        self.path = Path(path)
        self.notes: list[Note] = []
        self.foreign: str | None = None
        self._max_unpacked = max_unpacked

    def lines(self) -> Iterator[Line]:
        return split_lines(*self._content())

    def _content(self) -> tuple[Iterable[bytes], int]:
        """The chunks after a byte order mark, and how many bytes that mark has."""
        chunks = self._unpacked()
        first = next(chunks, b"")
        self.foreign = self.foreign or next((what for magic, what in _FOREIGN.items() if first.startswith(magic)), None)
        if self.foreign:
            return (), 0
        skipped = len(_BOM) if first.startswith(_BOM) else 0
        if skipped:
            self.notes.append(Note("bom", "UTF-8 BOM at the start of the file; it is skipped"))
        return _chain(first[skipped:], chunks), skipped

    def _unpacked(self) -> Iterator[bytes]:
        with open(self.path, "rb") as file:
            first = file.read(CHUNK)
            rest = iter(lambda: file.read(CHUNK), b"")
            if first.startswith(b"\x1f\x8b"):
                yield from self._gunzip(_chain(first, rest))
            else:
                yield from _chain(first, rest)

    def _gunzip(self, packed: Iterable[bytes]) -> Iterator[bytes]:
        member, total = zlib.decompressobj(wbits=31), 0
        for data in packed:
            while data:
                try:
                    out = member.decompress(data, CHUNK)
                except zlib.error as error:
                    self.notes.append(
                        Note(
                            "archive-damaged",
                            f"the gzip archive is damaged ({error}); the rows before the damage are read",
                        )
                    )
                    return
                total += len(out)
                if total > self._max_unpacked:
                    self.notes.append(
                        Note(
                            "archive-too-large",
                            f"the archive unpacks to more than {self._max_unpacked} bytes; the rest is not read",
                        )
                    )
                    return
                if out:
                    yield out
                data = member.unconsumed_tail
                if member.eof:
                    data = member.unused_data.lstrip(b"\0")
                    if data:
                        member = zlib.decompressobj(wbits=31)
        yield member.flush()
        if not member.eof:
            self.notes.append(Note("archive-cut", "the archive ends early; the rows up to there are read"))


def _chain(first: bytes, rest: Iterable[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def split_lines(chunks: Iterable[bytes], offset: int = 0) -> Iterator[Line]:
    """Splits on LF alone: CR, U+2028 and the like are characters of a row."""
    number, pending = 1, []
    for chunk in chunks:
        *complete, tail = chunk.split(b"\n")
        for piece in complete:
            data = b"".join((*pending, piece)) if pending else piece
            pending = []
            yield Line(number, offset, data)
            number, offset = number + 1, offset + len(data) + 1
        if tail:
            pending.append(tail)
    if pending:
        yield Line(number, offset, b"".join(pending), ended=False)
