"""Probe rows that are also trained on: they measure memory, and would hide forgetting. They count for no flag."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from seesaw_runner.data.canonical import prompt_or_row_hash
from seesaw_runner.data.rows import read_rows
from seesaw_runner.probing.probe_set import Probe, ProbeSet

#: Seconds for reading what is trained on; a larger file is compared in part, and that is said.
BUDGET = 60.0


def trained_rows(sets: list[ProbeSet], spec: dict, run: Path, journal) -> list[set[int]]:
    """For each set the places among its usable rows whose prompt is in the stage's data or its replay buffer; a row
    without a prompt is compared whole. Told in a `probe-in-training` warning for each set.
    """
    wanted = {_key(s.probes[i]) for s in sets for i in s.usable}
    found: dict[str, str] = {}
    for path in [spec["data"]] if spec.get("data") else []:
        found |= {key: place for key, place in _in_file(path, wanted, journal) if key not in found}
    for key, place in _in_buffer(run / "buffer.json", wanted):
        found.setdefault(key, place)
    out = []
    for s in sets:
        hits = {k: s.probes[i] for k, i in enumerate(s.usable) if _key(s.probes[i]) in found}
        out.append(set(hits))
        if hits:
            first = next(iter(hits.values()))
            journal.append(
                "warning",
                code="probe-in-training",
                severity="warning",
                where=f"{s.path}:{first.line}",
                message=f"{len(hits)} of {len(s.usable)} probes of {s.id} are also trained on and raise no flags: "
                + _listed(s.path, list(hits.values()), found),
                fix="Take these rows out of the training data, or give the skill other probes.",
            )
    return out


def _key(probe: Probe) -> str:
    return probe.prompt_hash or probe.hash


def _listed(path: str, probes: list[Probe], found: dict[str, str]) -> str:
    """Where the first few are, in both files."""
    named = [f"{Path(path).name}:{p.line} is {found[_key(p)]}" for p in probes[:3]]
    return "; ".join(named) + ("; …" if len(probes) > 3 else ".")


def _in_file(path: str, wanted: set[str], journal) -> Iterator[tuple[str, str]]:
    """(key, file:line) of the rows of a file that are wanted."""
    deadline, seen = time.monotonic() + BUDGET, set()
    for count, row in enumerate(read_rows(path)):
        if count % 1024 == 1023 and time.monotonic() > deadline:
            journal.append(
                "warning",
                code="membership-unchecked",
                severity="info",
                where=f"{path}:{row.line}",
                message=f"Only the first {count} rows of {path} were compared with the probes; more take too long.",
            )
            return
        if row.error is not None:
            continue
        key = prompt_or_row_hash(row.value)
        if key in wanted and key not in seen:
            seen.add(key)
            yield key, f"{path}:{row.line}"


def _in_buffer(path: Path, wanted: set[str]) -> Iterator[tuple[str, str]]:
    try:
        rows: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["rows"]
    except FileNotFoundError:
        return
    for row in rows:
        key = row.get("prompt_hash") or row["hash"]
        if key in wanted:
            yield key, f"{row['source']}:{row['line']} (replayed)"
