"""The entry point of Ray's jobs, on this machine: packages are folders on PYTHONPATH, as Ray lays them."""

import base64
import hashlib
import json
import os
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from seesaw_runner import ray_job

HERE = Path(ray_job.__file__)


def package(root: Path, number: int, files: dict) -> Path:
    folder = root / f"_ray_pkg_{number}"
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def run(verb: str, packages: list, **env) -> subprocess.CompletedProcess:
    everything = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, packages)), **env}
    done = subprocess.run([sys.executable, "-u", HERE, verb], env=everything, capture_output=True, timeout=120)
    done.stdout.decode("ascii")  # one byte that is none, and Ray gives out no log any more
    return done


def frames(done: subprocess.CompletedProcess) -> list:
    lines = [line for line in done.stdout.decode().splitlines() if line.startswith("@seesaw ")]
    return [json.loads(line[8:]) for line in lines]


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def job(tmp_path: Path, argv: list, inputs: list) -> dict:
    spec = {"v": 1, "nonce": "a" * 12, "argv": argv, "cwd": "", "epoch": 1, "fate": True, "grace_s": 5, "beat_s": 0.2}
    target = tmp_path / "there"
    return {
        "v": 1,
        "runner": str(target / "runner/abc"),
        "run": str(target / "runs/r-1"),
        "work": str(target / "work/r-1"),
        "attempt": "attempt-0001",
        "inputs": inputs,
        "files": {"run.json": '{"id": "r-1"}\n', "spec.json": json.dumps(spec)},
    }


def carried(tmp_path: Path, described: dict) -> Path:
    return package(tmp_path, 1, {"seesaw-job.json": json.dumps(described).encode()})


def test_an_attempt_runs_to_its_end_from_packages(tmp_path):
    data, weights = b"rows\n", b"weights"
    entries = {digest(data): data, digest(weights): weights}
    there = tmp_path / "there"
    file = {"kind": "file", "remote": str(there / "objects/x/data"), "package": "_ray_pkg_2"}
    model = {"kind": "model", "remote": str(there / "models/m"), "package": "_ray_pkg_2"}
    inputs = [
        {**file, "files": [["", digest(data), digest(data)]]},
        {**model, "files": [["deep/w", digest(weights), digest(weights)]]},
    ]
    program = "import os,sys;sys.stdout.buffer.write(b'\\xff\\n'+os.environ.get('PYTHONPATH','none').encode())"
    packages = [
        carried(tmp_path, job(tmp_path, [sys.executable, "-c", program], inputs)),
        package(tmp_path, 2, entries),
    ]
    done = run("train", packages)
    assert (done.returncode, frames(done)) == (0, [])
    assert (there / "objects/x/data").read_bytes() == data
    assert (there / "models/m/deep/w").read_bytes() == weights
    attempt = there / "runs/r-1/attempt-0001"
    assert json.loads((attempt / "exit.json").read_text())["finished"] == {"kind": "done"}
    # Ray's packages are not what the training imports from, and its output is in its own log.
    assert (there / "runs/r-1/out.log").read_bytes() == b"\xff\nnone"
    assert (there / "runner/abc/seesaw_runner/agent.py").is_file()
    again = run("train", packages)
    assert again.returncode == 17, "an attempt starts once"


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ([["", "entry", "0" * 64]], "not what was sent"),
        ([["../../out", "entry", digest(b"x")]], "no name of a file"),
        ([["/etc/out", "entry", digest(b"x")]], "no name of a file"),
    ],
)
def test_what_came_wrong_is_refused_and_nothing_is_there(tmp_path, files, words):
    remote = tmp_path / "there/objects/x"
    inputs = [{"kind": "model", "remote": str(remote), "package": "_ray_pkg_2", "files": files}]
    packages = [carried(tmp_path, job(tmp_path, ["true"], inputs)), package(tmp_path, 2, {"entry": b"x"})]
    done = run("train", packages)
    (error,) = frames(done)
    assert (done.returncode, error["kind"], words in error["message"]) == (3, "error", True)
    assert not remote.exists()
    assert not list((tmp_path / "there/objects").glob("*"))


def test_what_no_package_holds_has_to_be_there(tmp_path):
    inputs = [{"kind": "model", "remote": str(tmp_path / "there/models/m"), "package": None, "files": []}]
    packages = [carried(tmp_path, job(tmp_path, ["true"], inputs))]
    assert "copy it there" in frames(run("train", packages))[0]["message"]
    (tmp_path / "there/models/m").mkdir(parents=True)
    assert frames(run("train", packages)) == []


def test_what_it_goes_on_from_has_to_be_there(tmp_path):
    """On another node than the earlier attempt's, a disk of its own would let it begin from nothing."""
    described = {**job(tmp_path, ["true"], []), "needs": [str(tmp_path / "there/runs/r-1")], "attempt": "attempt-0002"}
    done = run("train", [carried(tmp_path, described)])
    (error,) = frames(done)
    assert (done.returncode, error["reason"], "would not go on" in error["message"]) == (3, "no-run", True)
    assert not (tmp_path / "there").exists()
    (tmp_path / "there/runs/r-1").mkdir(parents=True)
    assert frames(run("train", [carried(tmp_path, described)])) == []


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    described = {**job(tmp_path, ["true"], []), "runner": "/proc/seesaw/runner"}
    (error,) = frames(run("train", [carried(tmp_path, described)]))
    assert (error["reason"], "/proc" in error["message"]) == ("not-writable", True)


def packed(request: dict) -> str:
    return base64.b64encode(zlib.compress(json.dumps(request).encode())).decode()


def test_a_question_in_the_environment_or_in_a_package(tmp_path):
    request = {"verb": "locate", "dir": str(tmp_path / "é"), "python": "python3"}
    for done in (
        run("station", [], SEESAW_REQUEST=packed(request)),
        run("station", [package(tmp_path, 3, {"seesaw-request.json": json.dumps(request).encode()})]),
    ):
        (answer,) = frames(done)
        assert (answer["kind"], answer["dir"]) == ("result", request["dir"])


def test_a_long_answer_stops_and_says_that_there_is_more(tmp_path, monkeypatch, capfd):
    (tmp_path / "file").write_bytes(os.urandom(1 << 20))
    monkeypatch.setenv("SEESAW_REQUEST", packed({"verb": "get", "path": str(tmp_path / "file")}))
    monkeypatch.setattr(ray_job, "LIMIT", 500_000)
    assert ray_job.station() == 0
    found = [json.loads(line[8:]) for line in capfd.readouterr().out.splitlines()]
    assert [one["kind"] for one in found] == ["piece", "piece", "more"]
