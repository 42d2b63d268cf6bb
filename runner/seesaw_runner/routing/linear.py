"""A softmax over arms, linear in a prompt's features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from seesaw_runner.routing.asked import Asked
from seesaw_runner.routing.hidden import Hidden
from seesaw_runner.routing.tfidf import Row, Tfidf


@dataclass
class Linear:
    """weight [features, arms]; bias [arms], −∞ for an arm that is never chosen."""

    weight: np.ndarray
    bias: np.ndarray

    def probabilities(self, rows: Sequence[Row]) -> np.ndarray:
        logits = np.array([value @ self.weight[index] for index, value in rows]).reshape(-1, len(self.bias))
        return softmax(logits + self.bias)


def softmax(logits: np.ndarray) -> np.ndarray:
    raised = np.exp(logits - logits.max(-1, keepdims=True)) if logits.size else logits
    return raised / raised.sum(-1, keepdims=True) if logits.size else logits


class Policy:
    """A router that was trained by reinforcement. `kind`: the algorithm."""

    def __init__(self, kind: str, features: Tfidf | Hidden, linear: Linear):
        self.kind, self.features, self.linear = kind, features, linear

    def probabilities(self, asked: Sequence[Asked]) -> np.ndarray:
        return self.linear.probabilities(self.features.rows(asked))
