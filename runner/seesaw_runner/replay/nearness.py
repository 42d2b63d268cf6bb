"""Rows that are most like rows which someone named: what a buffer takes first where it has `near`.

Prompts are compared, by TF-IDF; an answer that changed must not decide what protects it.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from seesaw_runner.data.canonical import prompt_or_row_hash
from seesaw_runner.data.rows import read_rows
from seesaw_runner.replay.quality import ReplayError

# numpy is imported where it is needed: a preflight reads the lines without it.


@dataclass(frozen=True)
class Named:
    """The rows that `near` names, with the line of each; `missing`: lines that hold none that can be read."""

    lines: list[int]
    values: list[dict]
    missing: list[int]

    def probes(self, hashes: set[str]) -> list[int]:
        """The lines whose row is a probe; `hashes` are those of all probes."""
        pairs = zip(self.lines, self.values, strict=True)
        return [line for line, value in pairs if prompt_or_row_hash(value) in hashes]


def named_rows(near: dict) -> Named:
    """Reads the file to the last of its lines. OSError when it cannot be read."""
    wanted, last = set(near["lines"]), max(near["lines"])
    lines, values = [], []
    for row in read_rows(near["rows"]):
        if row.line > last:
            break
        if row.line in wanted and row.error is None:
            lines.append(row.line)
            values.append(row.value)
    return Named(lines, values, sorted(wanted - set(lines)))


def rows_to_be_near(replay: dict) -> list[dict]:
    """The rows that `near` of a replay spec names; empty without it. ReplayError when none of them is there."""
    near = replay.get("near")
    if not near:
        return []
    try:
        named = named_rows(near)
    except OSError as error:
        raise ReplayError(
            f"{near['rows']}, whose rows `near` of the buffer {replay['buffer']} names, cannot be read: "
            f"{error.strerror or error}"
        ) from None
    if not named.values:
        raise ReplayError(none_there(replay))
    return named.values


def none_there(replay: dict) -> str:
    """Nothing that `near` names exists, as a sentence."""
    rows, lines = replay["near"]["rows"], spoken(replay["near"]["lines"])
    return f"`near` of the buffer {replay['buffer']} names rows of {rows} that are not there: {lines}"


def spoken(lines: Sequence[int]) -> str:
    """`line 3`, or `lines 3, 17`; of many the first ones."""
    if len(lines) == 1:
        return f"line {lines[0]}"
    more = f" and {len(lines) - 8} more" if len(lines) > 8 else ""
    return f"lines {', '.join(map(str, lines[:8]))}{more}"


def nearest(
    wanted: Sequence[dict],
    hashes: Sequence[str],
    lines: Sequence[int],
    quota: int,
    *,
    path: str,
    seed: str,
) -> tuple[dict[int, float], dict[str, Any]]:
    """Which candidates are taken for their nearness to the rows `wanted`, up to half of the quota: index → similarity
    to the most similar of them. Also what that bought over chance, for buffer.json.

    hashes, lines, path, seed: as for `choose`. The rows that are wanted take turns, each takes the nearest candidate
    that is left; one that nothing is like any more takes none. Of equal ones the earlier is nearer.
    """
    import numpy as np

    from seesaw_runner.replay import choosing, features

    at = list(range(len(hashes)))
    if len(at) > features.MOST_ROWS:
        at = sorted(random.Random(f"{seed}/near").sample(at, features.MOST_ROWS))
    values = choosing.values_of(path, [hashes[i] for i in at], {lines[i] for i in at})
    table = features.tfidf(chain(values, wanted), text=features.prompt_text, option="`near`")
    # Rounded, so that the order in which words are added up does not decide between equal rows.
    likeness = np.round((table[: len(at)] @ table[len(at) :].T).toarray(), 6)
    best = likeness.max(axis=1)
    taken = list(islice(_turns(likeness), quota // 2))
    by_chance = choosing.by_chance(len(hashes), quota, seed)
    if len(at) < len(hashes):  # not the very draw: as many of the rows that were compared
        by_chance = choosing.by_chance(len(at), min(quota, len(at)), seed)

    def mean(rows: Sequence[int]) -> float:
        return round(float(best[list(rows)].mean()), 6) if len(rows) else 0.0

    told = {"rows": len(taken), "compared": len(at), "mean": mean(taken), "random": {"mean": mean(by_chance)}}
    return {at[k]: round(float(best[k]), 6) for k in taken}, told


def _turns(likeness: Any) -> Iterator[int]:
    """Rows of the table in the order in which its columns, in turn, take them."""
    import numpy as np

    queue = deque((column, iter(order)) for column, order in enumerate(np.argsort(-likeness, axis=0, kind="stable").T))
    taken: set[int] = set()
    while queue:
        column, order = queue.popleft()
        row = next((int(i) for i in order if int(i) not in taken), None)
        if row is None or likeness[row, column] <= 0:
            continue
        taken.add(row)
        yield row
        queue.append((column, order))
