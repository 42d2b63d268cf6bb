"""The editor tells a stage's steps before anything runs: its rule and the recipe's are held to the same cases."""

import json
from pathlib import Path

from seesaw_runner.probing.callback import probe_steps
from seesaw_runner.training.plan import total_steps

CASES = json.loads((Path(__file__).parents[1] / "fixtures/protocol/steps.json").read_text())


def test_the_fixture_says_what_total_steps_says():
    assert len(CASES) >= 12
    for case in CASES:
        steps = total_steps(case["rows"], case["per_step"], case["max_steps"], case["epochs"])
        assert steps == case["steps"], case


def test_the_looks_fixture_says_what_probe_steps_says():
    looks = json.loads((Path(__file__).parents[1] / "fixtures/protocol/looks.json").read_text())
    assert len(looks) >= 18
    for case in looks:
        assert probe_steps(case["every"], case["total"]) == case["steps"], case
