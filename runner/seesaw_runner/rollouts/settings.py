"""The generation settings of a stage's options."""

from __future__ import annotations

from seesaw_runner.rollouts.engines import ENGINES
from seesaw_runner.rollouts.relabel import Sampler


def sampler_of(stage, temperature: float = 1.0, *, engines: bool = False) -> Sampler:
    """Reads `temperature`, `top_p`, `max_new_tokens` and `batch_size`. temperature: the default; 0 is greedy. engines:
    the answers are of checkpoints, not of the model in training, so `engine` says what generates them.
    """
    take = stage.options.take
    return Sampler(
        stage,
        engine=take("engine", "auto", str, among=ENGINES) if engines else "transformers",
        temperature=take("temperature", temperature, float, least=0.0),
        top_p=take("top_p", 1.0, float, least=1e-6, most=1.0),
        max_new_tokens=take("max_new_tokens", 256, int, least=1),
        batch_size=take("batch_size", None, int, least=1),
        seed=stage.seed,
    )
