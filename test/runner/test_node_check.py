"""The check that a job makes on its own machines before it trains, asked of every Python that is found here."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fakes.attempts import PYTHON, RUNNER, Run
from seesaw_runner import agent, node_check

#: Interpreters without our packages: the system's, and old ones where pyenv has them.
BARE = Path("/usr/bin/python3")
OLD = sorted(Path.home().glob(".pyenv/versions/[23].*/bin/python"))


@pytest.fixture
def run(tmp_path):
    run = Run(tmp_path / "run")
    (run.path / "run.json").write_text(json.dumps({"stage": "math", "target": {}}))
    yield run
    run.close()


def asked(python, folder, **env):
    done = subprocess.run(
        [str(python), "-m", "seesaw_runner.node_check", str(folder)],
        env={**os.environ, "PYTHONPATH": str(RUNNER), "PYTHONDONTWRITEBYTECODE": "1", **env},
        stdout=subprocess.PIPE,
        timeout=60,
    )
    (line,) = [line for line in done.stdout.decode().splitlines() if line.startswith(node_check.MARK)]
    return done.returncode, json.loads(line[len(node_check.MARK) :])


def test_a_complete_python_has_no_problem(run):
    assert asked(sys.executable, run.path, SLURMD_NODENAME="n7") == (0, {"node": "n7", "problem": None})


@pytest.mark.skipif(not BARE.exists(), reason="no /usr/bin/python3")
def test_what_lacks_is_named_with_the_machine_and_the_command(run):
    code, said = asked(BARE, run.path, SLURMD_NODENAME="n7")
    assert code == 1
    assert said["problem"].startswith("On n7, /usr/bin/python3 (Python 3.")
    assert " lacks torch, transformers, trl, accelerate, datasets and safetensors. " in said["problem"]
    assert "Run `/usr/bin/python3 -m pip install 'torch>=2.6' 'transformers>=5.0'" in said["problem"]
    assert said["problem"].endswith(", or name another Python with `python:` of this target.")


def test_only_what_this_stage_needs_is_asked_for(run, monkeypatch):
    from seesaw_runner.preflight import packages

    monkeypatch.setattr(packages, "PACKAGES", {"vllm": "0.8", "torch": "999"})
    monkeypatch.setenv("SLURMD_NODENAME", "n7")
    (run.path / "run.json").write_text(json.dumps({"args": {"use_vllm": True}}))
    said = node_check.problem(str(run.path))
    assert " lacks vllm; torch " in said
    assert "is too old, the runner needs 999. Run `" in said and ", or leave args.use_vllm out" in said


@pytest.mark.parametrize("python", OLD, ids=lambda python: python.parents[1].name)
def test_an_old_python_says_so_itself(run, python):
    version = tuple(map(int, python.parents[1].name.split(".")))
    _, said = asked(python, run.path, SLURMD_NODENAME="n7")
    too_old = f"is Python {python.parents[1].name}, but 3.10 or newer is needed: name another Python"
    assert (too_old in said["problem"]) == (version < (3, 10))


def attempt_of(run, *check):
    attempt = run.attempt("--events", "2", fate=True, check=list(check))
    code = subprocess.call([PYTHON, str(RUNNER / "seesaw_runner" / "agent.py"), "run", str(attempt.path)])
    return code, attempt.exited()["finished"], (run.path / "starts").exists()


def test_the_agent_starts_nothing_where_the_check_has_a_problem(run):
    words = f'print({node_check.MARK!r} + \'{{"problem": "On n7, no torch."}}\'); raise SystemExit(1)'
    finished = {"kind": "failed", "code": "preflight", "message": "On n7, no torch."}
    assert attempt_of(run, sys.executable, "-c", words) == (1, finished, False)
    ends = [json.loads(line) for line in (run.path / "journal.jsonl").read_text().splitlines()]
    assert [(end["type"], end["reason"]) for end in ends] == [("run.finished", finished)]


def test_several_machines_are_one_sentence(run):
    words = "\n".join(node_check.MARK + json.dumps({"problem": said}) for said in ("On n2, b.", None, "On n1, a."))
    _, finished, _ = attempt_of(run, sys.executable, "-c", f"print({words!r})")
    assert finished["message"] == "On n1, a. 1 more of the job's machines cannot run it either."


def test_a_python_that_is_not_there_is_named(run, monkeypatch):
    monkeypatch.setenv("SLURMD_NODENAME", "n7")
    _, finished, started = attempt_of(run, "/no/such/python", "-m", "x")
    assert finished["message"].startswith("On n7, /no/such/python cannot be used: No such file")
    assert finished["code"] == "preflight" and not started


def test_a_check_that_says_nothing_stops_nothing(run):
    assert attempt_of(run, sys.executable, "-c", "raise SystemExit(9)") == (0, {"kind": "done"}, True)


def test_an_odd_check_is_refused(run):
    attempt = run.attempt(check="python")
    with pytest.raises(agent.AgentError, match="`check`"):
        agent.load_spec(str(attempt.path))
