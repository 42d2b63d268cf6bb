"""Makes the raw runs of the battery: `python -m battery --bank A [--jobs 2] [--only a-003,…] [--list]` in runner/.

Every run is one file, written once: start it again and it goes on where it was. Starts are made first.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import os
import subprocess
import sys
import time
from pathlib import Path

CACHE = Path(__file__).resolve().parents[2] / ".cache" / "battery"


def main() -> int:
    parser = argparse.ArgumentParser(prog="battery", description=__doc__.splitlines()[0])
    parser.add_argument("--bank", choices=("A", "B", "C"), required=True)
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2)), help="processes side by side")
    parser.add_argument("--only", help="ids of runs, with commas between them")
    parser.add_argument("--first", type=int, help="only so many runs of the bank's list")
    parser.add_argument("--list", action="store_true", help="print the runs and stop")
    parser.add_argument("--cache", type=Path, default=CACHE)
    parser.add_argument("--part", help=argparse.SUPPRESS)  # "k/n": this process takes every n-th run
    options = parser.parse_args()
    if options.part or options.list:
        return work(options)
    prepare(options)
    return spread(options)


def wanted(options) -> list:
    from battery.plan import runs_of

    runs = runs_of(options.bank)
    if options.only:
        ids = options.only.split(",")
        if unknown := set(ids) - {run.id for run in runs}:
            raise SystemExit(f"Bank {options.bank} has no run {', '.join(sorted(unknown))}; --list prints them.")
        runs = [run for run in runs if run.id in ids]
    return runs[: options.first]


def file_of(options, run) -> Path:
    return options.cache / "raw" / run.bank / f"{run.id}.json.gz"


def prepare(options) -> None:
    """The starts of the wanted runs."""
    quiet()
    from battery.bases import make_start

    starts = sorted({run.start for run in wanted(options) if not file_of(options, run).exists()})
    for name in starts:
        began = time.monotonic()
        make_start(name, options.cache)
        print(f"start {name}: {time.monotonic() - began:.0f} s", flush=True)


def spread(options) -> int:
    jobs = max(1, options.jobs)
    own = [sys.executable, "-m", "battery", *sys.argv[1:]]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
    workers = [
        subprocess.Popen([*own, "--part", f"{k}/{jobs}"], env=environment, cwd=CACHE.parents[1] / "runner")
        for k in range(jobs)
    ]
    try:
        return max(worker.wait() for worker in workers)
    except KeyboardInterrupt:
        for worker in workers:
            worker.terminate()
        return 130


def work(options) -> int:
    runs = wanted(options)
    if options.list:
        for run in runs:
            print(run.id, run.intent, run.kind, run.start, run.task, run.rate, run.share, run.seed)
        return 0
    quiet()
    from battery.one_run import carry_out

    place, of = map(int, options.part.split("/"))
    for k, run in enumerate(runs):
        path = file_of(options, run)
        if k % of != place or path.exists():
            continue
        began = time.monotonic()
        record = carry_out(run, options.cache)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(f".{os.getpid()}.tmp")
        temporary.write_bytes(gzip.compress(json.dumps(record, separators=(",", ":")).encode(), 6, mtime=0))
        os.replace(temporary, path)
        ends = {
            s: f"{record['oracle'][s][0].count('1') / 10:.0f}>{record['oracle'][s][-1].count('1') / 10:.0f}"
            for s in record["skills"]
        }
        print(
            f"{run.id} {run.intent} {run.kind} {run.task} {run.rate:g}: {ends} {time.monotonic() - began:.0f} s",
            flush=True,
        )
    return 0


def quiet() -> None:
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    with contextlib.suppress(ImportError):
        import datasets

        datasets.disable_progress_bars()


if __name__ == "__main__":
    sys.exit(main())
