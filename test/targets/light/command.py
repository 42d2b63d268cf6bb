"""A stand-in for `recipes/command.py` that needs no torch, so that forty faults cost minutes, not an hour.

Everything around it is the real thing: the runner's copy on the target, agent, preflight, journal, outcome, checkpoint
folders. What it "trains" is in the stage's environment variable FAKE_TRAINING (JSON, see `FakeTraining` in lab.ts). It
writes down each start of itself in output/starts.jsonl, with the other trainings of this run that live at that moment:
there must never be any.
"""

import contextlib
import hashlib
import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path

from seesaw_runner.agent import process_start
from seesaw_runner.journal import Journal
from seesaw_runner.run_folder import attempt_folder, attempt_number, describe, load_spec, say, write_outcome

stop = []


def main(argv=None) -> int:
    run = Path((argv or sys.argv[1:])[-1]).resolve()
    attempt, spec = attempt_folder(run), load_spec(run)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
        signal.signal(number, lambda number, _: stop.append(number))
    own = {"steps": 20, "dt": 0.1, "save": 5, "log": 60, "bytes": False, "hold": 0, "ignore_stop": False, "code": 0}
    own |= {"open": False, "clock": 0}
    own |= json.loads(os.environ.get("FAKE_TRAINING", "{}"))
    try:
        note_start(run, attempt_number(attempt))
        clock = lambda real=time.time: real() + own["clock"]  # noqa: E731
        with Journal(run / "journal.jsonl", attempt_number(attempt), clock) as journal:
            return train(run, attempt, spec, own, journal)
    except BaseException as error:
        code, message, where = describe(error)
        with contextlib.suppress(OSError):
            say(f"Failed ({code}): {message}")
        write_outcome(attempt, code, message, where)
        return 1


def train(run: Path, attempt: Path, spec: dict, own: dict, journal: Journal) -> int:
    saved = sorted((run / "checkpoints").glob("step-*"))
    begun = int(saved[-1].name[5:]) if saved else 0
    journal.append(
        "run.started",
        stage=spec["stage"],
        recipe="command",
        device="none",
        dtype="float32",
        parameters=0,
        trainable=0,
        total_steps=own["steps"],
        start_label=spec["start"]["label"],
        rows=0,
        replay_rows=0,
        resumed_from=begun if saved else None,
        packages={},
        processes=1,
    )
    for step in range(begun + 1, sys.maxsize if own["open"] else own["steps"] + 1):
        time.sleep(own["dt"])
        last = (run / "output" / "finish").exists() if own["open"] else step == own["steps"]
        journal.append("metric", step=step, values={"loss": 2.0 / step})
        journal.append("stage.progress", phase="train", step=step, total=own["steps"])
        with open(run / "ledger.jsonl", "a") as ledger:
            ledger.write(json.dumps({"v": 1, "attempt": attempt_number(attempt), "step": step, "draws": []}) + "\n")
        write_log(step, own)
        if own["hold"] and (run / "output" / "hold").exists():
            eat(own["hold"])
        if step % own["save"] == 0 or last or stop:
            save(run, spec, step, last and not stop, journal)
        if stop and not own["ignore_stop"]:
            write_outcome(attempt, "cancelled", "Stopped on request.")
            return 143
        if last:
            break
    return own["code"]


def write_log(step: int, own: dict) -> None:
    """So many bytes a step, in blocks: a gigabyte costs no memory here. `bytes`: not UTF-8, with CR, NUL and BOM."""
    line = b"\xef\xbb\xbf\xff\xfe\xc3 step %d \r\x00\x9f\n" if own["bytes"] else b"step %d\n"
    sys.stdout.buffer.write(line % step)
    left, block = own["log"], b"." * 65535 + b"\n"
    while left > 0:
        left -= sys.stdout.buffer.write(block[-left:] if left < len(block) else block)
    sys.stdout.buffer.flush()


def eat(megabytes: int) -> None:
    """Holds memory, page by page, until that much is held or somebody objects."""
    held = []
    for _ in range(megabytes):
        held.append(bytearray(os.urandom(4096) * 256))


def save(run: Path, spec: dict, step: int, final: bool, journal: Journal) -> None:
    folder = run / "checkpoints" / f"step-{step:06d}"
    if folder.exists():
        return
    fresh = folder.with_name(f".{folder.name}.tmp")
    shutil.rmtree(fresh, ignore_errors=True)
    shutil.copytree(spec["start"]["checkpoint"], fresh)
    weights = (fresh / "model.safetensors").read_bytes()
    about = {"v": 1, "step": step, "stage": spec["stage"], "run": spec["id"], "label": "M1", "kind": "full"}
    about["weights_hash"] = hashlib.sha256(weights).hexdigest()
    (fresh / "seesaw.json").write_text(json.dumps(about))
    os.rename(fresh, folder)
    trace = run / "traces" / folder.name / "math.id.trace"
    trace.parent.mkdir(parents=True, exist_ok=True)
    trace.with_suffix(".tmp").write_bytes(os.urandom(300_000))
    os.rename(trace.with_suffix(".tmp"), trace)
    journal.append(
        "checkpoint.saved",
        step=step,
        path=f"checkpoints/{folder.name}",
        kind="full",
        final=final,
        weights_hash=about["weights_hash"],
        bytes=len(weights),
    )


def note_start(run: Path, attempt: int) -> None:
    (run / "output").mkdir(exist_ok=True)
    path = run / "output" / "starts.jsonl"
    known = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    others = [one["pid"] for one in known if process_start(one["pid"]) == one["start"]]
    me = {"attempt": attempt, "pid": os.getpid(), "start": process_start(os.getpid()), "others": others}
    with open(path, "a") as handle:
        handle.write(json.dumps(me) + "\n")


if __name__ == "__main__":
    sys.exit(main())
