"""The `options` of a stage: a recipe's own settings, each read once; what nobody read is an error, never ignored."""

from __future__ import annotations

import difflib
import math
from collections.abc import Sequence
from typing import Any

from seesaw_runner.run_folder import StageError


class Options:
    """`take` reads one setting; `finish` refuses the settings that no `take` asked for."""

    def __init__(self, recipe: str, values: dict[str, Any] | None):
        self.recipe, self.values = recipe, dict(values or {})
        self.known: list[str] = []

    def __contains__(self, name: str) -> bool:
        return self.values.get(name) is not None

    def take(
        self,
        name: str,
        default: Any = None,
        kind: type | tuple[type, ...] | None = None,
        *,
        among: Sequence[Any] | None = None,
        least: float | None = None,
        most: float | None = None,
    ) -> Any:
        """The value of `name`, or `default` where it is absent or null.

        kind: what type it must have (an int passes for float; a bool never for a number). among: the only values
        allowed. least, most: inclusive bounds of a number. StageError `bad-argument` names the option and what fits.
        """
        self.known.append(name)
        value = self.values.get(name)
        if value is None:
            return default
        kinds = kind if isinstance(kind, tuple) else (kind,) if kind else ()
        if float in kinds and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if kinds and (not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds)):
            names = " or ".join(_KINDS.get(k, k.__name__) for k in kinds)
            raise self.error(name, f"must be {names}, but is {value!r}")
        if among is not None and value not in among:
            near = difflib.get_close_matches(str(value), [str(v) for v in among], 1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise self.error(name, f"is {value!r}; it can be {', '.join(str(v) for v in among)}.{hint}")
        if isinstance(value, float) and not math.isfinite(value):
            raise self.error(name, f"is {value}, which is no finite number")
        if least is not None and value < least:
            raise self.error(name, f"is {value}, but must be at least {least:g}")
        if most is not None and value > most:
            raise self.error(name, f"is {value}, but must be at most {most:g}")
        return value

    def error(self, name: str, what: str) -> StageError:
        """The error for a bad option: `what` goes on after the option's name."""
        text = f"The option {name} of the recipe {self.recipe} {what}"
        return StageError("bad-argument", text if text[-1] in ".?" else f"{text}.", f"options.{name}")

    def finish(self) -> None:
        """After all `take`s. StageError for a setting that the recipe does not have."""
        for name, value in self.values.items():
            if name not in self.known and value is not None:
                near = difflib.get_close_matches(name, self.known, 1, 0.6)
                listed = f"It has {', '.join(sorted(set(self.known)))}." if self.known else "It has none."
                hint = f"Did you mean {near[0]}?" if near else listed
                raise StageError(
                    "bad-argument", f"The recipe {self.recipe} has no option {name}. {hint}", f"options.{name}"
                )


_KINDS = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "a block of keys",
}
