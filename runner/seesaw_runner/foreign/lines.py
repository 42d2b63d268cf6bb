"""Bytes of a log → lines, whatever a program does to its terminal: progress bars, colours, bad bytes, cut characters.

Standard library only.
"""

from __future__ import annotations

import codecs
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

#: A longer line is cut: nothing that reads it wants more, and a program may print a whole file as one line.
MAX_LINE = 1 << 16
#: Bytes read from one file at one look; the rest follows at the next one.
MAX_READ = 1 << 22

# OSC (links, titles) keeps its text, which stands between two of them; CSI and two-character escapes go.
_ESCAPES = re.compile(r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[[0-?]*[ -/]*[@-~]|\x1b[@-Z\\-_]")


def plain(text: str) -> str:
    """Text without terminal escapes and control characters."""
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", "", _ESCAPES.sub("", text)) if _UNPRINTED.search(text) else text


_UNPRINTED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


@dataclass(frozen=True)
class Piece:
    """One piece of a line: `end` is "\\n" for the last of a line, "\\r" for one that a later one overwrites."""

    text: str
    end: str


class LineFeed:
    """Bytes in any portions → pieces. The last, unfinished one is in `rest` (shown, but not yet to be believed)."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        self._cut = False

    @property
    def rest(self) -> str:
        return plain(self._rest)

    def feed(self, data: bytes) -> list[Piece]:
        text = self._rest + self._decoder.decode(data)
        pieces, start = [], 0
        for match in re.finditer(r"\r\n|\n|\r(?=[^\n])", text):  # a final \r may be half of \r\n
            pieces.append(Piece(plain(text[start : match.start()][:MAX_LINE]), match.group()[-1]))
            start = match.end()
        self._rest = text[start:]
        if len(self._rest) > MAX_LINE:
            self._rest = self._rest[-MAX_LINE:] if self._cut else self._rest[:MAX_LINE]
            self._cut = True
        if pieces:
            self._cut = False
        return pieces

    def close(self) -> list[Piece]:
        """The end of the stream: what is left counts as a line."""
        pieces = self.feed(self._decoder.decode(b"", final=True).encode() + b"\n")
        self._decoder.reset()
        return [piece for piece in pieces if piece.text or piece.end == "\r"]


class FileTail:
    """A growing file, read from `offset` on. Notices that it was cut short, rewritten, replaced or moved away."""

    def __init__(self, path: Path, offset: int = 0) -> None:
        self.path, self._offset = path, offset
        self._file: BinaryIO | None = None  # kept open: a moved file is read to its end, and its inode is not reused
        self._head = b""
        self._anew = False

    def read(self) -> tuple[bytes, bool]:
        """New bytes, and whether they begin the file anew (an unfinished line before them is void). Never raises."""
        try:
            if self._file is not None:
                data = self._more()
                if data:
                    return data, False
                if self._current():
                    return b"", False
                self.close()
                self._offset, self._head, self._anew = 0, b"", True
            self._file = open(self.path, "rb")
            data, anew = self._more(), self._anew
            self._anew = False
            return data, anew
        except OSError:  # not there (any more); perhaps it comes back
            return b"", False

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _current(self) -> bool:
        """Whether the path still names the file that is open, with what was read of it."""
        assert self._file is not None
        named, ours = os.stat(self.path), os.fstat(self._file.fileno())
        return os.path.samestat(named, ours) and ours.st_size >= self._offset and self._same_head()

    def _same_head(self) -> bool:
        assert self._file is not None
        self._file.seek(0)
        return self._file.read(len(self._head)) == self._head

    def _more(self) -> bytes:
        assert self._file is not None
        if os.fstat(self._file.fileno()).st_size <= self._offset or not self._same_head():
            return b""
        if not self._head:
            self._file.seek(0)
            self._head = self._file.read(64)
        self._file.seek(self._offset)
        data = self._file.read(MAX_READ)
        self._offset += len(data)
        return data
