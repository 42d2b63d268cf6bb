"""Runs a program on a terminal of its own and types Ctrl-C when a text appears: `terminal.py TEXT [TEXT…] -- PROGRAM…`.

Prints {"code", "output"} as JSON.
"""
import json
import os
import pty
import select
import sys
import time

split = sys.argv.index("--")
waits, program = sys.argv[1:split], sys.argv[split + 1 :]
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(program[0], program)
output, seen, deadline = b"", 0, time.monotonic() + 60
while time.monotonic() < deadline:
    if select.select([terminal], [], [], 0.2)[0]:
        try:
            piece = os.read(terminal, 65536)
        except OSError:
            break
        if not piece:
            break
        output += piece
    while waits and waits[0].encode() in output[seen:]:
        seen = output.index(waits.pop(0).encode(), seen)
        os.write(terminal, b"\x03")
_, status = os.waitpid(pid, 0)
print(json.dumps({"code": os.waitstatus_to_exitcode(status), "output": output.decode("utf-8", "replace")}))
