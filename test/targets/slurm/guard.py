"""Ends what a test started, also when the test itself was killed: waits for the end of its standard input, which closes
with the test. `python guard.py FOLDER MARK`: FOLDER/pids has a line `pid start-time name` for each daemon, and every
process that inherited the environment variable MARK (jobs, slurmstepd) is ended as well. FOLDER is removed at the end.
"""

import contextlib
import os
import shutil
import signal
import sys
import time


def start_of(pid):
    """When a process began, in clock ticks; None when it is gone or a zombie."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as handle:
            fields = handle.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else fields[19].decode()


def recorded(folder):
    """Pids of daemons that still are the processes that were started."""
    with contextlib.suppress(OSError), open(os.path.join(folder, "pids"), encoding="ascii") as handle:
        for line in handle:
            pid, start, _ = line.split(" ", 2)
            if start_of(pid) == start:
                yield int(pid)


def marked(mark):
    """Pids of processes that inherited the mark; never this one."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as handle:
            if mark in handle.read().split(b"\0") and int(name) != os.getpid() and start_of(name):
                yield int(name)


def main():
    folder, mark = sys.argv[1], sys.argv[2].encode()
    # What a terminal or the test runner sends is nothing to us: only the end of stdin counts.
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    with contextlib.suppress(OSError):
        while os.read(0, 4096):
            pass
    begin = time.monotonic()
    while time.monotonic() < begin + 20:
        left = {*recorded(folder), *marked(mark)}
        if not left:
            break
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGTERM if time.monotonic() < begin + 3 else signal.SIGKILL)
        time.sleep(0.3)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
