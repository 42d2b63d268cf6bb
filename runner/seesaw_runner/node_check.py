"""Whether the machine that a job got can run its stage: `python -m seesaw_runner.node_check RUN_FOLDER`.

The agent runs it, on every machine of the job, before the training (spec.json's `check`): what was checked where the
job was submitted is true of that machine only. Prints `@seesaw-check {"node", "problem"}`; `problem` is a sentence with
the fix, or null. Nothing heavy is imported, and the file runs on any Python, 2.7 too: it has to tell a wrong one.
"""

import json
import os
import socket
import sys

MARK = "@seesaw-check "
PYTHON = (3, 10)  # the oldest that the recipes run on
USAGE = "usage: python -m seesaw_runner.node_check RUN_FOLDER"


def node_name():
    """As the scheduler calls this machine, or as it calls itself."""
    return os.environ.get("SLURMD_NODENAME") or socket.gethostname()


def problem(run):
    """Why the stage cannot run here, in a sentence with the fix; None where it can."""
    where = "On " + node_name() + ", " + sys.executable
    version = ".".join(str(part) for part in sys.version_info[:3])
    other = "name another Python with `python:` of this target"
    if sys.version_info < PYTHON:
        return where + " is Python " + version + ", but 3.10 or newer is needed: " + other + "."
    from seesaw_runner.preflight.packages import lacking

    with open(os.path.join(run, "run.json"), encoding="utf-8") as handle:
        lacks = lacking(json.load(handle))
    if not lacks:
        return None
    missing = [lack.name for lack in lacks if lack.version is None]
    words = ["lacks " + listed(missing)] if missing else ["cannot run the stage"]
    words += [lack.what() for lack in lacks if lack.version is not None]
    install = sys.executable + " -m pip install " + " ".join(lack.wanted() for lack in lacks)
    instead = "".join(lack.instead for lack in lacks)
    fix = "Run `" + install + "` there" + instead + ", or " + other + "."
    return where + " (Python " + version + ") " + "; ".join(words) + ". " + fix


def listed(names):
    """As a person lists them. The whole has to fit into a line of `seesaw status`."""
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def main(argv):
    """Returns the exit code: 0, 1 with a problem, 2: usage."""
    if len(argv) != 1:
        sys.stderr.write(USAGE + "\n")
        return 2
    found = problem(argv[0])
    # A line of its own, in one write: with srun, other machines write into the same stream.
    sys.stdout.write("\n" + MARK + json.dumps({"node": node_name(), "problem": found}) + "\n")
    sys.stdout.flush()
    return 0 if found is None else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
