"""DPO on the tiny model: the margin grows, the reference stays, resume equals going through, options take effect."""

import json

import pytest
import torch
from conftest import as_model, copy_rows, events, outcome
from safetensors.torch import load_file

ARGS = {"learning_rate": 2e-3, "beta": 0.5, "logging_steps": 1, "max_steps": 8}


def preferences(n=32):
    """The right copy is preferred to the words in reverse with one more."""
    rows = []
    for row in copy_rows(n, 1):
        question, answer = (message["content"] for message in row["messages"])
        wrong = " ".join([*reversed(answer.split()), "rain"])
        rows.append(
            {
                "prompt": [{"role": "user", "content": question}],
                "chosen": [{"role": "assistant", "content": answer}],
                "rejected": [{"role": "assistant", "content": wrong}],
            }
        )
    return rows


def metrics(run):
    return [e["values"] for e in events(run, "metric")]


def weights(run, step=8):
    folder = run / "checkpoints" / f"step-{step:06d}"
    return load_file(
        folder
        / ("adapter_model.safetensors" if (folder / "adapter_model.safetensors").exists() else "model.safetensors")
    )


def test_margins_grow_and_are_told(make_run, recipe, base_folder):
    before = (base_folder / "model.safetensors").read_bytes()
    run = make_run(recipe="dpo", train=preferences(), args=ARGS)
    assert recipe("dpo", run) == 0
    told = metrics(run)
    assert told[0]["rewards/margins"] == pytest.approx(0, abs=1e-5)  # at the first step model and reference are equal
    assert told[-1]["rewards/margins"] > 0.5 and told[-1]["rewards/accuracies"] >= 0.75
    assert told[-1]["loss"] < told[0]["loss"] and "logps/chosen" in told[-1]
    assert (base_folder / "model.safetensors").read_bytes() == before
    base = load_file(base_folder / "model.safetensors")
    assert any(not torch.equal(tensor, base[name]) for name, tensor in weights(run).items())
    assert [e["step"] for e in events(run, "probe.scored")][-1] == 8


def test_adapter_off_is_the_same_reference(make_run, recipe, base_folder):
    """The first step's margins are 0 only when the adapter-off model is the start, and only the adapter is saved."""
    run = make_run(
        recipe="dpo",
        train=preferences(),
        args={**ARGS, "learning_rate": 0.02},
        adapter={"r": 4, "target_modules": "all-linear"},
    )
    assert recipe("dpo", run) == 0
    told = metrics(run)
    assert told[0]["rewards/margins"] == pytest.approx(0, abs=1e-5) and told[-1]["rewards/margins"] > 0.1
    assert all("lora" in name for name in weights(run))


def test_another_reference_changes_the_margins(make_run, recipe, taught_folder):
    run = make_run(
        recipe="dpo", train=preferences(), args=ARGS, options={"reference": "t"}, models={"t": as_model(taught_folder)}
    )
    assert recipe("dpo", run) == 0
    assert abs(metrics(run)[0]["rewards/margins"]) > 0.05


def test_resume_equals_going_through(make_run, recipe):
    whole = make_run("copy-20260101T000000-000a", recipe="dpo", train=preferences(), args=ARGS, save_every=4)
    halved = make_run("copy-20260101T000000-000b", recipe="dpo", train=preferences(), args=ARGS, save_every=4)
    assert recipe("dpo", whole) == 0 and recipe("dpo", halved) == 0
    expected = weights(whole)
    import shutil

    shutil.rmtree(halved / "checkpoints" / "step-000008")
    (halved / "attempt-0002").mkdir()
    assert recipe("dpo", halved) == 0
    assert [e["resumed_from"] for e in events(halved, "run.started")] == [None, 4]
    assert all(torch.equal(tensor, expected[name]) for name, tensor in weights(halved).items())


def test_rows_that_are_no_preference_are_told(make_run, recipe):
    good = preferences(8)
    bad = [
        {**good[0], "rejected": good[0]["chosen"]},
        copy_rows(1, 9)[0],
        {
            "chosen": [{"role": "user", "content": "a"}, *good[0]["chosen"]],
            "rejected": [{"role": "user", "content": "b"}, *good[0]["rejected"]],
        },
    ]
    run = make_run(recipe="dpo", train=[*good, *bad], args=ARGS)
    assert recipe("dpo", run) == 0
    told = [e["message"] for e in events(run, "warning") if e["code"] == "row-skipped"]
    assert len(told) == 3 and any("equals the rejected" in text for text in told)
    assert any("no chosen and rejected" in text for text in told) and any("same prompt" in text for text in told)
    assert events(run, "run.started")[0]["rows"] == 8


def test_plain_rows_alone_are_an_error(make_run, recipe):
    run = make_run(recipe="dpo", args=ARGS)
    assert recipe("dpo", run) == 1
    assert "is a usable preference. Line 1: The row has no chosen" in outcome(run)["message"]


def test_arguments_of_dpo_are_checked(make_run, recipe):
    run = make_run(recipe="dpo", train=preferences(), args={"sync_ref_model": True})
    assert recipe("dpo", run) == 1 and "args.sync_ref_model" in json.dumps(outcome(run))
    run = make_run("copy-20260101T000000-000c", recipe="dpo", train=preferences(), args={"betta": 0.1})
    assert recipe("dpo", run) == 1 and "Did you mean beta?" in outcome(run)["message"]
