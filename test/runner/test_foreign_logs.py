"""Logs of other people's trainers: dicts, key-value lines, progress bars, Ray, TensorBoard, trainer_state.json."""

import json
import math
import os
import struct

import pytest
from seesaw_runner.foreign.lines import FileTail, LineFeed
from seesaw_runner.foreign.log_lines import LogLines
from seesaw_runner.foreign.metric_sink import MetricSink
from seesaw_runner.foreign.tensorboard import EventFeed, crc32c
from seesaw_runner.foreign.text_metrics import read_json_line, read_line
from seesaw_runner.foreign.trainer_logs import TrainerLogs


class Told:
    """A journal in memory, and the warnings."""

    def __init__(self):
        self.events, self.warnings = [], []

    def append(self, kind, /, **fields):
        self.events.append({"type": kind, **fields})

    def warn(self, code, message, **_):
        self.warnings.append((code, message))

    def metrics(self):
        return [(e["step"], e["values"]) for e in self.events if e["type"] == "metric"]


@pytest.fixture
def told():
    return Told()


@pytest.mark.parametrize(
    "line, step, values",
    [
        (
            "{'loss': 0.5, 'np': np.float64(1.2), 'x': nan, 'y': tensor(3.), 'step': 7}",
            7,
            {"loss": 0.5, "np": 1.2, "x": math.nan, "y": 3.0},
        ),
        ("{'loss': '0.5123', 'grad_norm': 'inf', 'epoch': '0.1'}", None, {"loss": 0.5123, "grad_norm": math.inf}),
        ("{'loss': tensor(0.1, device='cuda:0', grad_fn=<NllLoss>), 'a': tensor([1, 2])}", None, {"loss": 0.1}),
        (
            "\x1b[36m(TaskRunner pid=311, ip=10.0.0.9)\x1b[0m step:3 - actor/kl_loss:0.0025 - critic/score/mean:0.33 - "
            "actor/lr:1e-06 [repeated 2x across cluster] (Ray deduplicates logs by default.)",
            3,
            {"actor/kl_loss": 0.0025, "critic/score/mean": 0.33, "actor/lr": 1e-6},
        ),
        (
            "(RolloutManager pid=12) [2025-11-01 10:00:00] rollout.py:123 - rollout 3: {'rollout/raw_reward': 0.25}",
            3,
            {"rollout/raw_reward": 0.25},
        ),
        ("step 7: {'train/loss': 0.25, 'train/lr-pg_0': 1e-6}", 7, {"loss": 0.25, "lr-pg_0": 1e-6}),
        (
            " iteration       20/     300 | learning rate: 1.0E-06 | lm loss: 1.23E+00 | grad norm: 0.5 |",
            20,
            {"learning rate": 1e-6, "lm loss": 1.23, "grad norm": 0.5, "loss": 1.23},
        ),
        ("step 10: train loss 2.1, val loss 2.31, time 30ms", 10, {"loss": 2.1, "val/loss": 2.31}),
        ("Epoch 1/3 | Step 20/100 | loss: 0.5 | lr: 1e-5", 20, {"loss": 0.5, "lr": 1e-5}),
    ],
)
def test_metric_lines(line, step, values):
    feed = LineFeed()
    found = read_line(feed.feed((line + "\n").encode())[0].text)
    assert found.step == step and found.values.keys() == values.keys()
    assert all(found.values[k] == v or (math.isnan(v) and math.isnan(found.values[k])) for k, v in values.items())


@pytest.mark.parametrize(
    "line",
    [
        "{'num_rows': 500, 'seed': 3}",
        "{'role': 'user', 'content': [1, 2], 'loss': 3}",
        "Loading checkpoint shards: 100%|##| 3/3 [00:01<00:00]",
        "2025-03-01 10:00:00,123 INFO worker.py:1879 -- Started a local Ray instance.",
        "step 3: see loss.py for the reason",
        "Traceback (most recent call last):",
        "{'loss': __import__('os').system('touch owned')}",
    ],
)
def test_lines_that_are_no_metrics(line):
    found = read_line(line)
    assert found is None and not os.path.exists("owned")


def test_no_line_takes_long():
    """Lines made against backtracking: a trainer may print anything."""
    for line in (
        "step" + " " * 60_000 + "x",
        "step 1 " + "a_" * 30_000,
        "{'a': t(" + "(" * 60_000 + "}",
        "1%|" * 20_000,
    ):
        read_line(line)  # without the guards each of them runs for minutes


