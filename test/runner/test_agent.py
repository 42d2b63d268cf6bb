"""The agent against real processes: what it starts, how it ends them, and what it says of their end."""

import ast
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fakes.attempts import AGENT, PYTHON, Run, call, gone, lines, wait
from seesaw_runner import agent


@pytest.fixture
def run(tmp_path):
    run = Run(tmp_path / "run")
    yield run
    run.close()


def starts(run):
    return lines(run.path / "starts")


# ---- a start and an end


def test_happy_path(run):
    attempt = run.attempt("--events", "3")
    answer = call("run", attempt.path, "--detach")
    assert answer.code == 0, answer.err
    assert answer.json["state"] in ("running", "exited") and answer.json["started"]["nonce"] == attempt.nonce
    ended = attempt.exited()
    assert {k: ended[k] for k in ("v", "nonce", "code", "signal", "reason", "outcome")} == {
        "v": 1,
        "nonce": attempt.nonce,
        "code": 0,
        "signal": None,
        "reason": "exit",
        "outcome": None,
    }
    assert ended["beats"] >= 1 and abs(ended["t"] - time.time()) < 600
    wait(lambda: run.path.joinpath("journal.jsonl").read_text().count("\n") == 4, "the last event")
    assert [e["seq"] for e in run.events()] == [1, 2, 3, 4]
    assert run.events()[-1]["type"] == "run.finished" and run.finished() == [(1, {"kind": "done"})]
    started, probe = attempt.json("started.json"), call("probe", attempt.path).json
    assert started["pid"] == started["pgid"] and started["host"] == socket.gethostname() and started["job"] == {}
    assert started["boot"] == probe["boot"] == agent.boot_id()
    assert probe["state"] == "exited" and probe["size"]["journal.jsonl"] > 0 and probe["beat_age"] is not None
    log = run.path.joinpath("out.log").read_text().splitlines()
    assert json.loads(log[0]) == {"pid": started["pid"], "group": started["pid"], "stdin": ""} and log[-1] == "end"
    assert run.path.joinpath("epoch").read_text().strip() == "1"
    assert not [f for f in os.listdir(attempt.path) if f.endswith(".tmp") or f == ".reserve"]


def test_states_before_a_start(run):
    attempt = run.attempt()
    assert attempt.state() == "absent"
    me = agent.identity()
    agent.write_json(str(attempt.path), "claim", me)
    assert attempt.state() == "claimed"
    agent.write_json(str(attempt.path), "claim", {**me, "start": 1})
    assert attempt.state() == "lost:no-exit-file"


def test_foreground_passes_the_exit_code_on(run):
    assert call("run", run.attempt("--exit", "3").path).code == 3
    assert call("run", run.attempt("--exit", "0").path).code == 0


def test_six_racing_launches_start_once(run):
    attempt = run.attempt("--sleep", "600")
    racers = [
        subprocess.Popen([PYTHON, str(AGENT), "run", str(attempt.path), "--detach"], stdout=subprocess.PIPE)
        for _ in range(6)
    ]
    run.processes += racers
    outs = [racer.communicate(timeout=120)[0] for racer in racers]
    assert sorted(racer.returncode for racer in racers) == [0, 17, 17, 17, 17, 17]
    assert all(json.loads(out)["state"] in ("claimed", "running") for out in outs)
    attempt.started()
    time.sleep(0.3)
    assert len(starts(run)) == 1


def test_a_detached_agent_survives_its_parents_group(run):
    attempt = run.attempt("--sleep", "600")
    script = f"{PYTHON} {AGENT} run {attempt.path} --detach; sleep 600"
    parent = subprocess.Popen(["sh", "-c", script], start_new_session=True, stdout=subprocess.PIPE)
    run.processes.append(parent)
    assert json.loads(parent.stdout.readline())["state"] == "running"
    started = attempt.started()
    os.killpg(parent.pid, signal.SIGKILL)
    assert parent.wait(60) == -signal.SIGKILL
    parent.stdout.read()  # ends only if the agent let go of the caller's pipe
    beat = call("probe", attempt.path).json["beat"]
    wait(lambda: call("probe", attempt.path).json["beat"] != beat, "the next beat")
    assert attempt.state() == "running" and not gone(started["pid"])
    with open(f"/proc/{started['agent_pid']}/stat") as handle:
        assert int(handle.read().rpartition(")")[2].split()[3]) != parent.pid  # a session of its own


