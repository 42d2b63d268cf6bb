#!/usr/bin/env python3
"""Entry point of Seesaw's jobs on a Ray cluster, in a package with the rest of the runner (src/targets/remote/ray).

`train` brings runner, inputs and run folder into the target's folder and runs the attempt's agent; `station` answers
one request (station.py) that came in SEESAW_REQUEST, or in a package when it is long. Ray keeps a job's output as text
and cannot give it out any more after one byte that is none: so only ASCII is printed here, and a training's own output
goes to its out.log. It needs nothing but Python 3.8 on Linux or macOS. The rules:
* What came is placed under a temporary name and gets its own when its hash is right: nothing is ever half there.
* When the process that started this one is gone, so is the attempt: Ray has given the job up.
"""

import base64
import contextlib
import errno
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zlib

REFUSED_EXIT = 3  # nothing was started; a line on stdout says why
LIMIT = 48 << 20  # bytes that one job prints at most: Ray gives out a log only as a whole
JOB, REQUEST = "seesaw-job.json", "seesaw-request.json"  # in packages of their own


class Refused(Exception):
    """A sentence for the person: what is wrong and what to do."""

    def __init__(self, message, reason="other"):
        super().__init__(message)
        self.reason = reason


def say(line):
    """One line, in one write: Ray itself writes into the same file."""
    view = memoryview(line.encode("ascii", "backslashreplace") if isinstance(line, str) else line)
    while view:
        view = view[os.write(1, view) :]


def tell(frame):
    say("@seesaw " + json.dumps(frame) + "\n")


# ---- packages


def is_package(folder):
    return os.path.basename(folder.rstrip("/")).startswith("_ray_pkg_")


def packages():
    """The folders into which Ray has unpacked this job's packages, by name."""
    folders = (folder for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder and is_package(folder))
    return {os.path.basename(folder): folder for folder in folders}


def carried(name):
    """A file that came with this job, as bytes."""
    for folder in packages().values():
        if os.path.isfile(os.path.join(folder, name)):
            with open(os.path.join(folder, name), "rb") as handle:
                return handle.read()
    raise Refused(f"Ray has not brought {name} of this job: start again.")


def clean_environment():
    """Without Ray's packages: what runs here uses the runner in the target's folder."""
    env = {name: value for name, value in os.environ.items() if name != "SEESAW_REQUEST"}
    kept = [part for part in env.pop("PYTHONPATH", "").split(os.pathsep) if part and not is_package(part)]
    if kept:
        env["PYTHONPATH"] = os.pathsep.join(kept)
    return env


# ---- placing


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as handle:
        for chunk in iter(lambda: handle.read(1 << 20), b""):
            digest.update(chunk)
    return digest.hexdigest()


def place(target, fill):
    """Lets `fill` make a file or folder under a temporary name and gives it its own. Whoever was first wins."""
    if os.path.exists(target):
        return
    os.makedirs(os.path.dirname(target), exist_ok=True)
    temporary = f"{target}.{os.getpid()}-{time.time_ns():x}.tmp"
    try:
        fill(temporary)
        try:
            os.rename(temporary, target)
        except OSError:
            if not os.path.exists(target):
                raise
    finally:
        if os.path.isdir(temporary):
            shutil.rmtree(temporary, ignore_errors=True)
        elif os.path.exists(temporary):
            os.unlink(temporary)


def copy_checked(source, target, wanted):
    shutil.copyfile(source, target)
    if sha256_of(target) != wanted:
        raise Refused(f"{target}: what came is not what was sent; start again.")
    with open(target, "rb") as handle:
        os.fsync(handle.fileno())


def place_input(item, found):
    """One data file or model folder, checked by the hash of each file: `files` are [name in it, name in the package,
    hash], the first empty for a file."""
    target = item["remote"]
    if os.path.exists(target):
        with contextlib.suppress(OSError):  # a sign that it is needed: cleaning up removes nothing so young
            os.utime(target if os.path.isdir(target) else os.path.dirname(target))
        return
    if item["package"] not in found:
        raise Refused(f"{target} is not here, and too large for a Ray package: copy it there, then start again.")
    folder = found[item["package"]]

    def fill(temporary):
        for name, entry, wanted in item["files"]:
            if os.path.isabs(name) or ".." in name.split("/"):
                raise Refused(f"{target}: {name!r} is no name of a file in a model folder.")
            path = os.path.join(temporary, name) if name else temporary
            os.makedirs(os.path.dirname(path), exist_ok=True)
            copy_checked(os.path.join(folder, entry), path, wanted)

    place(target, fill)


