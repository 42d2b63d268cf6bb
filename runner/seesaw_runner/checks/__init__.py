"""Checks (verifiers): does a generated text count as right, and which parts has the reference? See
`.github/contracts.md` §2.

To add a kind: copy `text_check.py`, and name the new class in `KINDS`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any

from seesaw_runner.checks.base import Check, CheckError, Segment
from seesaw_runner.checks.format_check import FormatCheck
from seesaw_runner.checks.function_check import FunctionCheck
from seesaw_runner.checks.json_tool_call import JsonToolCall
from seesaw_runner.checks.number_after import NumberAfter
from seesaw_runner.checks.patterns import compile_patterns
from seesaw_runner.checks.regex_check import RegexCheck
from seesaw_runner.checks.text_check import TextCheck

__all__ = ["KINDS", "Check", "CheckError", "Segment", "make_check"]

KINDS: dict[str, type[Check]] = {
    "text": TextCheck,
    "number-after": NumberAfter,
    "json-tool-call": JsonToolCall,
    "regex": RegexCheck,
    "format": FormatCheck,
    "function": FunctionCheck,
}


def make_check(spec: dict, *, trusted: bool, root: str, segments: list[dict] | None = None) -> Check:
    """The check that a skill's `check:` describes; `segments` are the skill's own patterns. CheckError says
    what is wrong with them.
    """
    if not isinstance(spec, dict) or "kind" not in spec:
        raise CheckError(f"a check needs a kind, one of {', '.join(KINDS)}")
    kind, options = spec["kind"], {key: value for key, value in spec.items() if key != "kind"}
    if kind not in KINDS:
        raise CheckError(f"there is no check kind {kind!r}{_nearest(kind, KINDS)}; the kinds are {', '.join(KINDS)}")
    cls = KINDS[kind]
    for name in options:
        if name not in cls.options:
            known = f"its options are {', '.join(cls.options)}" if cls.options else "it has no options"
            raise CheckError(f"the check {kind} has no option {name!r}{_nearest(name, cls.options)}; {known}")
    for name, (types, needed) in cls.options.items():
        if name in options and not isinstance(options[name], types):
            raise CheckError(
                f"the option {name} of the check {kind} must be {'a text' if types is str else 'true or false'}"
            )
        if needed and not options.get(name):
            raise CheckError(f"the check {kind} needs the option {name}")
    check = cls(options, trusted=trusted, root=root)
    check.patterns = compile_patterns(segments or [])
    return check


def _nearest(name: Any, known: Any) -> str:
    match: Callable = difflib.get_close_matches
    found = match(str(name), list(known), 1)
    return f", did you mean {found[0]!r}?" if found else ""
