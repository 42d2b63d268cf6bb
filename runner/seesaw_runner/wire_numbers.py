"""Numbers that JSON does not know travel as the strings "NaN", "Infinity" and "-Infinity" (contracts §6)."""

from __future__ import annotations

import math
from typing import Any

NAMES = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def encode(value: Any) -> Any:
    """The same value with every non-finite number, at any depth, as its string.

    Tuples become lists; numpy and torch scalars become Python numbers. Raises TypeError for what JSON cannot hold.
    """
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        if math.isfinite(value):
            return float(value)
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    if hasattr(value, "item"):
        return encode(value.item())
    raise TypeError(f"{type(value).__name__} cannot be written as JSON: {value!r:.80}")


def decode(value: Any) -> float | int | None:
    """The number in one wire field. None for anything that is no number: never 0, and never a bool."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    return NAMES.get(value) if isinstance(value, str) else None
