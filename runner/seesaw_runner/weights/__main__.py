"""python -m seesaw_runner.weights A B [--with C] [--rank]: the weight drift from checkpoint A to B as JSON on stdout.

Exit code 0 with the answer, 1 with {"error": code, "message": sentence}. Progress goes to stderr, a line a tensor at
most every second: `12/290`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time

from seesaw_runner import environment

environment.apply()

from seesaw_runner.run_folder import StageError  # noqa: E402
from seesaw_runner.wire_numbers import encode  # noqa: E402


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m seesaw_runner.weights", description="Weight drift of two checkpoints."
    )
    parser.add_argument("a", help="the earlier checkpoint's folder")
    parser.add_argument("b", help="the later checkpoint's folder")
    parser.add_argument("--with", dest="earlier", metavar="C", help="the checkpoint before A: adds cos(A−C, B−A)")
    parser.add_argument("--rank", action="store_true", help="effective and stable rank of every update (slow)")
    parser.add_argument("--label", action="append", default=[], help="what sentences call A, B and C, in this order")
    given = parser.parse_args(argv)
    try:
        from seesaw_runner.weights.drift import measure
        from seesaw_runner.weights.source import WeightSource

        folders = [folder for folder in (given.a, given.b, given.earlier) if folder is not None]
        labels = [*given.label, *folders[len(given.label) :]]
        sources = [WeightSource(folder, label) for folder, label in zip(folders, labels, strict=False)]
        report = measure(*sources, rank=given.rank, tell=_Progress())
    except StageError as error:
        print(json.dumps({"v": 1, "error": error.code, "message": str(error)}))
        return 1
    except (OSError, MemoryError) as error:
        print(json.dumps({"v": 1, "error": "bad-checkpoint", "message": f"{type(error).__name__}: {error}"}))
        return 1
    print(json.dumps(encode(report), allow_nan=False))
    return 0


class _Progress:
    """At most one line a second."""

    def __init__(self) -> None:
        self.told = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        if time.monotonic() - self.told >= 1:
            self.told = time.monotonic()
            print(f"{done}/{total}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
