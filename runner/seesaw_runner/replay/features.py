"""What rows are compared by where a buffer should cover them: TF-IDF of their text, or a model's mean hidden states.

Every feature is a float32 row of length 1, so that 1 − a·b is a distance: 0 for the same direction, 1 for rows that
have nothing in common.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from seesaw_runner.data.row_shapes import split_turns, to_turns
from seesaw_runner.replay.near_duplicates import _WORD
from seesaw_runner.replay.quality import ReplayError

#: Words (and single Chinese, Japanese and Korean characters) that TF-IDF knows: those that most rows have.
MOST_TERMS = 16384
#: Rows of one source that are compared. More are thinned out first, by chance; TF-IDF of so many takes about 250 MB.
MOST_ROWS = 200_000
#: Bytes that hidden states may take.
MOST_BYTES = 1 << 30

#: Rows → hidden states of those that could be read [read, width], and for each row whether it was.
States = Callable[[Iterable[dict]], tuple[np.ndarray, list[bool]]]


def most_rows(kind: str, width: int) -> int:
    """How many rows are compared at most. width: of hidden states."""
    return MOST_ROWS if kind == "tfidf" else max(1, min(MOST_ROWS, MOST_BYTES // (4 * max(1, width))))


def prompt_text(value: dict) -> str:
    """What a row asks; the whole row where it has no prompt."""
    prompt, _ = split_turns(value)
    return "\n".join(turn.text for turn in prompt if isinstance(turn.text, str)) if prompt else row_text(value)


def row_text(value: dict) -> str:
    return "\n".join(turn.text for turn in to_turns(value) if isinstance(turn.text, str))


def tfidf(
    values: Iterable[dict], *, text: Callable[[dict], str] = row_text, option: str = "k_center and clusters"
) -> Any:
    """A sparse float32 matrix, one row each. option: what in seesaw.yaml asks for it."""
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer
    except ImportError as error:
        raise ReplayError(
            f"rows are compared by scikit-learn, which is not installed; install what runner/requirements.txt lists, "
            f"or leave {option} out of the buffer"
        ) from error
    vectorizer = TfidfVectorizer(
        token_pattern=_WORD.pattern, sublinear_tf=True, max_features=MOST_TERMS, dtype=np.float32
    )
    try:
        return vectorizer.fit_transform(map(text, values))
    except ValueError as error:
        raise ReplayError(f"the rows have no words to compare them by; leave {option} out") from error


def hidden(states: np.ndarray) -> np.ndarray:
    """Hidden states as features: mean 0 and spread 1 in each dimension, because a few of them outweigh all others."""
    if not np.isfinite(states).all():
        raise ReplayError(
            "hidden states of the start model are no numbers, so rows cannot be compared by them; use "
            "features: tfidf, or look at the start checkpoint"
        )
    spread = states.std(0)
    out = ((states - states.mean(0)) / np.where(spread > 1e-6, spread, 1.0)).astype(np.float32)
    length = np.linalg.norm(out, axis=1, keepdims=True)
    return out / np.where(length > 0, length, 1.0)
