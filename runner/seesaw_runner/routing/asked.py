"""What a router sees of a prompt, and what it can answer with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from seesaw_runner.data.row_shapes import split_turns

#: The arm of the base model alone, without any expert.
BASE = "base"


class Asked(NamedTuple):
    """`text`: every turn before the answer. `ids`: the prompt as the model reads it. `tag`: what the row itself says
    it is about.
    """

    text: str
    ids: Sequence[int]
    tag: str | None


@dataclass(frozen=True)
class Arms:
    """Who can answer: the experts' skills in their order, and the base where it is the fallback."""

    skills: tuple[str, ...]
    fallback: str

    @property
    def names(self) -> tuple[str, ...]:
        return self.skills if self.fallback in self.skills else (*self.skills, self.fallback)

    def of(self, skill: str | None) -> int:
        """The arm that a prompt of this skill belongs to; the fallback's where no expert has it."""
        return self.names.index(skill if skill in self.skills else self.fallback)

    def certain(self, chosen: Sequence[int]) -> np.ndarray:
        """Probabilities that are 1 for one arm of each prompt."""
        return np.eye(len(self.names))[list(chosen)] if len(chosen) else np.zeros((0, len(self.names)))


class Router(Protocol):
    kind: str

    def probabilities(self, asked: Sequence[Asked]) -> np.ndarray:
        """[prompts, arms], each row sums to 1."""


def asked_of(value: dict[str, Any], ids: Sequence[int], field: str, tag: str | None = None) -> Asked:
    """A row as a router sees it. tag: what it counts as where it says nothing itself in `field`."""
    turns = split_turns(value)[0]
    said = value.get(field)
    text = "\n".join(turn.text for turn in turns if isinstance(turn.text, str))
    return Asked(text, ids, said if isinstance(said, str) else tag)
