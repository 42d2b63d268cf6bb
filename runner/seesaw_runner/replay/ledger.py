"""ledger.jsonl: which rows of a replay buffer were drawn at which step. Append-only, and exact over resumed attempts.

An attempt's first line says from which step it resumed. That line voids every earlier line of a later step:
those draws were
made by a model that was thrown away.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

VERSION = 1


class Drawn(NamedTuple):
    """How often a row was drawn, and at which step last."""

    count: int
    last_step: int


def ledger_lines(path: str | Path) -> Iterator[dict]:
    """All lines that can be read, in order; a torn one (the process was killed while writing) is left out."""
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        return
    for text in data.split(b"\n"):
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if isinstance(line, dict) and isinstance(line.get("seq"), int):
            yield line


def valid_draws(lines: Iterable[dict]) -> list[dict]:
    """The lines with draws that count, after all resumptions."""
    draws: list[dict] = []
    for line in lines:
        if "resumed_from" in line:
            draws = [draw for draw in draws if draw["step"] <= (line["resumed_from"] or 0)]
        elif isinstance(line.get("step"), int) and isinstance(line.get("draws"), list):
            draws.append(line)
    return draws


def ledger_totals(path: str | Path) -> dict[str, Drawn]:
    """Row hash → how often and when last it was drawn."""
    totals: dict[str, Drawn] = {}
    for line in valid_draws(ledger_lines(path)):
        for row, count in line["draws"]:
            before = totals.get(row, Drawn(0, 0))
            totals[row] = Drawn(before.count + count, max(before.last_step, line["step"]))
    return totals


class Ledger:
    """The writer of one attempt; only the training process of rank 0 has one."""

    def __init__(self, path: str | Path, attempt: int = 1, resumed_from: int | None = None) -> None:
        existing = list(ledger_lines(path))
        self._seq = max((line["seq"] for line in existing), default=0)
        self._attempt = attempt
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        size = os.fstat(self._file).st_size
        if size and os.pread(self._file, 1, size - 1) != b"\n":
            os.write(self._file, b"\n")  # ends the torn line, so that it spoils only itself
        self._write({"resumed_from": resumed_from})

    def draw(self, step: int, hashes: Iterable[str], buffer: str) -> tuple[int, int]:
        """Records the rows of one step's batch, in any order. Returns how many, and how many different ones."""
        counts = Counter(hashes)
        if counts:
            self._write(
                {"step": step, "draws": [[row, count] for row, count in sorted(counts.items())], "buffer": buffer}
            )
        return sum(counts.values()), len(counts)

    def close(self) -> None:
        os.fsync(self._file)
        os.close(self._file)

    def _write(self, body: dict) -> None:
        self._seq += 1
        line = {"v": VERSION, "seq": self._seq, "attempt": self._attempt, **body}
        os.write(self._file, json.dumps(line, separators=(",", ":")).encode() + b"\n")
