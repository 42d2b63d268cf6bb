"""The journal: what is written is whole, in order and readable, whatever happened before."""

import errno
import json
import math
import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from seesaw_runner import wire_numbers as numbers
from seesaw_runner.journal import Journal, JournalError, JournalVersionError, NullJournal, read_events

RUNNER = Path(__file__).resolve().parents[2] / "runner"
FIXTURES = sorted((Path(__file__).resolve().parents[1] / "fixtures" / "protocol" / "journal").glob("*.jsonl"))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "journal.jsonl"


def test_head_and_order(path):
    with Journal(path, 1, clock=lambda: 12.3456) as journal:
        assert journal.append("metric", step=1, values={"loss": 0.5}) == 1
        assert journal.append("warning", code="x", message="\u00e9\u2028", severity="info") == 2
    raw = path.read_bytes()
    assert raw.isascii() and raw.count(b"\n") == 2
    assert list(read_events(path))[0] == {
        "v": 1,
        "seq": 1,
        "t": 12.346,
        "attempt": 1,
        "type": "metric",
        "step": 1,
        "values": {"loss": 0.5},
    }
    assert list(read_events(path))[1]["message"] == "\u00e9\u2028"


def test_seq_goes_on_through_attempts(path):
    for attempt in (1, 2, 3):
        with Journal(path, attempt) as journal:
            journal.append("metric", step=1, values={})
            journal.append("metric", step=2, values={})
    assert [(e["seq"], e["attempt"]) for e in read_events(path)] == [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (6, 3)]


@pytest.mark.parametrize("tail", [b'{"v":1,"seq":9,"t"', b"\xff\xfe", b"x" * 200_000, b"null\n[1]\n{}\n", b"\0" * 4096])
def test_a_torn_tail_is_ended_and_kept(path, tail):
    with Journal(path, 1) as journal:
        journal.append("metric", step=1, values={})
    with open(path, "ab") as handle:
        handle.write(tail)
    with Journal(path, 2) as journal:
        assert journal.append("metric", step=2, values={}) == 2
    assert tail in path.read_bytes()
    assert [e["seq"] for e in read_events(path)] == [1, 2]


def test_a_whole_line_that_lacks_only_its_end_counts(path):
    path.write_bytes(b'{"v":1,"seq":7,"type":"metric"}')
    assert list(read_events(path)) == []  # it may still be being written
    with Journal(path, 2) as journal:
        assert journal.append("metric", step=2, values={}) == 8
    assert [e["seq"] for e in read_events(path)] == [7, 8]


def test_a_line_longer_than_the_first_look_back(path):
    with Journal(path, 1) as journal:
        journal.append("metric", step=1, values={"text": "x" * 300_000})
    with Journal(path, 2) as journal:
        assert journal.append("metric", step=2, values={}) == 2


def test_threads_do_not_mix_lines(path):
    with Journal(path, 1) as journal:

        def work():
            for step in range(200):
                journal.append("metric", step=step, values={"text": "x" * 500})

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [e["seq"] for e in read_events(path)] == list(range(1, 1601))


def test_non_finite_numbers(path):
    with Journal(path, 1) as journal:
        journal.append("metric", step=1, values={"a": math.nan, "b": math.inf, "c": [-math.inf, 1.5, True, None, "x"]})
    json.loads(path.read_text(), parse_constant=lambda name: pytest.fail(f"{name} on the wire"))
    [event] = read_events(path)
    assert event["values"] == {"a": "NaN", "b": "Infinity", "c": ["-Infinity", 1.5, True, None, "x"]}


def test_numbers_round_trip():
    for value in (0, -1, 1.5, 2**70, math.inf, -math.inf):
        assert numbers.decode(json.loads(json.dumps(numbers.encode(value)))) == value
    assert math.isnan(numbers.decode(numbers.encode(math.nan)))
    for value in (None, True, "1", "nan", [], {}):
        assert numbers.decode(value) is None
    with pytest.raises(TypeError, match="object"):
        numbers.encode({"a": object()})