def test_bars_bytes_and_chunks_make_no_difference(told):
    data = (
        b"Start\n\r  8/50\r 16%|#  | 8/50 [00:08<00:10]{'loss': 9}\n"
        + "".join(
            f"\r {n * 2}%|## | {n}/50 [00:10<00:10, 1.2it/s]\r      \r{{'loss': '{2 - n / 50}', 'epoch': 0.{n}}}\n"
            f"\r {n * 2}%|## | {n}/50 [00:10<00:10, 1.2it/s]"
            for n in (10, 20, 30)
        ).encode()
        + "\rcaf\xe9 \U0001f600 done\n".encode("utf-8")
        + b"bad \xff byte\n"
    )
    results = []
    for size in (1, 7, 64, 10_000):
        sink = Told()
        lines = LogLines(MetricSink(sink, None, sink.warn), "output")
        for at in range(0, len(data), size):
            lines.feed(data[at : at + size])
        lines.close()
        results.append(sink.metrics())
    assert all(r == results[0] for r in results)
    assert [(step, v["loss"]) for step, v in results[0]] == [(10, 1.8), (20, 1.6), (30, 1.4)]


def test_lines_without_a_step_wait_for_trainer_state(told, tmp_path):
    sink = MetricSink(told, None, told.warn)
    logs = TrainerLogs(sink, None, told.warn, None)
    for k in (1, 2, 3):
        logs.feed_output(f"{{'loss': '{k}', 'extra': 1, 'epoch': 0.{k}}}\n".encode())
    logs.output._waiting = [(m, since - 9) for m, since in logs.output._waiting]  # as if the patience was over
    logs.look()
    assert told.metrics() == []
    state = tmp_path / "checkpoint-20" / "trainer_state.json"
    state.parent.mkdir()
    history = [
        {"loss": 1.0001, "step": 10, "epoch": 0.1},
        {"loss": 2.0001, "grad_norm": math.nan, "step": 20, "epoch": 0.2},
    ]
    state.write_text(json.dumps({"global_step": 20, "max_steps": 100, "log_history": history}))
    logs.read_state(state)
    logs.look()
    assert told.metrics()[0] == (10, {"loss": 1.0001}) and math.isnan(told.metrics()[1][1]["grad_norm"])
    assert [(step, list(v)) for step, v in told.metrics()[2:]] == [
        (10, ["extra"]),
        (20, ["extra"]),
        (30, ["loss", "extra"]),
    ]
    assert sink.total == 100 and not told.warnings
    state.write_text('{"global_step": 30, "log_hist')  # being written
    logs.read_state(state)
    logs.feed_output(b"{'loss': 5}\n{'loss': 4}\n")
    logs.close()
    assert [code for code, _ in told.warnings] == ["log-unreadable", "unnumbered-metrics"]


def test_what_was_told_before_a_resume_is_not_told_again(told):
    sink = MetricSink(told, 20, told.warn)
    sink.add_history(10, {"loss": 1.0})
    sink.add("output", 25, {"loss": 0.5})
    sink.add_history(25, {"loss": 0.5001, "lr": 1.0})
    assert told.metrics() == [(25, {"loss": 0.5}), (25, {"lr": 1.0})] and not told.warnings
    sink.add("output", 5, {"loss": 3.0})  # it did not resume after all
    sink.add("output", 25, {"loss": 0.7})
    assert told.metrics()[2:] == [(5, {"loss": 3.0}), (25, {"loss": 0.7})]
    assert [code for code, _ in told.warnings] == ["started-over"]


def test_a_loop_that_logs_without_end_does_not_fill_the_journal(told):
    sink = MetricSink(told, None, told.warn)
    for step in range(1, 2001):
        sink.add("output", step, {"loss": math.nan if step == 1500 else 1.0}, live=True)
    sink.tell_progress()
    steps = [step for step, _ in told.metrics()]
    assert steps[:3] == [1, 2, 3] and 1500 in steps and steps[-1] == 2000 and len(steps) < 300


def test_a_log_that_is_cut_moved_and_made_anew(told, tmp_path):
    path = tmp_path / "train.log"
    tail, lines = FileTail(path), LogLines(MetricSink(told, None, told.warn), "file")

    def look():
        while True:
            data, anew = tail.read()
            if anew:
                lines.anew()
            lines.feed(data)
            if not data:
                return

    look()
    path.write_text("step=1 loss=3\nstep=2 loss=2")
    look()
    assert [step for step, _ in told.metrics()] == [1]  # the half line is not loss 2
    with open(path, "a") as file:
        file.write(".5\nstep=3 loss=2\n")
    look()
    path.write_text("step=4 loss=1.9\n")  # copytruncate
    look()
    path.rename(tmp_path / "train.log.1")
    path.write_text("step=5 loss=1.8\n")
    look()
    path.unlink()
    look()
    path.write_text("step=6 loss=1.7\n")  # as long as the one before
    look()
    assert [(s, v["loss"]) for s, v in told.metrics()] == [(1, 3), (2, 2.5), (3, 2), (4, 1.9), (5, 1.8), (6, 1.7)]


