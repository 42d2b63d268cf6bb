"""The journal of a run: an append-only file of one JSON event a line. See `.github/contracts.md` §6.

The training process (rank 0) writes here while it lives; after its end the agent adds `run.finished` with its own few
lines (`agent.finish_journal`), because it has to work as a lone file. The readable-line rule is shared: `read_event`.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from seesaw_runner.agent import FORMAT, read_event
from seesaw_runner.wire_numbers import encode

HEAD = ("v", "seq", "t", "attempt", "type")


class JournalError(RuntimeError):
    """The journal cannot be written. `code` is the failure code for outcome.json; the text says what to do."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class JournalVersionError(ValueError):
    """The journal has a newer major format than this version reads."""


class Journal:
    """Appends events. Thread-safe; one process at a time.

    path: the run's journal.jsonl, made when missing. attempt: the number in the attempt folder's name. clock: unix
    seconds. `seq` goes on from the last readable line; a torn last line is ended first, so that nothing is lost.
    """

    def __init__(self, path: str | os.PathLike[str], attempt: int, clock: Callable[[], float] = time.time) -> None:
        self.path, self.attempt = Path(path), attempt
        self._clock, self._lock = clock, threading.Lock()
        try:
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise self._failed(error) from error
        self.seq, self._torn = _tail(self._fd)

    def append(self, kind: str, /, **fields: Any) -> int:
        """Writes one event and returns its seq. Non-finite numbers are encoded.

        On the disk before it returns for checkpoint.saved and run.*. Raises JournalError when it cannot be written
        (then the file is as before), ValueError for a field that the head owns, TypeError for what JSON cannot hold.
        """
        taken = [name for name in HEAD if name in fields]
        if taken:
            raise ValueError(f"`{taken[0]}` of a journal event is set by the journal; name the field otherwise.")
        body = encode(fields)
        with self._lock:
            head = {"v": FORMAT, "seq": self.seq + 1, "t": round(self._clock(), 3), "attempt": self.attempt}
            event = {**head, "type": kind, **body}
            line = json.dumps(event, allow_nan=False, separators=(",", ":")).encode("ascii") + b"\n"
            durable = kind == "checkpoint.saved" or kind.startswith("run.")
            self._write(b"\n" + line if self._torn else line, durable)
            self.seq, self._torn = self.seq + 1, False
            return self.seq

    def close(self) -> None:
        """Lets go of the file; a second call does nothing."""
        with self._lock:
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self, data: bytes, durable: bool) -> None:
        """One write for the whole line. A disk that takes only a part of it gets that part taken back."""
        size = 0
        try:
            size = os.fstat(self._fd).st_size
            while data:
                data = data[os.write(self._fd, data) :]
            if durable:
                os.fsync(self._fd)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, size)
                self.seq, self._torn = _tail(self._fd)
            raise self._failed(error) from error

    def _failed(self, error: OSError) -> JournalError:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            quota = "your disk quota is used up: `quota -s` shows it, on Lustre `lfs quota`"
            what = "the disk is full" if error.errno == errno.ENOSPC else quota
            fix = "Make room there and run the stage again: it goes on from its last checkpoint."
            return JournalError("disk-full", f"Cannot write {self.path}: {what}. {fix}")
        fix = "Check the folder and its disk, then run the stage again: it goes on from its last checkpoint."
        return JournalError("exception", f"Cannot write {self.path}: {error.strerror}. {fix}")


class NullJournal:
    """For ranks other than 0: takes every event and writes none."""

    seq = 0

    def append(self, kind: str, /, **fields: Any) -> int:
        return 0

    def close(self) -> None:
        pass

    def __enter__(self) -> NullJournal:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def read_events(path: str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
    """The events of a journal in file order, unknown types and newer minor formats included.

    A line that is not an event (torn by a crash, or still being written) is passed over; a missing file has no events.
    Non-finite numbers stay strings: `numbers.decode` reads a field. Raises JournalVersionError for a newer major one.
    """
    with contextlib.suppress(FileNotFoundError), open(path, "rb") as handle:
        for line in handle:
            event = read_event(line) if line.endswith(b"\n") else {}
            if not event:
                continue
            if _major(event.get("v")) > FORMAT:
                raise JournalVersionError(
                    f"{path} was written by a newer Seesaw (format {event['v']}, this one reads "
                    f"{FORMAT}): update Seesaw to look at this run."
                )
            yield event


def standing_events(events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The events that later attempts have not made void: a resume takes back all with a `step` after its own, and an
    attempt from scratch every one (the same rule as `src/domain/run/runLists.ts`)."""
    kept: list[dict[str, Any]] = []
    for event in events:
        if event.get("type") == "run.started" and event.get("attempt", 1) > 1:
            last = event.get("resumed_from")
            kept = [
                e for e in kept if not isinstance(e.get("step"), int) or e["step"] <= (-1 if last is None else last)
            ]
        kept.append(event)
    return kept


def _major(version: Any) -> int:
    """1 for 1, 1.3 and "1.3"; anything else counts as format 1."""
    try:
        return int(str(version).partition(".")[0])
    except ValueError:
        return FORMAT


def _tail(fd: int) -> tuple[int, bool]:
    """(seq of the last readable line or 0, whether the file ends inside a line), reading backwards from the end."""
    size, span = os.fstat(fd).st_size, 1 << 16
    while True:
        begin = max(0, size - span)
        lines = os.pread(fd, size - begin, begin).split(b"\n")
        for line in reversed(lines[1:] if begin else lines):
            event = read_event(line)
            if event:
                return event["seq"], lines[-1] != b""
        if begin == 0:
            return 0, lines[-1] != b""
        span *= 8