def write_text(path, text):
    def fill(temporary):
        with open(temporary, "w", encoding="utf-8") as handle:
            handle.write(text)
            handle.flush()
            os.fsync(handle.fileno())

    place(path, fill)


# ---- train


def prepare():
    """Everything of the attempt into the target's folder. Returns the agent and the attempt's folder."""
    here = os.path.dirname(os.path.abspath(__file__))
    job, found = json.loads(carried(JOB)), packages()
    for folder in job.get("needs", []):
        if not os.path.isdir(folder):
            raise Refused(
                f"{folder} is not on {os.uname().nodename}, where Ray has put the job: it would not go on from where "
                "it was. Give the target a `dir` on a disk that all nodes share, or start the stage anew.",
                "no-run",
            )
    attempt = os.path.join(job["run"], job["attempt"])
    try:
        place(job["runner"], lambda temporary: shutil.copytree(os.path.dirname(here), temporary))
        os.makedirs(job["work"], exist_ok=True)
        for item in job["inputs"]:
            place_input(item, found)
        write_text(os.path.join(job["run"], "run.json"), job["files"]["run.json"])
        write_text(os.path.join(attempt, "spec.json"), job["files"]["spec.json"])
        log = os.open(os.path.join(attempt, "agent.log"), os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o644)
    except OSError as error:
        quota = "your disk quota is used up (`quota -s` shows it, on Lustre `lfs quota`)"
        why = quota if error.errno == errno.EDQUOT else error.strerror
        raise Refused(
            f"{error.filename or job['run']} cannot be written on {os.uname().nodename}: {why}. Make room "
            "or choose another `dir` for the target.",
            "not-writable",
        ) from error
    return os.path.join(job["runner"], "seesaw_runner", "agent.py"), attempt, log


def train():
    """Runs the attempt to its end; returns the agent's exit code, which is 0 only if the training is done."""
    parent, asked = os.getppid(), []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, _: asked.append(number))
    agent, attempt, log = prepare()
    say(f"Seesaw runs {attempt} on {os.uname().nodename}; the training's output is in out.log beside it.\n")
    child = subprocess.Popen(
        [sys.executable, agent, "run", attempt],
        env=clean_environment(),
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
    )
    told = False
    while True:
        try:
            code = child.wait(timeout=0.3)
            break
        except subprocess.TimeoutExpired:
            if not told and (asked or os.getppid() != parent):
                told = True
                child.terminate()
    say(f"The agent has ended with {code}.\n")
    return code if code >= 0 else 128 - code


# ---- station


def request():
    """The request as one line of JSON."""
    packed = os.environ.get("SEESAW_REQUEST", "")
    return zlib.decompress(base64.b64decode(packed)) if packed else carried(REQUEST)


def station():
    """Passes the request to station.py and its answers on, up to LIMIT bytes: then the other side asks again."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "station.py")
    start = f"exec(compile(open({path!r}, encoding='utf-8').read(), {path!r}, 'exec'));serve()\n"
    child = subprocess.Popen(
        [sys.executable, "-u", "-c", "import sys;exec(sys.stdin.buffer.readline())"],
        env=clean_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    child.stdin.write(start.encode("ascii") + request().strip() + b"\n")
    child.stdin.flush()
    written, rest, whole = 0, [], True
    for line in child.stdout:
        if not line.startswith(b"@seesaw "):
            rest = [*rest[-9:], line]
            continue
        say(line)
        written += len(line)
        if written > LIMIT:
            whole = False
            break
    child.stdin.close()
    if not whole:
        child.kill()
        tell({"kind": "more"})
    elif written == 0:
        words = b" ".join(rest).decode("utf-8", "replace").strip()
        raise Refused(f"The station on {os.uname().nodename} did not answer: {words[-600:]}")
    child.wait()
    return 0


def main(argv):
    try:
        if sys.version_info < (3, 8):  # noqa: UP036 - it is the other machine's Python
            raise Refused(f"{sys.executable} is Python {sys.version.split()[0]}: 3.10 or newer is needed.", "no-python")
        return {"train": train, "station": station}[argv[0]]()
    except Refused as refused:
        tell({"kind": "error", "reason": refused.reason, "code": "ray-job", "message": str(refused)})
        return REFUSED_EXIT


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
