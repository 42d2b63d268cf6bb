"""A regular expression is found in the text."""

from __future__ import annotations

import re

from seesaw_runner.checks.base import Check, CheckError

_FLAGS = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "x": re.VERBOSE, "a": re.ASCII}


class RegexCheck(Check):
    """Passes when the pattern is found anywhere in the text (Python's `re`)."""

    kind = "regex"
    options = {"pattern": (str, True), "flags": (str, False)}

    def setup(self, options: dict, *, trusted: bool, root: str) -> None:
        flags = re.NOFLAG if hasattr(re, "NOFLAG") else re.RegexFlag(0)
        for letter in options.get("flags", ""):
            if letter not in _FLAGS:
                raise CheckError(f"the check regex has no flag {letter!r}; the flags are {', '.join(_FLAGS)}")
            flags |= _FLAGS[letter]
        try:
            self._pattern = re.compile(options["pattern"], flags)
        except (re.error, OverflowError, RecursionError) as error:
            raise CheckError(f"the pattern of the check regex is no regular expression: {error}") from None

    def passes(self, text: str, row: dict) -> bool:
        return self._pattern.search(text) is not None
