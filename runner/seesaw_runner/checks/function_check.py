"""A function of the user's own. It is imported only in a trusted workspace, because importing it runs it."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from seesaw_runner.checks.base import Check, CheckError


class FunctionCheck(Check):
    """Passes when `function(text, row)` returns true or a number ≥ 0.5. `errors` counts the calls that raised,
    `last_error` is the last of them.
    """

    kind = "function"
    options = {"function": (str, True), "path": (str, False)}

    def setup(self, options: dict, *, trusted: bool, root: str) -> None:
        name = options["function"]
        if not trusted:
            raise CheckError(
                f"the check function {name} is code of this workspace, which is not trusted; trust the "
                "workspace to run it"
            )
        module_name, colon, attribute = name.partition(":")
        if not (colon and module_name and attribute):
            raise CheckError(f"the check function {name!r} must be written as module:name")
        folder = (Path(root) / options.get("path", ".")).resolve()
        if not folder.is_dir():
            raise CheckError(f"the path of the check function {name} is no folder: {folder}")
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))  # stays: the module may import its neighbours when called
        try:
            found = importlib.import_module(module_name)
            for part in attribute.split("."):
                found = getattr(found, part)
        except Exception as error:
            raise CheckError(
                f"the check function {name} cannot be imported from {folder}: {type(error).__name__}: {error}"
            ) from error
        if not callable(found):
            raise CheckError(f"the check function {name} is not a function")
        self._function, self._name = found, name
        self.errors, self.last_error = 0, ""

    def passes(self, text: str, row: dict) -> bool:
        try:
            result = self._function(text, row)
            return bool(result >= 0.5) if not isinstance(result, bool) else result
        except (Exception, SystemExit) as error:  # one bad row must not end a run of hours
            self.errors += 1
            self.last_error = f"{self._name}: {type(error).__name__}: {error}"
            return False
