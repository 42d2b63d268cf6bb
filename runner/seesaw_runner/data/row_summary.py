"""Counts over a whole dataset file, in the one pass that reads it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from seesaw_runner.data.row_problems import ORDER_CODES, row_problems
from seesaw_runner.data.row_shapes import row_format
from seesaw_runner.data.rows import Row


@dataclass
class Summary:
    """Counts over a file. `examples` has the first place of each problem, `dropped` what a strict alternating
    trainer leaves out.
    """

    rows: int = 0
    good: int = 0
    errors: list[str] = field(default_factory=list)
    error_count: int = 0
    formats: Counter = field(default_factory=Counter)
    problems: Counter = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)
    dropped: int = 0
    types: dict[str, Counter] = field(default_factory=dict)
    finite: int = 0
    score_sum: float = 0.0
    non_finite: int = 0

    @property
    def score_mean(self) -> float | None:
        return self.score_sum / self.finite if self.finite else None


def summarize(rows: Iterable[Row], limit: int = 20) -> Summary:
    """Counts formats, field types and problems in one pass; keeps the first `limit` errors as sentences."""
    result = Summary()
    for row in rows:
        result.rows += 1
        if row.error:
            result.error_count += 1
            if len(result.errors) < limit:
                result.errors.append(str(row.error))
            continue
        result.good += 1
        result.formats[row_format(row.value)] += 1
        for key, item in row.value.items():
            if len(result.types) < 100 or key in result.types:
                result.types.setdefault(key, Counter())[_type_name(item)] += 1
        _count_score(result, row.value)
        problems = row_problems(row.value)
        result.dropped += any(problem.code in ORDER_CODES for problem in problems)
        for note in row.warnings:
            result.problems[note.code] += 1
            result.examples.setdefault(
                note.code, note.message if note.message.startswith("line ") else f"line {row.line}: {note.message}"
            )
        for problem in problems:
            result.problems[problem.code] += 1
            result.examples.setdefault(problem.code, f"line {row.line}: {problem.message}")
    return result


def _type_name(value: Any) -> str:
    return {dict: "object", list: "list", str: "string", bool: "boolean", type(None): "null"}.get(type(value), "number")


def row_score(value: dict) -> float | None:
    """The row's `reward`, else its `score`, if that is a number; NaN and infinities come back as they are."""
    for name in ("reward", "score"):
        score = value.get(name)
        if isinstance(score, (int, float)) and not isinstance(score, bool):
            try:
                return float(score)
            except OverflowError:
                return math.inf if score > 0 else -math.inf
    return None


def _count_score(result: Summary, value: dict) -> None:
    score = row_score(value)
    if score is None:
        return
    if math.isfinite(score):
        result.finite, result.score_sum = result.finite + 1, result.score_sum + score
    else:
        result.non_finite += 1
