"""How the agent names the end of an attempt, and what a full disk does to it."""

import errno
import json
import os
import resource
import signal
import subprocess
import time
from pathlib import Path

import pytest
from fakes.attempts import AGENT, PYTHON, Run, call, wait
from seesaw_runner import agent


@pytest.fixture
def run(tmp_path):
    run = Run(tmp_path / "run")
    yield run
    run.close()


# ---- what the end is called


@pytest.mark.parametrize(
    "outcome, code, reason",
    [
        (None, 7, {"kind": "failed", "code": "exception", "exit_code": 7}),
        (
            {"code": "nan-loss", "message": "loss is NaN", "where": "step 7"},
            1,
            {"kind": "failed", "code": "nan-loss", "message": "loss is NaN", "where": "step 7", "exit_code": 1},
        ),
        ({"code": "out-of-memory", "message": "CUDA"}, 1, {"kind": "out-of-memory", "message": "CUDA"}),
        ({"code": "cancelled", "message": ""}, 143, {"kind": "cancelled"}),
        (
            {"code": "paused", "message": "", "flag": "math.id", "step": 40},
            143,
            {"kind": "paused", "flag": "math.id", "step": 40},
        ),
        ({"code": "flag-stop", "message": "lost"}, 1, {"kind": "failed", "code": "flag-stop", "exit_code": 1}),
        ({"code": "done", "message": ""}, 0, {"kind": "done"}),
        ({"code": "done", "message": ""}, 1, {"kind": "failed", "code": "exception", "exit_code": 1}),
    ],
)
def test_outcome_and_code(run, outcome, code, reason):
    words = ["--outcome", json.dumps({"v": 1, **outcome})] if outcome else []
    call("run", run.attempt("--exit", str(code), *words).path)
    [(_, said)] = run.finished()
    assert {**said, **reason} == said
    assert run.attempts[0].json("exit.json")["outcome"] == ({"v": 1, **outcome} if outcome else None)


def test_nan_in_an_outcome_does_not_break_the_journal(run):
    call("run", run.attempt("--exit", "1", "--outcome", '{"code": "nan-loss", "message": "m", "where": NaN}').path)
    assert b'"where": "NaN"' in run.path.joinpath("journal.jsonl").read_bytes()


def ended(**fields):
    return {"code": None, "signal": None, "reason": "exit", **fields}


@pytest.mark.parametrize(
    "exit_, kind",
    [
        (ended(signal="SIGKILL"), "killed"),
        (ended(signal="SIGKILL", oom={"machine": 1}), "out-of-memory"),
        (ended(code=137), "killed"),  # a shell in between
        (ended(code=137, oom={"machine": 1}), "out-of-memory"),
        (ended(code=143), "killed"),
        (ended(code=1, oom={"machine": 1}), "failed"),  # somebody else's memory
        (ended(code=1, oom={"cgroup": 1, "machine": 1}), "out-of-memory"),  # a worker of torchrun
        (ended(code=1, oom={"cgroup": 1}, outcome={"code": "nan-loss", "message": ""}), "failed"),
        (ended(signal="SIGKILL", reason="cancel+kill", oom={"machine": 1}), "cancelled"),
        (ended(code=143, reason="signal:SIGUSR1", outcome={"code": "cancelled", "message": ""}), "killed"),
        (ended(signal="SIGSEGV", outcome={"code": "done"}), "killed"),
        (ended(), "unknown"),
        (ended(reason="lost"), "lost"),
        (ended(reason="lost", outcome={"code": "cancelled", "message": ""}), "lost"),  # its agent's death was no wish
        ({}, "unknown"),
    ],
)
def test_classify(exit_, kind):
    assert agent.classify(exit_)["kind"] == kind


