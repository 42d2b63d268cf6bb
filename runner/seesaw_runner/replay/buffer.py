"""The replay buffer of a stage: rows of earlier stages, good enough and different from each other, frozen into
buffer.json.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from seesaw_runner.data.canonical import row_hashes
from seesaw_runner.data.row_problems import row_problems
from seesaw_runner.data.rows import Row, read_rows
from seesaw_runner.replay.choosing import choose
from seesaw_runner.replay.coverage import share_out
from seesaw_runner.replay.features import States
from seesaw_runner.replay.ledger import Drawn, Ledger, ledger_totals
from seesaw_runner.replay.near_duplicates import NearDuplicates, row_shingles
from seesaw_runner.replay.nearness import nearest, rows_to_be_near
from seesaw_runner.replay.quality import Quality, Rater, ReplayError

__all__ = ["Buffer", "BufferRow", "Drawn", "Ledger", "ReplayError", "build_buffer", "ledger_totals", "share_out"]

VERSION = 1


@dataclass(frozen=True)
class BufferRow:
    """`source` is the data file, relative to the root where it lies inside; `since` the stage that brought the
    row in; `near` how similar its prompt is to that of the nearest named row, where it was taken for that.
    """

    hash: str
    prompt_hash: str | None
    answer_hash: str | None
    source: str
    line: int
    since: str
    near: float | None = None


@dataclass
class Buffer:
    """A frozen buffer. `sources` counts, for each stage: rows read, kept after all filters, taken, and its quota where
    stages have one. `coverage` says, for each stage whose rows were chosen by what they cover, how far the rows left
    out are from the ones taken, and how far they would be from a choice by chance. `nearness` says, for each stage of a
    buffer with `near`, how similar the rows taken for it are to the nearest named row, and rows taken by chance.
    """

    buffer: str
    seed: int
    ratio: float
    rows: list[BufferRow]
    dropped: dict[str, int]
    sources: list[dict[str, Any]] = field(default_factory=list)
    coverage: list[dict[str, Any]] = field(default_factory=list)
    nearness: list[dict[str, Any]] = field(default_factory=list)

    def save(self, path: str | Path) -> None:
        """Writes buffer.json whole or not at all."""
        path = Path(path)
        temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump({"v": VERSION, **asdict(self), "rows": [_written(row) for row in self.rows]}, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)

    @staticmethod
    def load(path: str | Path) -> Buffer:
        """Reads buffer.json; fields of a newer minor version are ignored."""
        data = json.loads(Path(path).read_text(encoding="utf-8"))
        if data.get("v") != VERSION:
            raise ReplayError(
                f"{path} has version {data.get('v')}, this Seesaw reads version {VERSION}; update Seesaw or "
                "start a new run"
            )
        rows = [BufferRow(**{name: row.get(name) for name in BufferRow.__dataclass_fields__}) for row in data["rows"]]
        return Buffer(
            data["buffer"],
            data["seed"],
            data["ratio"],
            rows,
            data["dropped"],
            data.get("sources", []),
            data.get("coverage", []),
            data.get("nearness", []),
        )

    def values(self, root: str | Path) -> list[dict]:
        """The rows themselves, read again from their files, in the order of `rows`. ReplayError if a file has
        changed since.
        """
        found: dict[str, dict] = {}
        for source in dict.fromkeys(row.source for row in self.rows):
            lines = {row.line for row in self.rows if row.source == source}
            for row in read_rows(Path(root) / source):
                if row.line in lines and row.error is None:
                    found[row_hashes(row.value).full] = row.value
        for row in self.rows:
            if row.hash not in found:
                raise ReplayError(
                    f"line {row.line} of {row.source} is no longer the row in the buffer {self.buffer}; the file "
                    "changed after the run was prepared, restore it or start a new run"
                )
        return [found[row.hash] for row in self.rows]


def build_buffer(
    replay_spec: dict,
    *,
    skills: list[dict],
    seed: int,
    root: str | Path,
    trusted: bool,
    rater: Rater | None = None,
    states: States | None = None,
    width: int = 0,
) -> Buffer:
    """Builds the buffer that `replay` of run.json describes. The same input and seed give the same buffer.

    A row whose prompt is also a probe's never gets in (`dropped.probe`): training on it would hide forgetting.
    Where the buffer has `near`, up to half of each share are rows like the named ones; the rest is chosen as without.
    rater: the reward model that `quality` names. states: hidden states of rows, `width` numbers each, where `diversity`
    compares them.
    """
    kept: list[list[BufferRow]] = []
    sources, dropped = [], {"quality": 0, "duplicate": 0, "probe": 0}
    probes = probe_hashes(skills)
    seen: set[str] = set()
    diversity, quotas = replay_spec.get("diversity") or {}, replay_spec.get("quotas")
    copies = NearDuplicates(diversity["minhash"]) if diversity.get("minhash") else None
    wanted = rows_to_be_near(replay_spec)
    for origin in replay_spec["from"]:
        gate = Quality(replay_spec.get("quality"), origin, skills, root, trusted, rater)
        rows, read, passed = [], 0, 0
        for row, good_enough in gate.judged(_usable(origin["data"])):
            read += 1
            if not good_enough:
                dropped["quality"] += 1
                continue
            passed += 1
            hashes = row_hashes(row.value)
            if hashes.prompt in probes or hashes.full in probes:
                dropped["probe"] += 1
                continue
            # The same record twice is one member, whatever `diversity` says: members are known by their hash.
            if hashes.full in seen or (copies and not copies.add(row_shingles(row.value))):
                dropped["duplicate"] += 1
                continue
            seen.add(hashes.full)
            rows.append(BufferRow(*hashes, _relative(origin["data"], root), row.line, origin["stage"]))
        if read and not passed:
            raise ReplayError(gate.none_passed())
        kept.append(rows)
        sources.append(
            {"stage": origin["stage"], "data": _relative(origin["data"], root), "rows": read, "kept": len(rows)}
        )
    available = [len(rows) for rows in kept]
    if quotas:
        shares = [
            min(quotas.get(origin["stage"], 0), n) for origin, n in zip(replay_spec["from"], available, strict=True)
        ]
    else:
        shares = share_out(replay_spec["rows"], available)
    taken: list[BufferRow] = []
    coverage: list[dict[str, Any]] = []
    nearness: list[dict[str, Any]] = []
    for origin, source, rows, share in zip(replay_spec["from"], sources, kept, shares, strict=True):
        source |= {"taken": share} | ({"quota": quotas.get(origin["stage"], 0)} if quotas else {})
        hashes, lines = [row.hash for row in rows], [row.line for row in rows]
        path, drawn = origin["data"], f"{seed}/{replay_spec['buffer']}/{origin['stage']}"
        first: dict[int, float] = {}
        if wanted and rows:
            first, bought = nearest(wanted, hashes, lines, share, path=path, seed=drawn)
            nearness.append({"stage": origin["stage"], **bought})
        chosen, told = choose(
            hashes,
            lines,
            share,
            path=path,
            seed=drawn,
            diversity=diversity,
            first=first.keys(),
            states=states,
            width=width,
        )
        taken += [replace(rows[i], near=first.get(i)) for i in chosen]
        coverage += [{"stage": origin["stage"], **told}] if told else []
    if not taken:
        raise ReplayError(
            f"the buffer {replay_spec['buffer']} is empty: its stages have no usable rows; check `from` and the "
            "data files"
        )
    return Buffer(replay_spec["buffer"], seed, replay_spec["ratio"], taken, dropped, sources, coverage, nearness)


def probe_hashes(skills: list[dict]) -> set[str]:
    """Prompt hashes of every probe, and the whole row's where it has no prompt. A file that is gone has none: that is
    preflight's to say."""
    found: set[str] = set()
    for path in {path for skill in skills for path in (skill.get("probes") or {}).values() if path}:
        with contextlib.suppress(OSError):
            for row in read_rows(path):
                if row.error is None:
                    hashes = row_hashes(row.value)
                    found.add(hashes.prompt or hashes.full)
    return found


def _written(row: BufferRow) -> dict[str, Any]:
    """Only rows that were taken for their nearness say so."""
    return {name: value for name, value in asdict(row).items() if name != "near" or value is not None}


def _usable(path: str) -> Iterator[Row]:
    """Rows that can be trained on; the others are preflight's to report."""
    for row in read_rows(path):
        if row.error is None and not any(
            problem.code in ("no-trainable-text", "unknown-format", "no-label") for problem in row_problems(row.value)
        ):
            yield row


def _relative(path: str, root: str | Path) -> str:
    absolute = os.path.abspath(os.path.join(root, path))
    inside = os.path.relpath(absolute, root)
    return absolute if inside.startswith("..") else inside.replace(os.sep, "/")
