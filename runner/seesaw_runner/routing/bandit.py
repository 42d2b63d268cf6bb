"""A contextual bandit: a prompt comes, an expert is drawn, the check of its answer is the reward.

Every expert has answered every prompt beforehand (a table of rewards), so a pull costs nothing, and a policy with the
same seed is the same policy. REINFORCE takes a draw's reward minus the mean of all earlier ones; GRPO several draws of
one prompt, minus their mean, over their spread. Adam; the gradient is written out, since the policy is linear.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from seesaw_runner.routing.linear import Linear
from seesaw_runner.routing.tfidf import Row
from seesaw_runner.run_folder import StageError

ALGORITHMS = ("reinforce", "grpo")
#: Draws of one update, and of one prompt in GRPO.
DRAWS, GROUP = 32, 8
_DECAY, _DECAY_SQUARE = 0.9, 0.999


def updates_of(pulls: int) -> int:
    return -(-pulls // DRAWS)


def train_bandit(
    rows: Sequence[Row],
    width: int,
    rewards: np.ndarray,
    *,
    algorithm: str,
    pulls: int,
    learning_rate: float,
    seed: int,
    tell: Callable[[int, dict[str, float]], None],
) -> Linear:
    """rewards [prompts, arms]. tell(update, metrics) after each update; it may raise to stop.

    StageError `bad-data` for a reward that is no number.
    """
    bad = np.argwhere(~np.isfinite(rewards))
    if len(bad):
        raise StageError(
            "bad-data",
            f"{len(bad)} rewards are no numbers, first that of prompt {bad[0][0] + 1} under expert {bad[0][1] + 1}: "
            "nothing can be learned from them. Look at the skill's check.",
        )
    arms = rewards.shape[1]
    size = GROUP if algorithm == "grpo" else 1
    model = Linear(np.zeros((width, arms)), np.zeros(arms))
    parameters = [model.weight, model.bias]
    first, second = ([np.zeros_like(p) for p in parameters] for _ in range(2))
    generator = np.random.default_rng(seed)
    queue: list[int] = []
    seen, total, left = 0, 0.0, pulls
    for update in range(1, updates_of(pulls) + 1):
        draws = min(DRAWS, left)
        left -= draws
        groups = max(1, draws // size)
        while len(queue) < groups:
            queue += generator.permutation(len(rows)).tolist()
        picked, queue = queue[:groups], queue[groups:]
        p = model.probabilities([rows[i] for i in picked])
        drawn = _draw(p, draws // groups, generator)
        reward = rewards[np.array(picked)[:, None], drawn]
        if algorithm == "grpo":
            advantage = (reward - reward.mean(1, keepdims=True)) / (reward.std(1, keepdims=True) + 1e-4)
        else:
            advantage = reward - (total / seen if seen else 0.0)
        seen, total = seen + reward.size, total + float(reward.sum())
        # ∂ log p(a) / ∂ logits = 1[a] − p
        slope = (advantage[..., None] * (np.eye(arms)[drawn] - p[:, None, :])).sum(1) / reward.size
        gradients = [np.zeros_like(model.weight), slope.sum(0)]
        for (index, value), one in zip((rows[i] for i in picked), slope, strict=True):
            gradients[0][index] += value[:, None] * one
        for parameter, gradient, m, v in zip(parameters, gradients, first, second, strict=True):
            m += (1 - _DECAY) * (gradient - m)
            v += (1 - _DECAY_SQUARE) * (gradient**2 - v)
            unbiased = m / (1 - _DECAY**update), v / (1 - _DECAY_SQUARE**update)
            parameter += learning_rate * unbiased[0] / (np.sqrt(unbiased[1]) + 1e-8)
        told = {"reward": float(reward.mean()), "entropy": entropy(p)}
        if algorithm == "grpo":
            told["zero_variance_groups"] = float((reward.std(1) == 0).mean())
        tell(update, told)
    return model


def _draw(p: np.ndarray, times: int, generator: np.random.Generator) -> np.ndarray:
    """[prompts, times] arms."""
    edges = p.cumsum(1)
    at = generator.random((len(p), times)) * edges[:, -1:]
    return (at[..., None] >= edges[:, None, :-1]).sum(-1)


def entropy(p: np.ndarray) -> float:
    """Mean over prompts, nats."""
    return float(-(p * np.log(np.where(p > 0, p, 1.0))).sum(1).mean())