# ---- TensorBoard


def varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number: int, kind: int, body: bytes) -> bytes:
    return varint(number << 3 | kind) + (varint(len(body)) if kind == 2 else b"") + body


def record(body: bytes) -> bytes:
    def masked(data: bytes) -> bytes:
        crc = crc32c(data)
        return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)

    head = struct.pack("<Q", len(body))
    return head + masked(head) + body + masked(body)


def scalar(step: int, value: float, tag: str = "train/loss", tensor: bool = False) -> bytes:
    if tensor:  # what `tf.summary.scalar` and torch's new style write
        content = field(1, 0, varint(1)) + field(4, 2, struct.pack("<f", value))
        number = field(8, 2, content)
    else:
        number = field(2, 5, struct.pack("<f", value))
    event = field(1, 1, struct.pack("<d", 1e9)) + field(2, 0, varint(step))
    return record(event + field(5, 2, field(1, 2, field(1, 2, tag.encode()) + number)))


HEAD = record(field(1, 1, struct.pack("<d", 1e9)) + field(3, 2, b"brain.Event:2"))


def test_tensorboard_records():
    assert crc32c(b"123456789") == 0xE3069283  # the check value of CRC-32C
    big = record(field(5, 2, b"\0" * 200_000))  # an image: stepped over
    data = HEAD + scalar(0, 1.0) + big + scalar(1, 0.5, tensor=True) + scalar(2, math.nan) + scalar(3, 0.25)
    for size in (1, 13, 4096, len(data)):
        feed, found = EventFeed(), []
        for at in range(0, len(data) - 5, size):
            found += feed.feed(data[at : min(at + size, len(data) - 5)])
        assert [(s.step, s.tag, s.value) for s in found[:2]] == [(0, "train/loss", 1.0), (1, "train/loss", 0.5)]
        assert len(found) == 3 and math.isnan(found[2].value) and feed.problem is None  # the torn tail waits
        assert [s.step for s in feed.feed(data[-5:])] == [3]
    broken = bytearray(data)
    broken[data.index(scalar(1, 0.5, tensor=True)) + 20] ^= 1
    feed = EventFeed()
    assert [s.step for s in feed.feed(bytes(broken))] == [0, 2, 3] and "checksum" in feed.problem
    broken[len(HEAD) + 2] ^= 1  # a length
    feed = EventFeed()
    assert feed.feed(bytes(broken)) == [] and "length" in feed.problem


def test_tensorboard_files_of_a_restart_and_of_an_earlier_run(told, tmp_path):
    folder = tmp_path / "runs"
    folder.mkdir()
    (folder / "events.out.tfevents.1700000000.host.1.0").write_bytes(HEAD + b"".join(scalar(k, 9.0) for k in range(9)))
    logs = TrainerLogs(MetricSink(told, None, told.warn), str(folder / "**/*tfevents*"), told.warn, tmp_path)
    logs.look()
    assert told.metrics() == []  # it was there before
    first, second = (folder / f"events.out.tfevents.17000{n}000.host.1.0" for n in (1, 2))
    first.write_bytes(HEAD + b"".join(scalar(k, 1.0) for k in range(5)))
    logs.look()
    second.write_bytes(HEAD + b"".join(scalar(k, 0.5) for k in range(3, 7)))
    logs.look()
    last = {step: values["loss"] for step, values in told.metrics()}  # readers let the later one win
    assert last == {0: 1, 1: 1, 2: 1, 3: 0.5, 4: 0.5, 5: 0.5, 6: 0.5}
    assert len(told.metrics()) == 9
    logs.close()


def test_json_lines_and_progress(told, tmp_path):
    assert read_json_line('{"step": 4, "data": {"actor/kl": 0.1, "deep": {"a": NaN}}}').values.keys() == {
        "actor/kl",
        "deep/a",
    }
    path = tmp_path / "trainer_log.jsonl"
    sink = MetricSink(told, None, told.warn)
    logs = TrainerLogs(sink, str(path), told.warn, tmp_path)
    path.write_text('{"current_steps": 5, "total_steps": 50, "loss": 1.5, "percentage": 10.0}\n{"current_st')
    logs.look()
    logs.close()
    assert told.metrics() == [(5, {"loss": 1.5, "percentage": 10.0})]
    progress = [e for e in told.events if e["type"] == "stage.progress"]
    assert progress[-1]["step"] == 5 and progress[-1]["total"] == 50
