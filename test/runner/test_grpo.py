"""GRPO on the tiny model: rewards of every kind, functions that raise, hang or lie, KL, resume, and what is told."""

import json
import shutil

import pytest
import torch
from conftest import copy_rows, events, outcome
from safetensors.torch import load_file

ARGS = {
    "learning_rate": 2e-3,
    "max_steps": 4,
    "per_device_train_batch_size": 8,
    "num_generations": 4,
    "max_completion_length": 8,
    "logging_steps": 1,
}
REWARDS = """
import math, os, time

def vowels(answer, row):
    assert row["messages"][0]["role"] == "user"
    return sum(c in "aeiou" for c in answer) / 10

def raises(answer, row):
    raise KeyError("nothing here")

def liar(answer, row):
    return "a lot"

def nan(answer, row):
    return math.nan

def hangs(answer, row):
    time.sleep(60)

def dies(answer, row):
    os._exit(3)

def talks(answer, row):
    print('{"reward": 99}')
    return 0.5 if answer else 0.0

def numpy_number(answer, row):
    import numpy
    return numpy.float32(len(answer) % 3)
"""


@pytest.fixture
def make_grpo(make_run, tmp_path):
    def make(name="copy-20260101T000000-0001", args=None, rewards=None, trusted=True, **changes):
        lib = tmp_path / "project" / "lib"
        lib.mkdir(parents=True, exist_ok=True)
        (lib / "rewards.py").write_text(REWARDS)
        rewards = [{**r, "path": str(lib)} if "function" in r and "path" not in r else r for r in rewards or []]
        return make_run(
            name,
            recipe="grpo",
            train=copy_rows(24, 1),
            args={**ARGS, **(args or {})},
            trusted=trusted,
            options={"rewards": rewards} if rewards else {},
            **changes,
        )

    return make


def metrics(run):
    return [e["values"] for e in events(run, "metric")]


def weights(run, step=4):
    folder = run / "checkpoints" / f"step-{step:06d}"
    name = "adapter_model.safetensors" if (folder / "adapter_model.safetensors").exists() else "model.safetensors"
    return load_file(folder / name)


def test_a_function_is_learned_and_everything_is_told(make_grpo, recipe):
    run = make_grpo(rewards=[{"function": "rewards:vowels"}], args={"max_steps": 20, "learning_rate": 1e-2})
    assert recipe("grpo", run) == 0
    told = metrics(run)
    third = max(1, len(told) // 3)  # a fast machine journals few of the steps: they are told four times a second
    first, last = (sum(v["reward"] for v in part) / len(part) for part in (told[:third], told[-third:]))
    assert last > first + 0.1
    wanted = {"reward", "reward_std", "frac_reward_zero_std", "completions/mean_length", "completions/clipped_ratio"}
    assert wanted | {"completions/empty", "entropy", "rewards/vowels/mean"} <= set(told[0])
    assert [e["step"] for e in events(run, "probe.scored")][-1] == 20


def test_weights_of_rewards_add_up(make_grpo, recipe):
    run = make_grpo(
        rewards=[
            {"function": "rewards:talks", "weight": 2},
            {"check": {"kind": "regex", "pattern": "."}, "weight": -1},
            {"skill": "copy"},
        ],
        args={"max_steps": 1},
    )
    assert recipe("grpo", run) == 0
    told = metrics(run)[0]
    parts = 2 * told["rewards/talks/mean"] - told["rewards/regex/mean"] + told["rewards/copy/mean"]
    assert told["reward"] == pytest.approx(parts, abs=1e-5) and told["rewards/talks/mean"] <= 0.5  # a print is no reply


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("raises", "KeyError: 'nothing here'"),
        ("liar", "AttributeError"),
        ("nan", "it returned nan"),
        ("hangs", "took longer than 0.4 s"),
        ("dies", "ended its process"),
    ],
)
def test_a_function_that_fails_is_told_once_and_ends_the_stage_only_if_it_always_fails(
    make_grpo, recipe, function, said
):
    rewards = [{"function": f"rewards:{function}", "timeout": 0.4}]
    small = {"max_steps": 4, "per_device_train_batch_size": 2, "num_generations": 2}
    alone = make_grpo(rewards=rewards, args=small)
    assert recipe("grpo", alone) == 1
    assert "gave no number in 3 batches" in outcome(alone)["message"]
    told = [e["message"] for e in events(alone, "warning") if e["code"] == "reward-failed"]
    assert len(told) == 1 and said in told[0]


def test_a_function_that_cannot_be_imported(make_grpo, recipe, tmp_path):
    run = make_grpo(rewards=[{"function": "rewards:nothing"}])
    assert recipe("grpo", run) == 1 and "has no attribute 'nothing'" in outcome(run)["message"]


def test_no_function_runs_in_an_untrusted_workspace(make_grpo, recipe):
    run = make_grpo(rewards=[{"function": "rewards:vowels"}], trusted=False)
    assert recipe("grpo", run) == 1 and outcome(run)["code"] == "untrusted"


def test_equal_rewards_are_told(make_grpo, recipe):
    run = make_grpo(
        args={"max_steps": 6, "per_device_train_batch_size": 4}
    )  # the untrained model never passes the check
    assert recipe("grpo", run) == 0
    assert [e["code"] for e in events(run, "warning")].count("equal-rewards") == 1
    assert metrics(run)[-1]["frac_reward_zero_std"] == 1


def test_kl_holds_the_model_to_its_start(make_grpo, recipe, base_folder):
    moved = {}
    for k, beta in enumerate((0.0, 2.0)):
        run = make_grpo(
            f"copy-20260101T000000-000{k}",
            rewards=[{"function": "rewards:vowels"}],
            args={"beta": beta, "max_steps": 8},
        )
        assert recipe("grpo", run) == 0
        base = load_file(base_folder / "model.safetensors")
        moved[beta] = sum(float((t - base[n]).square().sum()) for n, t in weights(run, 8).items())
        assert ("kl" in metrics(run)[-1]) == (beta > 0)
    assert moved[2.0] < moved[0.0]


def test_resume_equals_going_through(make_grpo, recipe):
    run = make_grpo(rewards=[{"function": "rewards:vowels"}], save_every=2, args={"gradient_accumulation_steps": 2})
    assert recipe("grpo", run) == 0
    expected = weights(run)
    shutil.rmtree(run / "checkpoints" / "step-000004")
    (run / "attempt-0002").mkdir()
    assert recipe("grpo", run) == 0
    assert [e["resumed_from"] for e in events(run, "run.started")] == [None, 2]
    assert all(torch.equal(tensor, expected[name]) for name, tensor in weights(run).items())


def test_only_the_adapter_moves(make_grpo, recipe):
    run = make_grpo(
        rewards=[{"function": "rewards:numpy_number"}],
        adapter={"r": 2, "target_modules": "all-linear"},
        args={"beta": 0.1},
    )
    assert recipe("grpo", run) == 0
    assert all("lora" in name for name in weights(run)) and "kl" in metrics(run)[-1]


def test_numbers_that_do_not_divide(make_grpo, recipe):
    run = make_grpo(args={"num_generations": 3})
    assert recipe("grpo", run) == 1 and "whole groups of num_generations = 3" in outcome(run)["message"]
    run = make_grpo("copy-20260101T000000-000b", rewards=[{"skill": "copy", "check": {"kind": "text"}}])
    assert recipe("grpo", run) == 1 and "give one of skill, check, function" in json.dumps(outcome(run))
