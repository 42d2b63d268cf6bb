"""The quality gate of a buffer: which rows are good enough, by a field, their skill's check, or a reward model."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Protocol

from seesaw_runner.checks import CheckError, make_check
from seesaw_runner.checks.base import reference_of
from seesaw_runner.data.row_summary import row_score
from seesaw_runner.data.rows import Row

#: Rows that a reward model is given at once; it cuts them into batches of its own.
TOGETHER = 256


class ReplayError(ValueError):
    """The buffer cannot be built or its rows are gone; the text is a sentence."""


class Rater(Protocol):
    """A reward model. `name`: as the pipeline calls it. `unread`: why the last row it could not read was none."""

    name: str
    unread: str | None

    def __call__(self, rows: Sequence[dict], places: Sequence[str]) -> list[float | None]:
        """A score for each row, None for a row that it cannot read. ReplayError for a score that is no number."""
        ...


class Quality:
    """The gate of one source of rows. `judged` gives each row with whether it is good enough."""

    def __init__(
        self,
        quality: dict | None,
        origin: dict,
        skills: list[dict],
        root: str | Path,
        trusted: bool,
        rater: Rater | None = None,
    ):
        self.quality, self.origin, self.rater = quality or {}, origin, rater
        self.best = -math.inf
        self.check = None
        if self.quality.get("check"):
            self.check = _check(origin, skills, root, trusted)
        if self.quality.get("reward_model") and rater is None:
            raise ReplayError(f"the reward model {self.quality['reward_model']} is not there to score rows")

    def judged(self, rows: Iterable[Row]) -> Iterator[tuple[Row, bool]]:
        if not self.quality.get("reward_model"):
            yield from ((row, self._passes(row.value)) for row in rows)
            return
        assert self.rater is not None
        source = iter(rows)
        while part := list(islice(source, TOGETHER)):
            places = [f"{self.origin['data']}:{row.line}" for row in part]
            scores = self.rater([row.value for row in part], places)
            self.best = max([self.best, *(score for score in scores if score is not None)])
            for row, score in zip(part, scores, strict=True):
                yield row, score is not None and score >= self.quality["min"]

    def _passes(self, value: dict) -> bool:
        if not self.quality:
            return True
        if self.check is not None:
            return self.check.passes(reference_of(value).text, value)
        name = self.quality.get("field")
        score = row_score(value if name is None else {"score": value.get(name)})
        return score is not None and not math.isnan(score) and score >= self.quality["min"]

    def none_passed(self) -> str:
        """Why a source is left without a row, as a sentence."""
        data = self.origin["data"]
        if self.check is not None:
            return (
                f"no row of {data} passes the check of the skill {self.origin.get('skill')}; correct the check or "
                "leave `quality` out"
            )
        if self.rater is not None and self.quality.get("reward_model"):
            if self.best == -math.inf:
                return f"the reward model {self.rater.name} can read no row of {data}: {self.rater.unread}"
            return (
                f"no row of {data} has a score of at least {self.quality['min']} by the reward model "
                f"{self.rater.name}, the best has {self.best:.4g}; lower it or leave `quality` out"
            )
        name = self.quality.get("field") or "reward or score"
        return f"no row of {data} has a {name} of at least {self.quality['min']}; lower it or leave `quality` out"


def _check(origin: dict, skills: list[dict], root: str | Path, trusted: bool):
    skill = next((skill for skill in skills if skill["id"] == origin.get("skill")), None)
    if skill is None:
        raise ReplayError(
            f"quality: {{ check: true }} needs a skill for the stage {origin['stage']}, and no skill has "
            f"its name; use quality: {{ reward: … }} or leave it out"
        )
    try:
        return make_check(skill["check"], trusted=trusted, root=str(root))
    except CheckError as error:
        raise ReplayError(f"skill {skill['id']}: {error}") from None
