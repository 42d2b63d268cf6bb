"""Routers without reinforcement: what a trained policy has to beat."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from seesaw_runner.routing.asked import Arms, Asked
from seesaw_runner.routing.linear import Linear
from seesaw_runner.routing.tfidf import Tfidf
from seesaw_runner.run_folder import StageError

#: Inverse strength of the ridge in the logistic regression.
RIDGE = 10.0


class TagRule:
    """What the prompt itself says it is about."""

    kind = "tag"

    def __init__(self, arms: Arms):
        self.arms = arms

    def probabilities(self, asked: Sequence[Asked]) -> np.ndarray:
        return self.arms.certain([self.arms.of(one.tag) for one in asked])


class KeywordRule:
    """The skill with most of its keywords in the prompt; the fallback where none has any, or two have as many."""

    kind = "keywords"

    def __init__(self, arms: Arms, keywords: Mapping[str, Sequence[str]]):
        self.arms, self.keywords = arms, {skill: list(found) for skill, found in keywords.items()}
        self._patterns = {skill: [_whole_word(word) for word in found] for skill, found in self.keywords.items()}

    def probabilities(self, asked: Sequence[Asked]) -> np.ndarray:
        return self.arms.certain([self._choose(one.text) for one in asked])

    def _choose(self, text: str) -> int:
        hits = {skill: sum(bool(p.search(text)) for p in found) for skill, found in self._patterns.items()}
        most = max(hits.values())
        best = [skill for skill, n in hits.items() if n == most]
        return self.arms.of(best[0] if most and len(best) == 1 else None)


def _whole_word(word: str) -> re.Pattern[str]:
    """In any case, and as a word of its own where it begins or ends as Latin words do; Chinese has no such edges."""
    left = r"(?<!\w)" if re.match(r"[A-Za-z0-9_]", word) else ""
    right = r"(?!\w)" if re.search(r"[A-Za-z0-9_]$", word) else ""
    return re.compile(left + re.escape(word) + right, re.IGNORECASE)


class TfidfRule:
    """TF-IDF and logistic regression; the fallback for a prompt of which no n-gram was ever seen."""

    kind = "tfidf"

    def __init__(self, arms: Arms, features: Tfidf, linear: Linear):
        self.arms, self.features, self.linear = arms, features, linear

    def probabilities(self, asked: Sequence[Asked]) -> np.ndarray:
        rows = self.features.rows(asked)
        found = self.linear.probabilities(rows)
        unknown = [k for k, (index, _) in enumerate(rows) if not len(index)]
        found[unknown] = self.arms.certain([self.arms.of(None)] * len(unknown))
        return found

    @classmethod
    def fit(cls, arms: Arms, features: Tfidf, asked: Sequence[Asked], labels: Sequence[int], seed: int) -> TfidfRule:
        """labels: the arm that each prompt belongs to. StageError without scikit-learn."""
        try:
            from scipy.sparse import csr_matrix
            from sklearn.linear_model import LogisticRegression
        except ImportError as error:
            raise StageError(
                "bad-argument",
                "The rule tfidf needs scikit-learn, which is not installed here: `pip install scikit-learn`, or set "
                "`rule: keywords` or `rule: tag`.",
                "options.rule",
            ) from error
        width, names = features.width, arms.names
        weight, bias = np.zeros((width, len(names))), np.full(len(names), -np.inf)
        classes = sorted(set(labels))
        bias[classes] = 0.0
        if len(classes) > 1:
            rows = features.rows(asked)
            starts = np.cumsum([0, *(len(index) for index, _ in rows)])
            table = csr_matrix(
                (np.concatenate([v for _, v in rows]), np.concatenate([i for i, _ in rows]), starts),
                shape=(len(rows), width),
            )
            model = LogisticRegression(C=RIDGE, max_iter=2000, random_state=seed).fit(table, list(labels))
            two = len(classes) == 2  # then it has one column, the second class's
            weight[:, classes[1:] if two else classes] = model.coef_.T
            bias[classes[1:] if two else classes] = model.intercept_
        return cls(arms, features, Linear(weight, bias))
