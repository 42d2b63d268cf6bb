"""The station's own judgement: what it sends of a run folder, what it takes, and how it words trouble."""

import ast
import base64
import errno
import gzip
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
import zlib
from pathlib import Path

import pytest
from fakes.attempts import RUNNER, Run, wait
from seesaw_runner import agent, station

STATION = RUNNER / "seesaw_runner" / "station.py"


@pytest.fixture
def told(monkeypatch):
    """Frames instead of lines on stdout."""
    frames = []

    def take(line):
        assert line.startswith(b"@seesaw ") and line.endswith(b"\n") and line.count(b"\n") == 1 and line.isascii()
        frames.append(json.loads(line[8:]))

    monkeypatch.setattr(station, "write_all", take)
    return frames


@pytest.fixture
def run(tmp_path):
    run = Run(tmp_path / "run")
    yield run
    run.close()


def bytes_of(frame):
    data = base64.b64decode(frame["data"])
    return zlib.decompress(data) if frame.get("z") else data


def copy_of(frames, start=()):
    """What a reader has after these frames, by file."""
    files = dict(start)
    for frame in frames:
        if frame["kind"] == "restart":
            files[frame["file"]] = b""
        if frame["kind"] == "piece":
            files[frame["file"]] = files.get(frame["file"], b"")[: frame["offset"]] + bytes_of(frame)
    return files


def known_of(frames):
    known = {}
    for frame in frames:
        if frame["kind"] == "restart":
            known[frame["file"]] = {"size": 0, "mark": frame["mark"]}
        if frame["kind"] == "piece":
            known[frame["file"]] = {"size": frame["offset"] + len(bytes_of(frame)), "mark": frame["mark"]}
    return known


def followed(folder, known=None, seconds=0.0):
    follower = station.Follower(str(folder), known or {}, station.load_agent(str(RUNNER)))
    return follower, follower.follow(seconds)


def ask(request, data=b"", hang_up=False):
    """A whole process, as another machine starts it. Returns (frames, exit code)."""
    code = base64.b64encode(zlib.compress(STATION.read_bytes())).decode()
    line = f"import zlib,base64;g={{'__name__':'x'}};exec(zlib.decompress(base64.b64decode('{code}')),g);g['serve']()"
    words = [sys.executable, "-u", "-c", "import sys;exec(sys.stdin.buffer.readline())"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        child.stdin.write(f"{line}\n{json.dumps(request)}\n".encode() + data)
        child.stdin.flush()
        if hang_up:
            child.stdin.close()
        lines = [line for line in child.stdout if line.startswith(b"@seesaw ")]
        assert child.stderr.read() == b""
        return [json.loads(line[8:]) for line in lines], child.wait(20)


def test_is_python_3_8_and_needs_only_the_standard_library():
    tree = ast.parse(STATION.read_text(), feature_version=(3, 8))
    names = {
        alias.name.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
    }
    names |= {node.module.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert names <= sys.stdlib_module_names, names - sys.stdlib_module_names


# ---- files that only grow


def grown(path, known=None):
    return station.Grown(str(path), known)


def test_a_file_that_grows_is_sent_in_pieces_each_byte_once(tmp_path, told):
    path, data = tmp_path / "journal.jsonl", os.urandom(3 * station.PIECE + 17)
    path.write_bytes(data)
    one = grown(path)
    sent, more = one.pump("journal.jsonl", len(data), station.PIECE)
    assert (sent, more) == (station.PIECE, True)
    while more:
        _, more = one.pump("journal.jsonl", len(data), station.PIECE)
    assert copy_of(told) == {"journal.jsonl": data} and [f["done"] for f in told] == [False, False, False, True]
    assert sum(len(bytes_of(f)) for f in told) == len(data)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda data: data[:200], id="shortened"),
        pytest.param(lambda data: b"x" + data[1:], id="another beginning, same size"),
        pytest.param(lambda data: data[:-1] + b"x", id="another end, same size"),
        pytest.param(lambda data: data[:600] + b"y" * 900, id="cut and written anew, longer"),
    ],
)
@pytest.mark.parametrize("again", [False, True], ids=["same call", "next call"])
def test_a_file_that_did_not_only_grow_is_sent_again(tmp_path, told, change, again):
    path, data = tmp_path / "out.log", bytes(range(256)) * 4
    path.write_bytes(data)
    one = grown(path)
    one.pump("out.log", len(data), 1 << 20)
    new = change(data)
    path.write_bytes(new)
    if again:
        one = grown(path, known_of(told)["out.log"])
    one.pump("out.log", len(new), 1 << 20)
    assert [frame["kind"] for frame in told].count("restart") == 1
    assert copy_of(told)["out.log"] == new


