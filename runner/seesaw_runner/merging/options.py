"""The `options:` of a merge stage → what is to be merged, how. Everything unusable is refused by name."""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass
from typing import Any

from seesaw_runner.run_folder import StageError

METHODS = ("average", "linear", "task-arithmetic", "ties", "dare-linear", "dare-ties", "slerp")
#: Methods that add changes to the base; the others mix the models themselves.
DELTA_METHODS = ("task-arithmetic", "ties", "dare-linear", "dare-ties")
DTYPES = {"float32": "F32", "bfloat16": "BF16", "float16": "F16"}
_NAMES = ("method", "models", "base", "weight", "density", "dtype", "smoke")
#: Methods that drop changes, and the share that they keep where `density` is not given.
_DROPPING, _KEPT = ("ties", "dare-linear", "dare-ties"), 0.5


@dataclass(frozen=True)
class MergeOptions:
    """`models`: (reference, weight) in order; weights of `average` and `linear` add up to 1 (an option `weight` of
    linear is the share of the last model, the others have the rest in equal parts). `weight`: λ of the delta methods,
    t of `slerp`. `density`: share kept, None where the method drops nothing. `dtype`: as in safetensors, None for that
    of the models. `base`: reference; always what the report compares with.
    """

    method: str
    models: tuple[tuple[str, float], ...]
    base: str
    weight: float
    density: float | None
    dtype: str | None
    smoke: bool


def read_options(options: dict[str, Any]) -> MergeOptions:
    """StageError `bad-argument` names the option and what to write."""
    for name in options:
        if name not in _NAMES:
            near = difflib.get_close_matches(name, _NAMES, 1)
            raise _bad(
                name, f"the recipe merge has no option {name}", f"Did you mean {near[0]}?" if near else "Remove it."
            )
    method = options.get("method")
    if method not in METHODS:
        raise _bad("method", f"the method {method!r} is not one of {', '.join(METHODS)}", "Write one of them.")
    models = _models(options.get("models"))
    for name, methods in (("weight", METHODS[1:]), ("density", _DROPPING)):
        if options.get(name) is not None and method not in methods:
            advice = "Remove it" + (", or use the method linear." if name == "weight" else ".")
            raise _bad(name, f"{method} does not use {name}", advice)
    weight = _number("weight", options.get("weight"))
    density = _number("density", options.get("density"))
    if density is not None and not 0 < density <= 1:
        raise _bad(
            "density", f"{density} is not a share between 0 and 1", "Write the share of changes to keep, such as 0.5."
        )
    dtype = options.get("dtype")
    if dtype is not None and dtype not in DTYPES:
        raise _bad("dtype", f"{dtype!r} is not one of {', '.join(DTYPES)}", "Write one of them, or remove it.")
    base = options.get("base", "base")
    if not isinstance(base, str) or not base:
        raise _bad("base", f"{base!r} is no reference", "Write a stage, a stage@step, base, or a folder.")
    smoke = options.get("smoke", True)
    if not isinstance(smoke, bool):
        raise _bad("smoke", f"{smoke!r} is neither true nor false", "Write true or false.")
    return MergeOptions(
        method,
        _weigh(method, models, weight),
        base,
        weight if weight is not None else 0.5 if method == "slerp" else 1.0,
        density if density is not None else _KEPT if method in _DROPPING else None,
        DTYPES[dtype] if dtype else None,
        smoke,
    )


def _models(given: Any) -> list[tuple[str, float | None]]:
    if not isinstance(given, list) or not given:
        raise _bad("models", "a merge needs models", "List them: models: [math, tool].")
    models: list[tuple[str, float | None]] = []
    for index, item in enumerate(given):
        where = f"models[{index}]"
        reference, weight = (item.get("model"), item.get("weight")) if isinstance(item, dict) else (item, None)
        if not isinstance(reference, str) or not reference:
            raise _bad(where, "a model is a reference or {model: reference, weight: number}", "Write it so.")
        if isinstance(item, dict) and (odd := [k for k in item if k not in ("model", "weight")]):
            raise _bad(f"{where}.{odd[0]}", f"a model has no {odd[0]}", "Remove it.")
        if reference in [name for name, _ in models]:
            raise _bad(where, f"{reference} is listed twice", "List it once, with the sum of the weights.")
        models.append((reference, _number(f"{where}.weight", weight)))
    return models


def _weigh(method: str, models: list[tuple[str, float | None]], weight: float | None) -> tuple[tuple[str, float], ...]:
    """Every model's own coefficient."""
    given = [w for _, w in models if w is not None]
    if method not in DELTA_METHODS and len(models) < 2:
        raise _bad(
            "models", f"{method} needs two models or more", "Add one, or use task-arithmetic to scale one change."
        )
    if method in ("average", "slerp") and given:
        raise _bad("models", f"{method} gives the models no weights of their own", "Use linear, or remove the weights.")
    if method == "slerp":
        if len(models) != 2:
            raise _bad("models", f"slerp goes between two models, not {len(models)}", "List two.")
        if weight is not None and not 0 <= weight <= 1:
            raise _bad("weight", f"{weight} is not between 0 and 1", "0 is the first model, 1 the second.")
    if method == "linear" and weight is not None:
        if given:
            raise _bad(
                "weight", "the models have weights of their own", "Give those, or weight for the last model alone."
            )
        rest = (1.0 - weight) / (len(models) - 1)
        return (*((name, rest) for name, _ in models[:-1]), (models[-1][0], weight))
    if method in DELTA_METHODS or method == "slerp":
        return tuple((name, 1.0 if w is None else w) for name, w in models)
    if given and len(given) < len(models):
        raise _bad("models", "some models have a weight and some have none", "Give every model one, or none.")
    shares = given or [1.0] * len(models)
    total = sum(shares)
    if total <= 0:
        raise _bad(
            "models", f"the weights add up to {total:g}", "They are divided by their sum, so it must be above 0."
        )
    return tuple((name, share / total) for (name, _), share in zip(models, shares, strict=True))


def _number(name: str, value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise _bad(name, f"{value!r} is no number", "Write a number.")
    return float(value)


def _bad(name: str, what: str, fix: str) -> StageError:
    return StageError("bad-argument", f"options.{name}: {what}. {fix}", f"options.{name}")
