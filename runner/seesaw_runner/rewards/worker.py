"""The process that calls a user's reward function: JSON lines in, JSON lines out, one answer at a time.

    python -m seesaw_runner.rewards.worker MODULE:NAME FOLDER

A process of its own, because a function that hangs can only be ended with its process. What the function prints goes
to stderr, and so into the run's log.
"""

from __future__ import annotations

import importlib
import json
import os
import sys


def main() -> int:
    name, folder = sys.argv[1], sys.argv[2]
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # a print of the function must not be taken for a reply

    def reply(**fields) -> None:
        replies.write(json.dumps(fields) + "\n")
        replies.flush()

    sys.path.insert(0, folder)
    try:
        module, _, attribute = name.partition(":")
        function = getattr(importlib.import_module(module), attribute)
        if not callable(function):
            raise TypeError(f"{attribute} is not a function")
    except BaseException as error:
        reply(error=f"{type(error).__name__}: {error}")
        return 1
    reply(ready=True)
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            value = function(asked["answer"], asked["row"])
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                # NumPy's and torch's scalars are numbers too.
                value = value if isinstance(value, bool) else value.item()
            reply(reward=float(value))
        except BaseException as error:
            reply(error=f"{type(error).__name__}: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
