"""A disk quota that is used up while the disk itself has room: told as such, by everything that writes a run."""

import errno
import hashlib
import json
import os
import shutil
import subprocess
import time

import pytest
from fakes.attempts import Run, wait
from safetensors.torch import save_file
from seesaw_runner import agent, run_folder, station
from seesaw_runner.journal import Journal, JournalError
from seesaw_runner.preflight import space
from seesaw_runner.scoring.trace import TraceRow, write_trace

PROGRAMS = ("mkfs.btrfs", "btrfs", "mount")
ALLOWED = 8 << 20


def used_up(folder):
    """Takes what the quota still allows."""
    for size in (65536, 4096):
        try:
            with open(folder / "ballast", "ab", buffering=0) as handle:
                while True:
                    handle.write(b"x" * size)
        except OSError as error:
            assert error.errno == errno.EDQUOT
    assert shutil.disk_usage(folder).free > 8 * ALLOWED


@pytest.fixture(scope="module")
def disk(tmp_path_factory):
    """A disk of 256 MB on which 8 MB may be used: a real quota of the kernel's, on a file of its own."""
    top = tmp_path_factory.mktemp("quota")
    image, folder = top / "image", top / "disk"
    folder.mkdir()
    with open(image, "wb") as handle:
        handle.truncate(256 << 20)
    try:
        for argv in (
            ["mkfs.btrfs", "-q", str(image)],
            ["mount", "-o", "loop", str(image), str(folder)],
            ["btrfs", "quota", "enable", str(folder)],
            ["btrfs", "qgroup", "limit", str(ALLOWED), str(folder)],
        ):
            subprocess.run(argv, check=True, capture_output=True, timeout=60)
    except (OSError, subprocess.CalledProcessError) as error:
        subprocess.run(["umount", "--lazy", str(folder)], capture_output=True)
        pytest.skip(f"no disk with a quota can be made here (btrfs-progs, root): {error}")
    yield folder
    for _ in range(100):  # a process that was killed may hold it for a moment yet
        if subprocess.run(["umount", str(folder)], capture_output=True).returncode == 0:
            return
        time.sleep(0.1)
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def place(disk, request):
    folder = disk / request.node.name
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)
    (disk / "ballast").unlink(missing_ok=True)
    subprocess.run(["btrfs", "filesystem", "sync", str(disk)], check=True, capture_output=True)


def tells_of_the_quota(sentence):
    assert "quota" in sentence and "quota -s" in sentence and "disk is full" not in sentence.lower(), sentence
    return True


def test_the_station_tells_it_for_folder_file_and_upload(place, disk, monkeypatch):
    monkeypatch.setattr(station, "send", lambda frame: None)
    data = os.urandom(ALLOWED)
    monkeypatch.setattr(station, "incoming", lambda left: iter([data]))
    wanted = hashlib.sha256(data).hexdigest()
    with pytest.raises(station.Trouble) as caught:
        station.verb_put({"path": str(place / "data"), "size": len(data), "sha256": wanted, "client": "a"})
    assert caught.value.answer["code"] == "quota" and caught.value.answer["reason"] == "not-writable"
    used_up(disk)
    for verb, request in (
        (station.verb_locate, {"dir": str(place / "new")}),
        (station.verb_write, {"items": [{"path": str(place / "run.json"), "text": "x" * 100_000}]}),
    ):
        with pytest.raises(station.Trouble) as caught:
            verb(request)
        assert caught.value.answer["code"] == "quota", verb
    assert station.verb_check({"dir": str(place), "packages": []})["trouble"]["code"] == "quota"
    assert [path.name for path in place.rglob("*.tmp")] == []


def test_a_checkpoint_a_trace_and_the_journal(place, disk):
    import torch

    journal = Journal(place / "journal.jsonl", attempt=1)
    rows = [TraceRow(line=k, hash=f"{k:016x}", prompt="p" * 40_000, reference="r", tags=[]) for k in range(400)]
    with pytest.raises(OSError) as told:
        write_trace(place / "t.trace", {}, rows, ["answer"], {})
    assert tells_of_the_quota(run_folder.describe(told.value)[1]) and not list(place.glob("*trace*"))
    with pytest.raises(Exception) as told:
        save_file({"w": torch.zeros(ALLOWED)}, place / "model.safetensors")
    code, sentence, _ = run_folder.describe(told.value)
    assert code == "disk-full" and tells_of_the_quota(sentence)
    used_up(disk)
    with pytest.raises(JournalError) as told:
        for step in range(1000):
            journal.append("warning", code="x", message="m" * 5000, step=step)
    assert told.value.code == "disk-full" and tells_of_the_quota(str(told.value))
    journal.close()
    [finding] = space._writable(place, place / "run")
    assert finding.code == "disk-full" and "quota -s" in finding.fix


def test_an_attempt_that_could_not_say_so(place, disk):
    run = Run(place / "run")
    attempt = run.attempt("--sleep", "4", "--exit", "1", patience_s=100)
    process = run.start(attempt)
    started = attempt.started()
    used_up(disk)
    wait(lambda: agent.process_start(started["pid"]) is None, "the end of the training")
    time.sleep(2)  # the agent has found that nothing can be written, and goes on trying
    (disk / "ballast").unlink()
    subprocess.run(["btrfs", "filesystem", "sync", str(disk)], check=True)
    assert process.wait(120) == 1
    [(_, reason)] = run.finished()
    assert (reason["kind"], reason["code"]) == ("failed", "disk-full") and tells_of_the_quota(reason["message"])
    run.close()


def test_a_library_s_own_words():
    for said in ("I/O error: Disk quota exceeded (os error 122)", "Disk quota exceeded"):
        assert tells_of_the_quota(run_folder.describe(RuntimeError(said))[1])
    assert "The disk is full" in run_folder.describe(RuntimeError("No space left on device (os error 28)"))[1]
    assert json.dumps(run_folder.describe(ValueError("no")))


def test_what_nobody_needs_can_be_removed_when_nothing_more_can_be_written(place, disk, monkeypatch):
    monkeypatch.setattr(station, "send", lambda frame: None)
    old = place / "objects" / "abc"
    old.mkdir(parents=True)
    (old / "data.jsonl").write_bytes(b"x" * 100_000)
    for path in (old / "data.jsonl", old):
        os.utime(path, (1e9, 1e9))
    used_up(disk)
    asked = {"dir": str(place), "runs": []}
    [item] = station.verb_survey(asked)["items"]
    assert (item["kind"], item["name"], item["bytes"]) == ("objects", "abc", 100_000)
    cleared = station.verb_clear({**asked, "items": [item]})
    assert cleared["failed"] == [] and not old.exists()