def test_no_such_program(run):
    attempt = run.attempt(argv=["/no/such/python", "x.py"])
    assert call("run", attempt.path, "--detach").json["state"] == "exited"
    ended = attempt.json("exit.json")
    assert ended["code"] is None and ended["signal"] is None and ended["reason"] == "spawn"
    [(_, reason)] = wait(run.finished, "the last event")
    assert reason["kind"] == "failed" and reason["code"] == "spawn" and "/no/such/python" in reason["message"]


def test_no_such_folder(run):
    call("run", run.attempt(cwd="/no/such/folder").path)
    [(_, reason)] = run.finished()
    assert reason["code"] == "spawn" and "/no/such/folder" in reason["message"]


def test_a_program_that_the_system_refuses(run):
    script = run.path / "bad"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    call("run", run.attempt(argv=[str(script)]).path)
    assert run.finished()[0][1]["code"] == "spawn"


def test_argv_and_env_reach_the_training_unchanged(run):
    words = ["a b", "", "$HOME", "'\"", "-n", "\u00e9\n"]
    code = "import json, os, sys; print(json.dumps([sys.argv[1:], os.environ['X'], os.getcwd()]))"
    call("run", run.attempt(argv=[sys.executable, "-c", code, *words], env={"X": "y z"}, cwd="..").path)
    got = json.loads(run.path.joinpath("out.log").read_text())
    assert got == [words, "y z", str(run.path.parent.resolve())]


# ---- stops


def test_cancel_of_a_polite_training(run):
    attempt = run.attempt("--sleep", "600", "--term", "polite", grace_s=120)
    call("run", attempt.path, "--detach")
    attempt.started()
    assert call("cancel", attempt.path).json["cancel"] is True
    ended = attempt.exited()
    assert (ended["code"], ended["reason"], ended["finished"]) == (0, "cancel", {"kind": "cancelled"})


def test_cancel_kills_after_the_grace(run):
    attempt = run.attempt("--sleep", "600", "--term", "ignore", grace_s=1.0)
    call("run", attempt.path, "--detach")
    started, began = attempt.started(), time.monotonic()
    call("cancel", attempt.path)
    ended = attempt.exited()
    assert time.monotonic() - began >= 1.0
    assert (ended["code"], ended["signal"], ended["reason"]) == (None, "SIGKILL", "cancel+kill")
    assert wait(run.finished, "the last event") == [(1, {"kind": "cancelled"})] and gone(started["pid"])


def test_cancel_before_the_start(run):
    attempt = run.attempt("--sleep", "600")
    call("cancel", attempt.path)
    assert call("run", attempt.path).code == 1
    assert run.finished() == [(1, {"kind": "cancelled"})] and starts(run) == []


def test_a_signal_to_the_agent_stops_the_training(run):
    attempt = run.attempt("--sleep", "600", "--term", "polite", grace_s=120)
    process = run.start(attempt)
    attempt.started()
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) != 0
    assert attempt.json("exit.json")["reason"] == "signal:SIGTERM"
    assert run.finished() == [(1, {"kind": "killed", "signal": "SIGTERM"})]


def test_a_scheduler_signals_the_training_as_well_and_it_is_gone_first(run):
    words = ["--outcome", '{"v": 1, "code": "cancelled", "message": "Stopped."}']
    attempt = run.attempt("--sleep", "600", "--term", "polite", *words, grace_s=120)
    process = run.start(attempt)
    training = attempt.started()["pid"]
    process.send_signal(signal.SIGSTOP)  # so slow is an agent on a busy machine
    os.kill(training, signal.SIGTERM)
    wait(lambda: state_of(training) in (None, "Z"), "the training has ended")
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGCONT)
    assert process.wait(60) != 0
    assert run.finished() == [(1, {"kind": "killed", "signal": "SIGTERM"})]


