"""python -m seesaw_runner.benchmark FOLDER: what FOLDER/request.json asks for. Exit code 0: all there; 1: some failed;
2: nothing could be run. One JSON line that starts with {"seesaw_benchmark" for every task as it ends."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

from seesaw_runner import environment

environment.apply()
os.environ.setdefault("TQDM_DISABLE", "1")  # progress bars would fill out.log; lm-eval insists on its own, so seldom
os.environ.setdefault("TQDM_MININTERVAL", "60")

from seesaw_runner.run_folder import StageError, describe, report  # noqa: E402


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="seesaw_runner.benchmark", description=__doc__)
    parser.add_argument("folder", type=Path, help="RUN/benchmarks/step-N, with request.json in it")
    parser.add_argument("--force", action="store_true", help="run again what is there")
    given = parser.parse_args(argv)
    try:
        return run(given.folder.resolve(), force=given.force)
    except Exception as error:
        code, message, _where = describe(error)
        if not isinstance(error, StageError):
            report(error)
        tell("failed", task=None, code=code, message=message)
        return 2


def run(folder: Path, *, force: bool = False) -> int:
    from seesaw_runner.benchmark.harness import Harness, harness_version, must_trust
    from seesaw_runner.benchmark.request import read_request

    request = read_request(folder)
    must_trust(request)
    version = harness_version()
    from seesaw_runner.benchmark.results import done_before, fingerprint, keep

    harness: Harness | None = None
    failed = 0
    for name in request.tasks:
        print_of = fingerprint(request, name, version)
        results = None if force else done_before(request, name, print_of)
        if results is not None:
            tell_results(results, again=True)
            continue
        began = time.perf_counter()
        try:
            tell("started", task=name)
            harness = harness or Harness(request)
            results = keep(request, name, print_of, harness.run(name), harness.settings())
        except Exception as error:
            code, message, _where = describe(error)
            if not isinstance(error, StageError):
                report(error)
            tell("failed", task=name, code=code, message=message)
            failed += 1
            if harness is None:
                return 2  # the model itself cannot be loaded: no task can
            continue
        tell_results(results, again=False, seconds=time.perf_counter() - began)
    return 1 if failed else 0


def tell_results(results: list[dict], *, again: bool, seconds: float = 0.0) -> None:
    for result in results:
        share = round(seconds / len(results), 3)
        tell("done", again=again, seconds=share, **{k: result[k] for k in ("task", "n", "metrics", "samples")})


def tell(event: str, **fields: object) -> None:
    from seesaw_runner.wire_numbers import encode

    # The line starts a line of its own, whatever a library printed before.
    sys.stdout.write("\n" + json.dumps({"seesaw_benchmark": 1, "event": event, **encode(fields)}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
