"""A small training for the tests of the Ray adapter: STEPS SECONDS SAVE. It goes on from its newest checkpoint, saves
one when it is asked to stop, and prints what is no text at all."""

import json
import os
import signal
import sys
import time
from pathlib import Path

steps, seconds, every = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
attempt = Path(os.environ["SEESAW_ATTEMPT"])
run, number = attempt.parent, int(attempt.name[8:])
stop = []
signal.signal(signal.SIGTERM, lambda *_: stop.append(1))
journal = run / "journal.jsonl"
seq = len(journal.read_bytes().splitlines()) if journal.exists() else 0


def tell(kind, **fields):
    global seq
    seq += 1
    with open(journal, "a") as handle:
        event = {"v": 1, "seq": seq, "t": time.time(), "attempt": number, "type": kind, **fields}
        handle.write(json.dumps(event) + "\n")


with open(run / "starts", "a") as handle:
    handle.write(f"{number}\n")
saved = sorted((run / "checkpoints").glob("step-*"))
begun = int(saved[-1].name[5:]) if saved else 0
tell("run.started", resumed_from=begun or None)
for step in range(begun + 1, steps + 1):
    time.sleep(seconds)
    sys.stdout.buffer.write(b"step %d \xff\xfe\xc3\x00\r no text\n" % step)
    sys.stdout.buffer.flush()
    tell("stage.progress", step=step)
    if step % every == 0 or stop:
        folder = run / "checkpoints" / f"step-{step:06d}"
        folder.mkdir(parents=True)
        (folder / "model.safetensors").write_bytes(os.urandom(300_000))
        (folder / "seesaw.json").write_text(json.dumps({"v": 1, "step": step}))
        tell("checkpoint.saved", step=step)
    if stop:
        sys.exit(143)
