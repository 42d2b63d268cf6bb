"""Run folders with real agents in them, for tests. `Run.close()` ends, by recorded pid, every process it started."""

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

from seesaw_runner import agent

HERE = Path(__file__).resolve().parent
RUNNER = HERE.parents[2] / "runner"
AGENT = RUNNER / "seesaw_runner" / "agent.py"
PYTHON = os.environ.get("SEESAW_AGENT_PYTHON", sys.executable)  # e.g. the oldest one supported
PATIENCE = 60.0  # for things that take milliseconds on a quiet machine


def wait(condition, what):
    """Waits until condition() is true; returns its value. Fails the test after PATIENCE seconds."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"not within {PATIENCE} s: {what}")


class Attempt:
    def __init__(self, folder, nonce):
        self.path, self.nonce = folder, nonce
        self.path.mkdir()

    def json(self, name):
        return agent.read_json(str(self.path), name)

    def started(self):
        """started.json, once the training runs its own code (and has its handlers in place)."""
        started = wait(lambda: self.json("started.json"), "started.json")
        wait(lambda: str(started["pid"]) in lines(self.path.parent / "starts"), "the training's own first word")
        return started

    def exited(self):
        return wait(lambda: self.json("exit.json"), "exit.json")

    def state(self):
        return call("probe", self.path).json["state"]

    def state_is(self, state):
        return wait(lambda: self.state() == state, f"state {state}, is {self.state()}")


class Run:
    """A run folder. `attempt(…)` adds one with a spec for fakes/train.py."""

    def __init__(self, folder):
        self.path, self.attempts, self.processes = folder, [], []
        folder.mkdir(exist_ok=True)

    def attempt(self, *train, **spec):
        number = len(self.attempts) + 1
        attempt = Attempt(self.path / f"attempt-{number:04d}", uuid.uuid4().hex)
        self.attempts.append(attempt)
        spec = {
            "v": 1,
            "nonce": attempt.nonce,
            "argv": [sys.executable, str(HERE / "train.py"), *train],
            "cwd": str(self.path),
            "env": {"RUNNER": str(RUNNER)},
            "epoch": number,
            "grace_s": 10,
            "beat_s": 0.1,
            "fate": False,
            "run": "..",
            **spec,
        }
        (attempt.path / "spec.json").write_text(json.dumps(spec))
        return attempt

    def start(self, attempt):
        """An agent in the foreground, as a child of the test."""
        process = subprocess.Popen(
            [PYTHON, str(AGENT), "run", str(attempt.path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.processes.append(process)
        return process

    def events(self):
        journal = self.path / "journal.jsonl"
        if not journal.exists():  # killed before its first word, and the agent has not added the last one yet
            return []
        return [event for event in map(agent.read_event, journal.read_bytes().split(b"\n")) if event]

    def finished(self):
        """(attempt, reason) of every run.finished, in file order."""
        return [(e["attempt"], e["reason"]) for e in self.events() if e["type"] == "run.finished"]

    def close(self):
        for attempt in self.attempts:
            started = attempt.json("started.json") or {}
            for pid, start in (
                (started.get("agent_pid"), started.get("agent_start")),
                (started.get("pid"), started.get("start")),
            ):
                if pid and agent.alive(pid, start):
                    os.kill(pid, signal.SIGKILL)
            agent.kill_marked(attempt.nonce)
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.communicate()


class Answer:
    def __init__(self, done):
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr.decode()

    @property
    def json(self):
        assert self.out.count(b"\n") == 1, (self.out, self.err)
        return json.loads(self.out)


def call(*words, **options):
    """Runs one verb of the agent to its end."""
    argv = [PYTHON, str(AGENT), *map(str, words)]
    return Answer(subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=2 * PATIENCE, **options))


def lines(path):
    return path.read_text().split() if path.exists() else []


def gone(pid):
    """Whether no live process has this number (a zombie is gone)."""
    return agent.process_start(int(pid)) is None