def test_the_kernel_kills_for_memory(run):
    group = Path(f"/sys/fs/cgroup/memory/seesaw-test-{os.getpid()}")
    limit = "memory.limit_in_bytes"
    if not group.parent.exists():
        group, limit = Path(f"/sys/fs/cgroup/seesaw-test-{os.getpid()}"), "memory.max"
    try:
        group.mkdir()
        (group / limit).write_text(str(100 << 20))
    except OSError as error:
        if group.exists():
            group.rmdir()
        pytest.skip(f"no memory group can be made here: {error}")
    try:
        attempt = run.attempt("--eat", "400")
        enter = f"echo $$ > {group}/cgroup.procs && exec {PYTHON} {AGENT} run {attempt.path}"
        assert subprocess.run(["sh", "-c", enter], timeout=120).returncode == 137
    finally:
        wait(lambda: not (group / "cgroup.procs").read_text(), "the group to empty")
        group.rmdir()
    assert attempt.json("exit.json")["signal"] == "SIGKILL"
    [(_, reason)] = run.finished()
    assert reason["kind"] == "out-of-memory" and "oom_kill" in reason["evidence"]


# ---- a full disk


@pytest.fixture
def small_disk(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip("no small disk can be mounted here: test_file_size_limit stands in")
    run = Run(disk / "run")
    yield run
    run.close()
    for _ in range(100):  # a process that was killed may hold it for a moment yet
        if subprocess.run(["umount", str(disk)], capture_output=True).returncode == 0:
            return
        time.sleep(0.1)
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def fill(run):
    with open(run.path / "ballast", "ab", buffering=0) as handle:
        for size in (4096, 1):
            try:
                while True:
                    handle.write(b"x" * size)
            except OSError as error:
                assert error.errno == errno.ENOSPC


def test_disk_full_the_end_is_still_recorded(small_disk):
    run = small_disk
    attempt = run.attempt("--sleep", "600", "--events", "1", patience_s=5)
    process = run.start(attempt)
    started = attempt.started()
    fill(run)
    beat = call("probe", attempt.path).json["beat"]
    wait(lambda: call("probe", attempt.path).json["beat"] != beat, "a beat on a full disk")
    os.kill(started["pid"], signal.SIGKILL)
    assert process.wait(60) == 137
    assert attempt.json("exit.json")["signal"] == "SIGKILL"
    assert run.finished() == [(1, {"kind": "killed", "signal": "SIGKILL"})]


def test_disk_full_and_the_training_could_not_say_so(small_disk):
    run = small_disk
    attempt = run.attempt("--sleep", "4", "--exit", "1", patience_s=5)
    process = run.start(attempt)
    attempt.started()
    fill(run)
    assert process.wait(60) == 1
    [(_, reason)] = run.finished()
    assert (reason["kind"], reason["code"], reason["exit_code"]) == ("failed", "disk-full", 1)


def test_disk_full_without_a_reserve_gives_up_then_reap_closes(small_disk):
    run = small_disk
    attempt = run.attempt("--sleep", "600", "--events", "1", patience_s=1)
    process = run.start(attempt)
    started = attempt.started()
    attempt.path.joinpath(".reserve").unlink()
    fill(run)
    os.kill(started["pid"], signal.SIGKILL)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1 and b"No space left on device" in err and not attempt.json("exit.json")
    run.path.joinpath("ballast").unlink()
    assert call("reap", attempt.path).json["reaped"] is True
    assert [e["seq"] for e in run.events()] == [1, 2] and run.finished()[0][1]["kind"] == "lost"


def test_disk_full_before_the_start(small_disk):
    run = small_disk
    attempt = run.attempt("--sleep", "600")
    fill(run)
    for words in ((), ("--detach",)):
        answer = call("run", attempt.path, *words)
        assert answer.code == 1 and "No space left on device" in answer.err and attempt.state() == "absent"
    run.path.joinpath("ballast").unlink()
    assert call("run", attempt.path, "--detach").json["state"] == "running"  # nothing was spoilt


def test_file_size_limit(run):
    """The other way to have no room: a journal that must not grow. exit.json is written, the rest is said."""
    attempt = run.attempt("--exit", "3", patience_s=0.5)
    run.path.joinpath("journal.jsonl").write_bytes(b'{"v":1,"seq":1,"type":"x"}\n' * 4000)
    room = os.path.getsize(run.path / "journal.jsonl")
    answer = call("run", attempt.path, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)))
    assert answer.code == 1 and "Cannot write" in answer.err and attempt.json("exit.json")["code"] == 3
    assert os.path.getsize(run.path / "journal.jsonl") == room
    assert call("reap", attempt.path).json["reaped"] is True and run.finished()[0][1]["exit_code"] == 3