def test_numbers_of_numpy_and_torch():
    numpy = pytest.importorskip("numpy")
    got = numbers.encode({"a": numpy.float32("nan"), "b": numpy.int64(3), "c": numpy.float64(0.5), "d": (1, 2)})
    assert json.dumps(got) == '{"a": "NaN", "b": 3, "c": 0.5, "d": [1, 2]}'


def test_unknown_types_and_newer_minor_are_read(path):
    path.write_text('{"v":1.4,"seq":1,"type":"of.tomorrow","x":1}\n{"v":"1.9","seq":2,"type":"metric"}\n')
    assert [e["type"] for e in read_events(path)] == ["of.tomorrow", "metric"]


def test_newer_major_is_refused(path):
    path.write_text('{"v":1,"seq":1,"type":"metric"}\n{"v":2,"seq":2,"type":"metric"}\n')
    with pytest.raises(JournalVersionError, match="update Seesaw"):
        list(read_events(path))


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda fixture: fixture.stem)
def test_fixture(fixture):
    """The journals that the TypeScript reader is tested with."""
    expected = json.loads(fixture.with_suffix(".expected.json").read_text(encoding="utf-8"))
    if expected.get("error") == "newer-schema":
        with pytest.raises(JournalVersionError):
            list(read_events(fixture))
        return
    events = list(read_events(fixture))
    assert max(event["seq"] for event in events) == expected["lastSeq"]
    if expected.get("reason"):
        assert events[-1]["reason"] == expected["reason"]


def test_fixtures_are_there():
    assert len(FIXTURES) >= 10


def test_a_missing_file_has_no_events(path):
    assert list(read_events(path)) == []


def test_the_head_belongs_to_the_journal(path):
    with Journal(path, 1) as journal, pytest.raises(ValueError, match="`seq`"):
        journal.append("metric", seq=5)
    assert path.read_bytes() == b""


def test_an_event_that_cannot_be_json_leaves_no_trace(path):
    with Journal(path, 1) as journal:
        with pytest.raises(TypeError):
            journal.append("metric", values=object())
        assert journal.append("metric", values={}) == 1


def test_null_journal():
    with NullJournal() as journal:
        assert journal.append("metric", step=1) == 0


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(JournalError, match="Check the folder"):
        Journal(tmp_path / "no" / "journal.jsonl", 1)


@pytest.fixture
def small_disk(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], capture_output=True).returncode:
        pytest.skip("no small disk can be mounted here: test_a_limit_on_the_file stands in")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_is_an_error_that_says_what_to_do(small_disk):
    path = small_disk / "journal.jsonl"
    with Journal(path, 1) as journal:
        with pytest.raises(JournalError, match="Make room there") as caught:
            for step in range(10_000):
                journal.append("metric", step=step, values={"text": "x" * 300})
        assert caught.value.code == "disk-full" and caught.value.__cause__.errno == errno.ENOSPC
        written = journal.seq
        assert path.read_bytes().endswith(b"}\n") and [e["seq"] for e in read_events(path)][-1] == written
        os.truncate(path, 0)  # room again
        assert journal.append("run.started", stage="s") == written + 1


def test_a_limit_on_the_file(path):
    """In a process of its own: the limit cannot be taken back."""
    code = (
        "import sys; from seesaw_runner.journal import *\n"
        "with Journal(sys.argv[1], 1) as journal:\n"
        "    try:\n        for step in range(1000): journal.append('metric', step=step, values={})\n"
        "    except JournalError as error: print(error.code, journal.seq)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(RUNNER)},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000)),
    )
    code, seq = done.stdout.split()
    assert code == "exception" and [e["seq"] for e in read_events(path)][-1] == int(seq)
    assert path.read_bytes().endswith(b"}\n")