def state_of(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[0]
    except FileNotFoundError:
        return None


def test_kill_9_of_the_training(run):
    attempt = run.attempt("--sleep", "600")
    process = run.start(attempt)
    os.kill(attempt.started()["pid"], signal.SIGKILL)
    assert process.wait(60) == 137
    ended = attempt.json("exit.json")
    assert (ended["code"], ended["signal"], ended["reason"]) == (None, "SIGKILL", "exit")
    assert run.finished() == [(1, {"kind": "killed", "signal": "SIGKILL"})]


def test_helpers_end_with_the_training(run):
    attempt = run.attempt("--child", "--away")
    assert call("run", attempt.path).code == 0
    helpers = lines(run.path / "helpers")
    assert len(helpers) == 2
    for pid in helpers:
        wait(lambda pid=pid: gone(pid), f"the end of helper {pid}")


# ---- the agent dies


def orphan(run, *train, **spec):
    attempt = run.attempt("--sleep", "600", *train, **spec)
    call("run", attempt.path, "--detach")
    started = attempt.started()
    os.kill(started["agent_pid"], signal.SIGKILL)
    attempt.state_is("orphan")
    return attempt, started


def test_cancel_of_an_orphan(run):
    attempt, started = orphan(run, "--child", "--away", "--events", "2")
    answer = call("cancel", attempt.path)
    assert answer.json["state"] == "exited", answer.err
    ended = attempt.json("exit.json")
    assert (ended["code"], ended["signal"], ended["reason"]) == (None, None, "cancel") and gone(started["pid"])
    assert run.finished() == [(1, {"kind": "cancelled"})] and run.events()[-1]["seq"] == 3
    assert all(gone(pid) for pid in lines(run.path / "helpers"))
    call("cancel", attempt.path)
    assert len(run.finished()) == 1


def test_cancel_of_an_orphan_that_ignores_sigterm(run):
    attempt, started = orphan(run, "--term", "ignore", grace_s=0.5)
    call("cancel", attempt.path)
    assert attempt.json("exit.json")["reason"] == "cancel+kill" and gone(started["pid"])


def test_kill_9_of_both_is_lost_and_reaped_once(run):
    attempt, started = orphan(run, "--events", "2", "--torn", "--away")
    assert call("reap", attempt.path).json["reaped"] is False  # it lives
    os.kill(started["pid"], signal.SIGKILL)
    attempt.state_is("lost:no-exit-file")
    reapers = [
        subprocess.Popen([PYTHON, str(AGENT), "reap", str(attempt.path)], stdout=subprocess.PIPE) for _ in range(4)
    ]
    run.processes += reapers
    outs = [json.loads(reaper.communicate(timeout=120)[0]) for reaper in reapers]
    assert sum(out["reaped"] for out in outs) == 1 and all(out["state"] == "exited" for out in outs)
    assert call("reap", attempt.path).json["reaped"] is False
    [(number, reason)] = run.finished()
    assert number == 1 and reason["kind"] == "lost" and attempt.json("exit.json")["reason"] == "lost"
    assert [e["seq"] for e in run.events()] == [1, 2, 3]  # the torn line carried 99 and was never whole
    assert all(gone(pid) for pid in lines(run.path / "helpers"))


@pytest.mark.parametrize("outcome, kind", [("done", "done"), ("nan-loss", "failed")])
def test_an_orphan_that_ended_by_itself_is_believed(run, outcome, kind):
    attempt, started = orphan(run, "--outcome", json.dumps({"v": 1, "code": outcome, "message": "m"}))
    os.kill(started["pid"], signal.SIGKILL)
    attempt.state_is("lost:no-exit-file")
    assert call("reap", attempt.path).json["reaped"] is True
    assert run.finished()[0][1]["kind"] == kind


def test_an_attempt_without_its_last_event_is_completed(run):
    attempt = run.attempt("--exit", "3")
    call("run", attempt.path)
    run.path.joinpath("journal.jsonl").unlink()  # as if the agent had died between exit.json and the journal
    assert call("reap", attempt.path).json["reaped"] is True
    assert run.finished()[0][1]["exit_code"] == 3


def test_fate_ties_the_training_to_its_agent(run):
    if sys.platform != "linux":
        pytest.skip("PDEATHSIG is Linux only")
    attempt = run.attempt("--sleep", "600", fate=True)
    call("run", attempt.path, "--detach")
    started = attempt.started()
    os.kill(started["agent_pid"], signal.SIGKILL)
    wait(lambda: gone(started["pid"]), "the end of the training")


def test_a_training_whose_agent_died_at_the_gate_never_begins(run):
    argv = ["/bin/sh", "-c", agent.GATE, "sh", "touch", str(run.path / "began")]
    gate = subprocess.Popen(argv, stdin=subprocess.PIPE)
    gate.stdin.close()
    assert gate.wait(60) != 0 and not (run.path / "began").exists()


# ---- identity


def test_a_reused_pid_is_not_signalled(run):
    victim = subprocess.Popen(["sleep", "600"], start_new_session=True)
    run.processes.append(victim)
    attempt, me = run.attempt(), agent.identity()
    started = {
        "nonce": attempt.nonce,
        "host": me["host"],
        "boot": me["boot"],
        "agent_pid": victim.pid,
        "agent_start": 1,
        "pid": victim.pid,
        "start": agent.process_start(victim.pid) - 1,
        "pgid": victim.pid,
    }
    agent.write_json(str(attempt.path), "started.json", started)
    assert call("cancel", attempt.path).json["state"] == "lost:no-exit-file"
    assert call("reap", attempt.path).json["reaped"] is True
    assert victim.poll() is None


KERNEL = agent.boot_id().partition("/")[0]


@pytest.mark.parametrize(
    "host, boot, reaped",
    [
        ("elsewhere", "other", False),  # a node of a cluster
        (socket.gethostname(), KERNEL + "/pid:[1]", False),  # another container, where the training may live
        (socket.gethostname(), "other/pid:[1]", True),  # this machine, before a restart
    ],
)
def test_another_boot_is_lost_and_not_signalled(run, host, boot, reaped):
    victim = subprocess.Popen(["sleep", "600"], start_new_session=True)
    run.processes.append(victim)
    attempt, start = run.attempt(), agent.process_start(victim.pid)
    started = {
        "nonce": attempt.nonce,
        "host": host,
        "boot": boot,
        "agent_pid": victim.pid,
        "agent_start": start,
        "pid": victim.pid,
        "start": start,
        "pgid": victim.pid,
    }
    agent.write_json(str(attempt.path), "started.json", started)
    assert call("cancel", attempt.path).json["state"] == "lost:reboot-or-other-host"
    answer = call("reap", attempt.path)
    if not reaped:
        assert answer.code == 1 and host in answer.err and not attempt.json("exit.json")
        answer = call("reap", attempt.path, "--gone")
    assert answer.json["reaped"] is True and run.finished()[0][1]["kind"] == "lost"
    assert victim.poll() is None


def test_a_beating_heart_on_another_host_is_running(run):
    attempt = run.attempt("--sleep", "600")
    call("run", attempt.path, "--detach")
    started = attempt.started()
    agent.write_json(str(attempt.path), "started.json", {**started, "boot": "other", "host": "elsewhere"})
    assert attempt.state() == "running"
    agent.write_json(str(attempt.path), "started.json", started)


def test_a_zombie_is_gone():
    child = subprocess.Popen(["true"])
    wait(lambda: agent.process_start(child.pid) is None, "the zombie to count as gone")
    os.kill(child.pid, 0)  # the system still knows the number
    child.wait()


def test_start_times_without_proc(monkeypatch):
    """As on macOS: from `ps`, the same whatever time zone the caller has."""
    if not shutil.which("ps"):
        pytest.skip("no ps here")
    exists = os.path.exists
    monkeypatch.setattr(agent.os.path, "exists", lambda path: path != "/proc/self/stat" and exists(path))
    child = subprocess.Popen(["sleep", "600"])
    start = agent.process_start(child.pid)
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert isinstance(start, str) and agent.alive(child.pid, start) and not agent.alive(child.pid, start + "x")
    child.kill()
    wait(lambda: agent.process_start(child.pid) is None, "the zombie to count as gone")
    child.wait()
    assert agent.process_start(child.pid) is None


# ---- attempts of one run


def test_a_second_attempt_fences_the_first(run):
    first = run.attempt("--sleep", "600", "--term", "ignore", "--events", "2", grace_s=600)
    second = run.attempt("--events", "2", "--torn")
    call("run", first.path, "--detach")
    started = first.started()
    call("run", second.path, "--detach")
    second.exited()
    assert gone(started["pid"]) and first.json("exit.json")["reason"] == "fenced+kill"
    wait(lambda: len(run.finished()) == 2, "both last events")
    assert run.finished() == [(1, {"kind": "cancelled"}), (2, {"kind": "done"})]
    assert [e["seq"] for e in run.events()] == [1, 2, 3, 4, 5, 6]
    assert [e["attempt"] for e in run.events()] == [1, 1, 1, 2, 2, 2]
    assert run.path.joinpath("epoch").read_text().strip() == "2"


def test_a_new_attempt_ends_the_orphan_of_the_last(run):
    first, started = orphan(run, "--term", "ignore", "--events", "1", grace_s=600)
    assert call("run", run.attempt("--events", "1").path).code == 0
    assert gone(started["pid"]) and first.json("exit.json")["reason"] == "fenced+kill"
    assert [(e["seq"], e["attempt"]) for e in run.events()] == [(1, 1), (2, 1), (3, 2), (4, 2)]


def test_nothing_starts_next_to_an_attempt_that_does_not_stop(run, monkeypatch):
    attempt = run.attempt("--sleep", "600")
    call("run", attempt.path, "--detach")
    started = attempt.started()
    os.kill(started["agent_pid"], signal.SIGSTOP)  # alive, and deaf to the epoch
    monkeypatch.setattr(agent, "SETTLE_S", 0.3)
    with pytest.raises(agent.AgentError, match="still runs"):
        agent.settle(str(attempt.path))


def test_a_late_older_attempt_does_not_start(run):
    older, newer = run.attempt("--sleep", "600"), run.attempt("--exit", "3")
    call("run", newer.path)
    assert call("run", older.path).code != 0
    assert older.json("exit.json")["reason"] == "fenced" and len(starts(run)) == 1
    assert [number for number, _ in run.finished()] == [2]


def test_nothing_starts_after_a_success(run):
    for _ in range(3):
        assert call("run", run.attempt().path).code == 0
    assert [a.json("exit.json")["reason"] for a in run.attempts] == ["exit", "already-done", "already-done"]
    assert len(starts(run)) == 1 and [reason["kind"] for _, reason in run.finished()] == ["done"] * 3


def test_a_cancelled_attempt_with_code_0_is_no_success(run):
    first = run.attempt("--sleep", "600", "--term", "polite", grace_s=120)
    call("run", first.path, "--detach")
    first.started()
    call("cancel", first.path)
    assert first.exited()["code"] == 0
    assert call("run", run.attempt().path).code == 0
    assert len(starts(run)) == 2


# ---- the command line


def test_read(run):
    file = run.path / "f"
    file.write_bytes(b"0123456789")
    for words, out, place in (
        ((file, 0), b"0123456789", 10),
        ((file, 4, 3), b"456", 7),
        ((file, 10), b"", 10),
        ((file, 12), b"", 12),
    ):
        answer = call("read", *words)
        assert (answer.code, answer.out, json.loads(answer.err)) == (0, out, {"size": 10, "next": place})
    assert json.loads(call("read", run.path / "later", 0).err) == {"size": 0, "next": 0}
    answer = call("read", "/no/such/folder/f", 0)
    assert answer.code == 1 and "no such folder" in answer.err


@pytest.mark.parametrize(
    "words",
    [(), ("dance",), ("run",), ("run", "/no/such/attempt"), ("read", "f"), ("read", "f", "-1"), ("read", "f", "x")],
)
def test_bad_usage_is_one_sentence(words):
    answer = call(*words)
    assert answer.code == 2 and answer.out == b"" and answer.err.count("\n") == 1 and "--help" in answer.err


def test_help():
    for verb in ("run", "probe", "cancel", "reap", "read"):
        assert verb.encode() in call("--help").out and call(verb, "--help").code == 0


@pytest.mark.parametrize(
    "change, word",
    [
        ({"v": 2}, "update Seesaw"),
        ({"argv": []}, "argv"),
        ({"nonce": ""}, "nonce"),
        ({"epoch": None}, "epoch"),
        ({"grace_s": "x"}, "grace_s"),
    ],
)
def test_a_bad_spec_is_refused_by_name(run, change, word):
    attempt = run.attempt(**change)
    answer = call("run", attempt.path, "--detach")
    assert answer.code == 1 and word in answer.err and attempt.state() == "absent"


def test_a_missing_spec(run):
    attempt = run.attempt()
    attempt.path.joinpath("spec.json").unlink()
    assert "spec.json" in call("run", attempt.path).err
    assert attempt.state() == "absent"


def test_works_alone_with_python_3_8_syntax(run, tmp_path):
    source = AGENT.read_text(encoding="utf-8")
    tree = ast.parse(source, feature_version=(3, 8))
    modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert modules <= set(sys.stdlib_module_names)
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    lone = tmp_path / "elsewhere.py"
    lone.write_text(source, encoding="utf-8")
    attempt = run.attempt()
    assert subprocess.run([PYTHON, "-I", str(lone), "run", str(attempt.path)], timeout=120).returncode == 0
