"""What a Slurm job starts: which attempt it takes, and when it starts nothing. The agents are real; Slurm is not."""

import ast
import os
import signal
import subprocess
from pathlib import Path

import pytest
from fakes.attempts import PYTHON, RUNNER, Run, wait
from seesaw_runner import agent, slurm_job

JOB = RUNNER / "seesaw_runner" / "slurm_job.py"


@pytest.fixture
def run(tmp_path):
    run = Run(tmp_path / "run")
    yield run
    for folder in run.path.glob("attempt-*"):
        started = agent.read_json(str(folder), "started.json")
        if started and agent.alive(started["agent_pid"], started["agent_start"]):
            os.kill(started["agent_pid"], signal.SIGKILL)
        agent.kill_marked((agent.read_json(str(folder), "spec.json") or {}).get("nonce", "none"))
    run.close()


def environ(number, restarts=0, **more):
    return {**os.environ, "SLURM_JOB_ID": str(number), "SLURM_RESTART_COUNT": str(restarts), **more}


def start(run, number, restarts=0, attempt=1, **more):
    process = subprocess.Popen(
        [PYTHON, str(JOB), str(run.path), str(attempt)],
        env=environ(number, restarts, **more),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    run.processes.append(process)
    return process


def finish(process):
    out, err = process.communicate(timeout=120)
    return process.returncode, out.decode(), err.decode()


def folders(run):
    return sorted(folder.name for folder in run.path.glob("attempt-*"))


def read(run, number, name):
    return agent.read_json(str(run.path / f"attempt-{number:04d}"), name)


def test_takes_the_attempt_it_was_submitted_for(run):
    attempt = run.attempt("--events", "2", fate=True)
    assert finish(start(run, 7)) == (0, "", "")
    assert attempt.json("job.json")["id"] == "7" and attempt.exited()["finished"] == {"kind": "done"}
    assert attempt.json("started.json")["job"] == {"SLURM_JOB_ID": "7", "SLURM_RESTART_COUNT": "0"}


def test_a_second_submission_of_the_same_attempt_starts_nothing(run):
    attempt = run.attempt("--sleep", "600")
    first = start(run, 7)
    attempt.started()
    code, out, _ = finish(start(run, 8))
    assert code == 0 and "belongs to job 7" in out and folders(run) == ["attempt-0001"]
    first.terminate()
    assert finish(first)[0] != 0 and attempt.exited()["reason"] == "signal:SIGTERM"
    code, out, _ = finish(start(run, 8))
    assert code == 0 and "belongs to job 7" in out and folders(run) == ["attempt-0001"], "not after its end either"


def test_started_again_goes_on_as_the_next_attempt_with_a_nonce_of_its_kin(run):
    first = run.attempt("--sleep", "600")
    process = start(run, 7)
    first.started()
    process.send_signal(signal.SIGUSR1)  # the warning before the limit, or a preemption
    finish(process)
    second = start(run, 7, restarts=1)
    wait(lambda: read(run, 2, "started.json"), "the second start")
    assert read(run, 2, "spec.json")["nonce"] == f"{first.nonce}.2" and read(run, 2, "spec.json")["epoch"] == 2
    second.terminate()
    finish(second)
    third = start(run, 7, restarts=2)
    wait(lambda: read(run, 3, "started.json"), "the third start")
    assert read(run, 3, "spec.json")["nonce"] == f"{first.nonce}.3" and agent.read_number(str(run.path), "epoch") == 3
    third.terminate()
    finish(third)
    assert [number for number, _ in run.finished()] == [1, 2, 3]


def test_what_is_done_paused_or_cancelled_is_not_started_again(run):
    first = run.attempt("--events", "1")
    assert finish(start(run, 7))[0] == 0
    code, out, _ = finish(start(run, 7, restarts=1))
    assert (code, folders(run)) == (0, ["attempt-0001"]) and "is done: nothing is started again" in out
    ended = first.exited()
    for reason, finished in (
        ("exit", {"kind": "paused", "flag": "math.id", "step": 3}),
        ("cancel", {"kind": "cancelled"}),
    ):
        agent.write_json(str(first.path), "exit.json", {**ended, "reason": reason, "finished": finished})
        code, out, _ = finish(start(run, 7, restarts=1))
        assert (code, folders(run)) == (0, ["attempt-0001"]) and f"is {finished['kind']}" in out


def test_a_stop_that_was_asked_for_holds_although_the_node_died_before_it_could_answer(run):
    first = run.attempt("--sleep", "600", fate=True)
    process = start(run, 7)
    started = first.started()
    (first.path / "cancel").touch()
    os.kill(started["agent_pid"], signal.SIGKILL)
    finish(process)
    wait(lambda: not agent.alive(started["pid"], started["start"]), "the training's end")
    if not first.json("exit.json"):
        code, out, _ = finish(start(run, 7, restarts=1))
        assert (code, folders(run)) == (0, ["attempt-0001"]) and "is cancelled" in out
        assert first.json("exit.json")["reason"] == "lost" and run.finished()[0][0] == 1


def test_a_lost_node_whose_training_lives_on_is_fenced(run):
    first = run.attempt("--sleep", "600")
    process = start(run, 7)
    started = first.started()
    second = start(run, 7, restarts=1)  # Slurm has given the node up, and everything on it runs on
    wait(lambda: read(run, 2, "started.json"), "the second start")
    assert not agent.alive(started["pid"], started["start"]), "never two trainings at once"
    finish(process)
    assert first.exited()["reason"].startswith("fenced")
    second.terminate()
    finish(second)
    assert [number for number, _ in run.finished()] == [1, 2]


def test_a_newer_attempt_of_somebody_else_wins(run):
    first = run.attempt("--sleep", "600")
    process = start(run, 7)
    first.started()
    process.terminate()
    finish(process)
    second = run.attempt("--events", "1")  # resumed by hand while Slurm still held the old job back
    code, out, _ = finish(start(run, 7, restarts=1))
    assert code == 0 and "attempt 2 is newer" in out and not second.json("claim")
    assert finish(start(run, 9, attempt=2))[0] == 0 and second.exited()["finished"] == {"kind": "done"}
    code, out, _ = finish(start(run, 7, restarts=2))
    assert code == 0 and folders(run) == ["attempt-0001", "attempt-0002"]


def test_killed_between_its_mark_and_the_agents_claim(run):
    attempt = run.attempt("--events", "1")
    agent.write_json(str(attempt.path), "job.json", {"v": 1, "id": "7"})
    assert finish(start(run, 7, restarts=1))[0] == 0
    assert attempt.exited()["finished"] == {"kind": "done"} and folders(run) == ["attempt-0001"]


def test_several_nodes_meet_on_the_first(run):
    variables = {"SLURM_JOB_ID": "41234", "SLURM_JOB_NUM_NODES": "2", "SLURM_RESTART_COUNT": "1"}
    slurm_job.meet_on_first_node(variables)
    assert variables["PET_RDZV_ENDPOINT"].endswith(":11234") and variables["PET_RDZV_ID"] == "41234.1"
    alone = {"SLURM_JOB_ID": "41234", "SLURM_JOB_NUM_NODES": "1"}
    slurm_job.meet_on_first_node(alone)
    assert "PET_RDZV_ENDPOINT" not in alone


def test_says_what_is_wrong(run, tmp_path):
    run.attempt("--events", "1")
    (run.path / "attempt-0001" / "spec.json").write_text("torn")
    code, _, err = finish(start(run, 7))
    assert code == 1 and "no readable spec.json" in err
    done = subprocess.run(
        [PYTHON, str(JOB), str(run.path), "1"],
        env={k: v for k, v in os.environ.items() if k != "SLURM_JOB_ID"},
        capture_output=True,
    )
    assert done.returncode == 2 and b"within a Slurm job" in done.stderr
    code, _, err = finish(start(run, 7, attempt=5))
    assert code == 1 and "attempt-0005" in err


def test_runs_on_the_oldest_python_we_support():
    ast.parse(Path(JOB).read_text(), feature_version=(3, 8))


def task(listed, array, number, raw, restarts=0, attempt=1, **more):
    """The process of one task of an array, whose list is this file."""
    return subprocess.Popen(
        [PYTHON, str(JOB), "--array", str(listed), str(attempt)],
        env=environ(raw, restarts, SLURM_ARRAY_JOB_ID=str(array), SLURM_ARRAY_TASK_ID=str(number), **more),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_a_task_of_an_array_runs_the_run_that_its_list_names_and_prints_there(run, tmp_path):
    first = run.attempt("--events", "2", fate=True)
    listed = tmp_path / "runs.json"
    agent.write_json(str(tmp_path), "runs.json", {"v": 1, "runs": [str(tmp_path / "another"), str(run.path)]})
    assert finish(task(listed, 40, 1, 42)) == (0, "", "")
    assert first.json("job.json")["id"] == "40_1" and first.exited()["finished"] == {"kind": "done"}
    assert first.json("started.json")["job"] == {
        "SLURM_JOB_ID": "42",
        "SLURM_RESTART_COUNT": "0",
        "SLURM_ARRAY_TASK_ID": "1",
    }
    # Slurm starts it again under the same number, with whatever id of its own.
    assert finish(task(listed, 40, 1, 43, restarts=1)) == (0, "", "")
    assert "attempt 1 is done: nothing is started again" in (run.path / "slurm-40_1.out").read_text()
    # The array was submitted a second time.
    assert finish(task(listed, 50, 1, 51))[0] == 0
    assert "belongs to job 40_1" in (run.path / "slurm-50_1.out").read_text() and folders(run) == ["attempt-0001"]


def test_a_task_started_again_goes_on_as_its_own_next_attempt(run, tmp_path):
    first = run.attempt("--sleep", "600", fate=True)
    agent.write_json(str(tmp_path), "runs.json", {"v": 1, "runs": [str(run.path)]})
    before = task(tmp_path / "runs.json", 40, 0, 40)
    run.processes.append(before)
    first.started()
    before.send_signal(signal.SIGUSR1)
    finish(before)
    after = task(tmp_path / "runs.json", 40, 0, 40, restarts=1)
    run.processes.append(after)
    wait(lambda: read(run, 2, "started.json"), "the second start")
    assert read(run, 2, "job.json")["id"] == "40_0" and read(run, 2, "spec.json")["nonce"] == f"{first.nonce}.2"
    after.terminate()
    finish(after)


@pytest.mark.parametrize(
    ("listed", "number", "says"),
    [
        ('{"v": 1, "runs": ["/x"]}', 1, "has 1 runs, but this is task 1"),
        ('{"v": 1}', 0, "does not say which task is which run"),
        ('{"v": 1, "runs": "/x"}', 0, "does not say which task is which run"),
        ("{", 0, "does not say which task is which run"),
        ('{"v": 1, "runs": ["/x"]}', "", "is no task of one"),
    ],
)
def test_a_list_that_names_no_run_is_said_in_one_sentence(tmp_path, listed, number, says):
    path = tmp_path / "runs.json"
    path.write_text(listed)
    code, out, err = finish(task(path, 40, number, 41))
    assert code == 1 and says in err and "Traceback" not in err + out
