"""Stands in for a training process: what it does is said on the command line.

--exit N --sleep S --term ignore|polite --outcome JSON --torn (leave half a journal line) --events N
--child (a helper in the same group) --away (a helper in a session of its own) --eat MB (use memory)
Every start adds its pid to RUN/starts, every helper to RUN/helpers.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument("--exit", type=int, default=0)
parser.add_argument("--sleep", type=float, default=0)
parser.add_argument("--term", default="default")
parser.add_argument("--outcome")
parser.add_argument("--events", type=int, default=0)
parser.add_argument("--torn", action="store_true")
parser.add_argument("--child", action="store_true")
parser.add_argument("--away", action="store_true")
parser.add_argument("--eat", type=int, default=0)
options = parser.parse_args()

attempt = os.environ["SEESAW_ATTEMPT"]
run = os.path.dirname(attempt)


def note(name, pid):
    fd = os.open(os.path.join(run, name), os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o644)
    os.write(fd, b"%d\n" % pid)
    os.close(fd)


if options.term == "ignore":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
elif options.term == "polite":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
if options.outcome:
    with open(os.path.join(attempt, "outcome.json"), "w", encoding="utf-8") as handle:
        handle.write(options.outcome)
if options.events:
    sys.path.insert(0, os.environ["RUNNER"])
    from seesaw_runner.journal import Journal

    with Journal(os.path.join(run, "journal.jsonl"), int(attempt[-4:])) as journal:
        for step in range(options.events):
            journal.append("metric", step=step, values={"loss": float("nan")})
if options.torn:
    with open(os.path.join(run, "journal.jsonl"), "a", encoding="utf-8") as handle:
        handle.write('{"v":1,"seq":99,"t":1,"att')
for session in [False] * options.child + [True] * options.away:
    helper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=session)
    note("helpers", helper.pid)
print(json.dumps({"pid": os.getpid(), "group": os.getpgid(0), "stdin": sys.stdin.read()}), flush=True)
note("starts", os.getpid())  # last: whoever waits for it knows that the handlers are in place
if options.eat:
    block = bytearray(options.eat << 20)
    for at in range(0, len(block), 4096):
        block[at] = 1
time.sleep(options.sleep)
print("end", flush=True)
sys.exit(options.exit)