def test_a_file_that_only_grew_goes_on_from_what_the_reader_has(tmp_path, told):
    path = tmp_path / "out.log"
    path.write_bytes(b"a" * 100)
    grown(path).pump("out.log", 100, 1 << 20)
    known, first = known_of(told)["out.log"], copy_of(told)
    path.write_bytes(b"a" * 100 + b"b" * 1000)
    del told[:]
    grown(path, known).pump("out.log", 1100, 1 << 20)
    assert [(f["kind"], f["offset"]) for f in told] == [("piece", 100)]
    assert copy_of(told, first)["out.log"] == path.read_bytes()
    # The books of a reader that lost its end are behind its mark: the head alone is compared then.
    del told[:]
    grown(path, {"size": 50, "mark": known["mark"]}).pump("out.log", 1100, 1 << 20)
    assert [(f["kind"], f["offset"]) for f in told] == [("piece", 50)]


# ---- a run folder


def test_what_is_never_sent(tmp_path, told):
    for name in (
        *("run.json", "journal.jsonl", "attempt-0001/exit.json", "attempt-0001/agent.log", "buffer.json"),
        *(
            "attempt-0001/heartbeat",
            "attempt-0001/.reserve",
            "x.tmp",
            "x.part",
            ".lease",
            "teacher_outputs.safetensors",
        ),
        *("output/model.bin", "checkpoints/step-000001/model.safetensors", "checkpoints/step-000001/seesaw.json"),
        *("checkpoints/step-000001/experts/a/seesaw.json", "checkpoints/loose", "traces/.new/a.trace"),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (Path(os.fsdecode(os.fsencode(str(tmp_path)) + b"/\xff.json"))).write_text("no name elsewhere")
    (tmp_path / "loop").symlink_to(tmp_path)
    followed(tmp_path, seconds=0.5)
    assert sorted(copy_of(told)) == [
        *("attempt-0001/agent.log", "attempt-0001/exit.json", "buffer.json"),
        *("checkpoints/step-000001/seesaw.json", "journal.jsonl", "run.json"),
    ]


def test_a_file_comes_before_the_line_that_speaks_of_it(tmp_path, told, monkeypatch):
    (tmp_path / "traces").mkdir()
    (tmp_path / "journal.jsonl").write_text("1\n")
    follower = station.Follower(str(tmp_path), {}, station.load_agent(str(RUNNER)))
    follower.look(full=True)
    follower.round(full=False)
    look, turn = follower.look, [0]

    def between(full):  # the trace and its line are written after the sizes were noted
        turn[0] += 1
        look(full)
        (tmp_path / "traces" / f"{turn[0]}.trace").write_text("t")
        with open(tmp_path / "journal.jsonl", "a") as journal:
            journal.write(f"see {turn[0]}.trace\n")

    monkeypatch.setattr(follower, "look", between)
    with open(tmp_path / "journal.jsonl", "a") as journal:
        journal.write("2\n")
    for _ in range(5):
        follower.round(full=False)
    seen = set()
    for frame in told:
        if frame.get("file") == "journal.jsonl":
            for line in bytes_of(frame).decode().splitlines():
                assert not line.startswith("see") or f"traces/{line.split()[1]}" in seen, line
        seen.add(frame.get("file"))
    assert len([file for file in seen if file and file.startswith("traces/")]) >= 3


def test_a_whole_file_that_changes_while_it_is_sent_is_sent_again(tmp_path, told, monkeypatch):
    path = tmp_path / "buffer.json"
    path.write_bytes(b"a" * (2 * station.PIECE))
    plain, changed = station.send_piece, []

    def meanwhile(*frame):
        plain(*frame)
        if not changed:
            changed.append(True)
            path.write_bytes(b"b" * (3 * station.PIECE))

    monkeypatch.setattr(station, "send_piece", meanwhile)
    followed(tmp_path, seconds=0.5)
    assert copy_of(told)["buffer.json"] == path.read_bytes()
    assert len({f["mark"] for f in told if f["kind"] == "piece" and f["done"]}) == 1


def test_a_log_of_many_megabytes_does_not_hold_up_the_journal(tmp_path, told):
    (tmp_path / "out.log").write_bytes(os.urandom(3 * station.ROUND))
    (tmp_path / "journal.jsonl").write_bytes(b"1\n")
    follower = station.Follower(str(tmp_path), {}, station.load_agent(str(RUNNER)))
    follower.look(full=True)
    assert follower.round(full=False)
    with open(tmp_path / "journal.jsonl", "ab") as journal:
        journal.write(b"2\n")
    while follower.round(full=False):
        pass
    order = [f["file"] for f in told if f["kind"] == "piece"]
    second = len(order) - 1 - order[::-1].index("journal.jsonl")
    assert order.count("journal.jsonl") == 2 and "out.log" in order[second:]
    assert copy_of(told)["out.log"] == (tmp_path / "out.log").read_bytes()


def test_an_attempt_to_its_end(run, told):
    attempt = run.attempt("--events", "3")
    subprocess.run(
        [sys.executable, str(RUNNER / "seesaw_runner/agent.py"), "run", str(attempt.path), "--detach"], check=True
    )
    _, result = followed(run.path, seconds=60)
    assert result == {"ended": "end"} and told[-1]["kind"] == "end"
    files = copy_of(told)
    assert files["journal.jsonl"] == (run.path / "journal.jsonl").read_bytes()
    assert b"run.finished" in files["journal.jsonl"].splitlines()[-1]
    for name, sums in told[-1]["sums"].items():
        assert sums == {"size": len(files[name]), "sha256": hashlib.sha256(files[name]).hexdigest()}
    assert [f["probe"]["state"] for f in told if f["kind"] == "probe"][-1] == "exited"


def started_by(folder, **fields):
    """An attempt that was started, as far as its files say."""
    attempt = folder / "attempt-0001"
    attempt.mkdir()
    (attempt / "spec.json").write_text(json.dumps({"nonce": "n" * 32, "run": ".."}))
    (attempt / "started.json").write_text(json.dumps({"pid": 0, "start": 0, "nonce": "n" * 32, **fields}))
    return attempt


def test_the_end_is_not_told_while_the_agent_lives(tmp_path, told):
    """exit.json is there before the last event is."""
    me = agent.identity()
    attempt = started_by(tmp_path, boot=me["boot"], agent_pid=me["pid"], agent_start=me["start"])
    (attempt / "exit.json").write_text("{}")
    _, result = followed(tmp_path, seconds=1)
    assert result == {"ended": "limit"} and not [f for f in told if f["kind"] == "end"]


def test_the_heartbeat_of_another_machine_is_judged_without_waiting(tmp_path, told, monkeypatch):
    attempt = started_by(tmp_path, boot="another", host="n1", agent_pid=0, agent_start=0)
    monkeypatch.setattr(station, "SILENCE_S", 1.0)
    agent.write_beat(str(attempt), 1)
    began = time.monotonic()
    followed(tmp_path, seconds=0.0)
    assert time.monotonic() - began < 1.0
    followed(tmp_path, seconds=4.0)
    states = [f["probe"]["state"] for f in told if f["kind"] == "probe"]
    assert states[0] == "running" and states[-1] == "lost:reboot-or-other-host"


# ---- a call


def test_a_call_ends_with_its_result_and_with_its_pipe(tmp_path):
    frames, code = ask({"verb": "locate", "dir": str(tmp_path)})
    assert code == 0 and frames[-1]["kind"] == "result" and frames[-1]["dir"] == str(tmp_path)
    began = time.monotonic()
    frames, _ = ask({"verb": "follow", "run": str(tmp_path), "runner": str(RUNNER), "limit_s": 300}, hang_up=True)
    assert not [frame for frame in frames if frame["kind"] in ("end", "result")] and time.monotonic() - began < 30


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_takes_the_program_along(tmp_path, number):
    code = "import sys;sys.path.insert(0, sys.argv[1]);import station;station.serve()"
    words = [sys.executable, "-c", code, str(STATION.parent)]
    child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    asked = {
        "verb": "exec",
        "argv": ["sh", "-c", 'echo $$ > "$1.tmp"; mv "$1.tmp" "$1"; sleep 300', "sh", str(tmp_path / "pid")],
    }
    child.stdin.write(json.dumps({**asked, "timeout": 300}).encode() + b"\n")
    child.stdin.flush()
    wait((tmp_path / "pid").exists, "its start")
    pid = int((tmp_path / "pid").read_text())
    child.send_signal(number)
    child.wait(10)
    wait(lambda: agent.process_start(pid) is None, "its end")
    child.stdin.close()
    child.stdout.close()


def test_bytes_that_come_with_the_request_count(tmp_path):
    data, path = os.urandom(200_000), tmp_path / "o" / "data"
    put = {
        "verb": "put",
        "path": str(path),
        "size": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "client": "a",
    }
    frames, _ = ask(put, data)
    assert [frames[0], frames[-1]["kind"]] == [{"kind": "go", "offset": 0}, "result"] and path.read_bytes() == data


def test_a_copy_that_stops_keeps_what_came(tmp_path):
    data, path = os.urandom(200_000), tmp_path / "data"
    put = {
        "verb": "put",
        "path": str(path),
        "size": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "client": "a",
    }
    frames, _ = ask(put, data[:120_000], hang_up=True)
    assert frames[-1]["code"] == "short" and not path.exists()
    assert (tmp_path / "data.part").stat().st_size == 120_000
    frames, _ = ask(put, data[120_000:])
    assert frames[0] == {"kind": "go", "offset": 120_000} and path.read_bytes() == data


@pytest.mark.parametrize("name", ["../x.py", "/x.py", "a/../../x.py", ".hidden", "a//b", "a b", "x\n", ""])
def test_names_that_leave_the_folder_are_refused(tmp_path, name):
    data = gzip.compress(json.dumps({"fine.py": "1", name: "2"}).encode())
    asked = {
        "verb": "unpack",
        "dir": str(tmp_path / "r/v"),
        "size": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    frames, _ = ask(asked, data)
    assert frames[-1]["kind"] == "error" and not (tmp_path / "r/v").exists()
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    ("number", "code", "reason"),
    [
        (errno.ENOSPC, "disk-full", "not-writable"),
        (errno.EDQUOT, "quota", "not-writable"),
        (errno.EROFS, "read-only", "not-writable"),
        (errno.EACCES, "not-writable", "not-writable"),
        (errno.ENOTDIR, "not-a-folder", "not-writable"),
        (errno.EIO, "disk", "other"),
    ],
)
def test_what_a_disk_says(number, code, reason):
    answer = station.disk_trouble(OSError(number, os.strerror(number)), "/x/y").answer
    assert (answer["code"], answer["reason"], answer["path"]) == (code, reason, "/x/y")


def test_nothing_is_written_where_an_attempt_was_claimed(tmp_path):
    (tmp_path / "claim").write_text("")
    item = {"path": str(tmp_path / "spec.json"), "text": "{}", "unless": str(tmp_path / "claim")}
    ask({"verb": "write", "items": [item]})
    assert not (tmp_path / "spec.json").exists()
    ask({"verb": "write", "items": [{**item, "unless": str(tmp_path / "other")}]})
    assert (tmp_path / "spec.json").read_text() == "{}"
