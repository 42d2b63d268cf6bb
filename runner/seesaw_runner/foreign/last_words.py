"""Why a command failed, from the end of its output. Standard library only."""

from __future__ import annotations

import re
from collections import deque

from seesaw_runner.foreign.lines import LineFeed

_ERROR = re.compile(r"(?:\[?rank\d+\]?:?\s*)?[\w.]*(?:Error|Exception|Interrupt|Exit|Failure)(?::.*)?\Z")
_ALSO = re.compile(r"\b(?:error|fatal|failed|cannot|not found|No such file|Killed)\b", re.IGNORECASE)
_FRAME = re.compile(r'^\s*File "([^"]+)", line (\d+), in (\S+)')
_MEMORY = re.compile(
    r"out of memory|OutOfMemoryError|can't allocate memory|Cannot allocate memory|MemoryError\b|oom-kill", re.IGNORECASE
)
_WORKER_KILLED = re.compile(r"exitcode: -9\b|signal 9\b|SIGKILL\b")
_DISK = re.compile(r"No space left on device|Disk quota exceeded|\(os error (?:28|122)\)")


class LastWords:
    """Keeps the last lines of an output."""

    def __init__(self, lines: int = 400) -> None:
        self._feed, self._lines = LineFeed(), deque[str](maxlen=lines)

    def feed(self, data: bytes) -> None:
        self._lines.extend(p.text for p in self._feed.feed(data) if p.end == "\n" and p.text.strip())

    def tell(self) -> tuple[str, str, str | None]:
        """(failure code, last error line or the last line, place in the user's code or None)."""
        lines = [*self._lines, *([self._feed.rest] if self._feed.rest.strip() else [])]
        text = "\n".join(lines[-80:])
        said = next((line.strip() for line in reversed(lines) if _ERROR.match(line.strip())), None)
        said = said or next((line.strip() for line in reversed(lines[-20:]) if _ALSO.search(line)), None)
        said = said or (lines[-1].strip() if lines else "it printed nothing")
        frames = [m for line in lines if (m := _FRAME.match(line))]
        ours = [m for m in frames if "site-packages" not in m.group(1) and not m.group(1).startswith("<")]
        place = (ours or frames)[-1] if frames else None
        where = f"{place.group(1).rsplit('/', 1)[-1]}:{place.group(2)} in {place.group(3)}" if place else None
        if _MEMORY.search(text):
            memory = next((line.strip() for line in reversed(lines) if _MEMORY.search(line)), said)
            return "out-of-memory", memory[:500], where
        if _WORKER_KILLED.search(text):
            return "out-of-memory", "a worker was killed by signal 9, most often because memory ran out", where
        if _DISK.search(text):
            return "disk-full", said[:500], where
        return "exception", said[:500], where
