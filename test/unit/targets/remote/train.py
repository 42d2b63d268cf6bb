"""Stands for a training: JOURNAL STEPS SECONDS EXIT. Writes events, resumes the numbering, and prints bytes that are no UTF-8."""

import json
import os
import sys
import time

path, steps, seconds, code = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
attempt = int(os.environ["SEESAW_ATTEMPT"].rpartition("-")[2])
seq = 0
if os.path.exists(path):
    with open(path, encoding="utf-8") as handle:
        seq = max((json.loads(line)["seq"] for line in handle if line.endswith("\n")), default=0)
with open(path, "ab", buffering=0) as journal:

    def write(kind, **fields):
        global seq
        seq += 1
        event = {"v": 1, "seq": seq, "t": time.time(), "attempt": attempt, "type": kind, **fields}
        journal.write(json.dumps(event).encode() + b"\n")

    write("run.started", stage="math", recipe="sft", device="cpu", total_steps=steps, resumed_from=None)
    for step in range(1, steps + 1):
        write("metric", step=step, values={"loss": 1.0 / step})
        os.write(1, b"step %d \xff\xfe\n" % step)
        time.sleep(seconds)
sys.exit(code)
