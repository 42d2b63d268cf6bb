"""What an attempt tells of its own cost: true figures, once, also when it was stopped."""

import json
import subprocess
import sys
from pathlib import Path

import torch
from conftest import events
from seesaw_runner.journal import Journal
from seesaw_runner.training.cost import CostMeter, resident_memory
from seesaw_runner.training.device import Device

CPU = Device("cpu", 0, torch.float32, False)


def test_the_peak_is_that_of_the_process_and_the_time_is_without_probes(tmp_path):
    """In a process of its own: the peak of this one is that of all tests before."""
    code = """
import sys, time, torch
from seesaw_runner.journal import Journal
from seesaw_runner.training.cost import CostMeter
from seesaw_runner.training.device import Device
with Journal(sys.argv[1], 1) as journal:
    meter = CostMeter(Device("cpu", 0, torch.float32, False))
    model = torch.ones(20_000_000)
    meter.begin(probed=1.0)
    batch = torch.ones(50_000_000)
    time.sleep(0.3)
    del batch
    meter.tell(journal, step=3, tokens=120, probed=1.2)
"""
    path = tmp_path / "journal.jsonl"
    runner = Path(__file__).resolve().parents[2] / "runner"
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, cwd=runner)
    [event] = [json.loads(line) for line in path.read_text().splitlines()]
    memory = event["memory"]
    assert (event["type"], event["step"], event["tokens"]) == ("cost.measured", 3, 120)
    assert memory["kind"] == "resident" and memory["reserved"] is None
    assert memory["before"] > 50_000_000, "torch itself"
    assert 0.9 * 80e6 < memory["start"] - memory["before"] < 1.5 * 80e6
    assert 0.9 * 280e6 < memory["peak"] - memory["before"] < 1.3 * 280e6
    assert 0.1 <= event["train_s"] < 5, "0.3 s, of which 0.2 s were probing"
    assert event["probe_s"] == 1.2


def test_a_training_that_never_began_took_no_time(tmp_path):
    with Journal(tmp_path / "journal.jsonl", 1) as journal:
        CostMeter(CPU).tell(journal, step=0, tokens=0, probed=0.0)
    [event] = events(tmp_path)
    assert event["train_s"] == 0 and event["memory"]["peak"] > 0


def test_memory_now_is_no_more_than_the_peak():
    from seesaw_runner.training.device import peak_memory

    assert 0 < resident_memory() <= 1.05 * peak_memory(CPU)  # the kernel's two counters differ by some pages


def test_a_stage_tells_its_cost_once(make_run, sft):
    run = make_run(args={"max_steps": 2}, skills=[])
    assert sft(run) == 0
    [cost] = events(run, "cost.measured")
    assert cost["step"] == 2 and cost["train_s"] > 0 and cost["probe_s"] == 0
    # What was free before may be given back to the system meanwhile, and the two counters differ by some pages.
    assert 0.9 * cost["memory"]["before"] <= cost["memory"]["start"] <= 1.05 * cost["memory"]["peak"]
    # Eight rows of four words at most: as many tokens as the plan drew.
    assert 8 * 5 < cost["tokens"] < 8 * 40
