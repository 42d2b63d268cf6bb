"""The merge recipe end to end: a checkpoint like any other, a report, a look at the answers, and exact restarts."""

import json
import signal

import pytest
import torch
from conftest import copy_rows, events
from safetensors.torch import load_file, save_file
from seesaw_runner.checkpoints import saving
from seesaw_runner.checkpoints.files import Checkpoint
from seesaw_runner.checkpoints.safetensors_header import Tensor
from seesaw_runner.merging import merge as merging
from seesaw_runner.merging.smoke import Answers, broken, loops
from seesaw_runner.preflight.space import check_space
from seesaw_runner.recipes import merge as recipe
from test_weights import adapter, moved, save

END = "checkpoints/step-000001"


@pytest.fixture
def merge_run(make_run, base_folder, tmp_path, monkeypatch):
    """merge_run(options, **changes) → a run folder whose models are a, b (full) and x, y (adapters of the base)."""
    monkeypatch.delenv("SEESAW_ATTEMPT", raising=False)
    kept = {n: signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT)}
    folders = {
        "a": save(tmp_path / "a", moved(1)),
        "b": save(tmp_path / "b", moved(2)),
        "x": adapter(tmp_path / "x", base_folder, 3, r=2),
        "y": adapter(tmp_path / "y", base_folder, 4, r=4),
    }
    models = {
        name: {
            "checkpoint": str(folder),
            "label": f"M{k}",
            "run": None,
            "step": 6,
            "weights_hash": saving.weights_hash(folder),
        }
        for k, (name, folder) in enumerate(folders.items(), 1)
    }

    def make(options, **changes):
        args = {"max_steps": None, "per_device_train_batch_size": None, "learning_rate": None}
        run = make_run(recipe="merge", data=None, stage="merged", models=models, options=options, args=args, **changes)
        spec = json.loads((run / "run.json").read_text())
        spec["args"] = {"use_cpu": True}
        (run / "run.json").write_text(json.dumps(spec))
        return run, folders

    yield make
    for number, handler in kept.items():
        signal.signal(number, handler)


def start(run):
    return recipe.main(["--run", str(run)])


def outcome(run, attempt=1):
    path = run / f"attempt-000{attempt}" / "outcome.json"
    return json.loads(path.read_text()) if path.exists() else None


def test_a_merge_is_a_checkpoint_that_is_scored_and_told(merge_run, base_folder):
    run, folders = merge_run(
        {"method": "task-arithmetic", "models": ["a", {"model": "b", "weight": 0.5}], "weight": 0.8}
    )
    assert start(run) == 0 and outcome(run) is None
    base, a, b, merged = (
        load_file(f / "model.safetensors") for f in (base_folder, folders["a"], folders["b"], run / END)
    )
    for name, w in base.items():
        assert torch.allclose(merged[name], w + 0.8 * ((a[name] - w) + 0.5 * (b[name] - w)), atol=1e-6)
    about = json.loads((run / END / "seesaw.json").read_text())
    told = events(run, "checkpoint.saved")
    assert (about["label"], about["kind"], about["step"]) == ("M1", "full", 1) and saving.intact(run / END)
    assert [(e["step"], e["final"], e["kind"], e["weights_hash"]) for e in told] == [
        (1, True, "full", about["weights_hash"])
    ]
    assert [(e["step"], e["split"]) for e in events(run, "probe.scored")] == [
        (s, x) for s in (0, 1) for x in ("id", "ood")
    ]
    assert {e["step"] for e in events(run, "eval.result")} == {0, 1}
    started = events(run, "run.started")[0]
    assert (started["total_steps"], started["rows"], started["trainable"]) == (1, 0, 0) and started["parameters"] > 0
    report = json.loads((run / "merge-report.json").read_text())
    assert events(run, "metric")[0]["values"]["merge/stored"] == report["total"]["stored"] > 0
    assert [m["weight"] for m in report["models"]] == [1, 0.5] and report["base"]["label"] == "M0"
    smoke = {s["split"]: s for s in report["smoke"]}
    scored = {(e["step"], e["split"]): e for e in events(run, "probe.scored")}
    for split in ("id", "ood"):
        assert (
            smoke[split]["after"]["rows"] == 34 == smoke[split]["after"]["answered"]
            and smoke[split]["after"]["nan"] == 0
        )
        for when, step in (("before", 0), ("after", 1)):
            assert smoke[split][when]["nll"] == pytest.approx(scored[step, split]["summary"]["nll"], rel=1e-4)
    assert not [e for e in events(run, "warning") if e["code"] == "merge-rounding"] and not list(run.rglob("*.tmp"))


def test_adapters_become_one_adapter_that_the_next_stage_starts_from(merge_run, sft, make_run):
    run, folders = merge_run({"method": "average", "models": ["x", "y"]}, skills=[])
    assert start(run) == 0
    assert [e["kind"] for e in events(run, "checkpoint.saved")] == ["adapter"] and not (
        run / END / "model.safetensors"
    ).exists()
    assert not events(run, "probe.scored") and any(e["code"] == "smoke-test" for e in events(run, "warning"))
    assert json.loads((run / "merge-report.json").read_text())["smoke"] is None
    after = make_run(
        name="next-20260101T000000-0002",
        start={"checkpoint": str(run / END), "label": "M1", "run": run.name, "step": 1},
        args={"max_steps": 1},
    )
    assert sft(after) == 0


def test_broken_answers_are_warned_about_and_smoke_false_is_silent(merge_run):
    options = {"method": "task-arithmetic", "models": ["a"], "weight": 400}
    run, _ = merge_run(options)
    assert start(run) == 0
    warnings = [e["message"] for e in events(run, "warning") if e["code"] == "smoke-test"]
    assert warnings and all("after the merge" in w for w in warnings)
    assert any(
        s["after"]["looping"] + s["after"]["cut"] + s["after"]["empty"] > 0
        for s in json.loads((run / "merge-report.json").read_text())["smoke"]
    )
    quiet, _ = merge_run({**options, "smoke": False}, name="quiet-20260101T000000-0002")
    assert start(quiet) == 0 and not [e for e in events(quiet, "warning") if e["code"] == "smoke-test"]


def test_a_half_written_merge_starts_over_and_a_whole_one_is_not_repeated(merge_run, monkeypatch):
    run, _ = merge_run({"method": "dare-linear", "models": ["a", "b"]})
    real, calls = merging._merge_full, []

    def dies(*args, **kwargs):
        calls.append(1)
        real(*args, **kwargs)
        raise KeyboardInterrupt  # as sudden as a kill: nothing after it runs in the recipe

    with monkeypatch.context() as patch:
        patch.setattr(merging, "_merge_full", dies)
        patch.setattr(recipe.shutil, "rmtree", lambda *_, **__: None)
        assert start(run) == 1
    assert list((run / "checkpoints").glob(".step-*")) and not (run / END).exists()
    (run / "attempt-0002").mkdir()
    assert start(run) == 0 and outcome(run, 2) is None
    assert [p.name for p in (run / "checkpoints").iterdir()] == ["step-000001"]
    file = (run / END / "model.safetensors").read_bytes()
    scored = len(events(run, "probe.scored"))

    monkeypatch.setattr(merging, "_merge_full", dies)
    (run / "attempt-0003").mkdir()
    assert start(run) == 0 and len(calls) == 1
    assert (run / END / "model.safetensors").read_bytes() == file and events(run, "run.started")[-1][
        "resumed_from"
    ] == 1
    assert len(events(run, "checkpoint.saved")) == 1 and len(events(run, "probe.scored")) >= scored
    assert json.loads((run / "merge-report.json").read_text())["smoke"] is not None


def test_a_signal_during_the_merge_leaves_nothing(merge_run, monkeypatch):
    run, _ = merge_run({"method": "ties", "models": ["a", "b"]}, skills=[])
    real = merging._merge_full

    def interrupted(*args, **kwargs):
        signal.raise_signal(signal.SIGTERM)
        return real(*args, **kwargs)

    monkeypatch.setattr(merging, "_merge_full", interrupted)
    assert start(run) == 143 and outcome(run)["code"] == "cancelled" and "starts over" in outcome(run)["message"]
    assert not list((run / "checkpoints").iterdir()) and not events(run, "checkpoint.saved")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"options": {"method": "ties", "models": ["a", "nobody"]}}, "nobody"),
        ({"options": {"method": "ties", "models": ["a", "b"], "lambda": 1}}, "no option lambda"),
        ({"adapter": {"r": 4}}, "`adapter` cannot be set"),
        ({"save_every": 2}, "`save_every` cannot be set"),
    ],
)
def test_what_would_be_ignored_is_an_error(merge_run, changes, words):
    run, _ = merge_run(changes.pop("options", {"method": "average", "models": ["a", "b"]}), **changes)
    assert start(run) == 1 and outcome(run)["code"] == "bad-argument" and words in outcome(run)["message"]


def test_nan_in_a_model_fails_the_stage_by_tensor_and_model(merge_run):
    run, folders = merge_run({"method": "average", "models": ["a", "b"]}, skills=[])
    tensors = load_file(folders["b"] / "model.safetensors")
    tensors["model.layers.1.mlp.up_proj.weight"][0, 0] = float("inf")
    save_file(tensors, folders["b"] / "model.safetensors")
    assert start(run) == 1 and outcome(run)["code"] == "bad-checkpoint"
    assert "model.layers.1.mlp.up_proj.weight of M2 (b) holds NaN or infinite" in outcome(run)["message"]
    assert not list((run / "checkpoints").iterdir())


def test_a_merge_is_not_told_that_it_trains_in_too_little_memory(tmp_path):
    huge = Checkpoint(tmp_path, "full", tensors={"w": Tensor("F32", (10**7, 10**6), 0, 4 * 10**13)})
    codes = {
        recipe: {f.code for f in check_space({"recipe": recipe, "args": {}}, tmp_path, huge, huge, 0)}
        for recipe in ("sft", "merge")
    }
    assert (
        "memory" not in codes["merge"] and codes["sft"] - codes["merge"] <= {"memory"} and "disk-full" in codes["merge"]
    )


def test_answers_are_judged_by_what_they_look_like():
    assert all(map(loops, ("sun sun sun sun ", "a" * 20, "It is so. no no no no no no no no")))
    assert not any(
        map(
            loops,
            ("", "sun sun", "7+5+0=12; 2+4+1=07; so 72", "aaaa", "one two one two", "11111111 is right, and so on"),
        )
    )
    before, now = Answers(rows=40, answered=40, looping=1), Answers(rows=40, answered=40, looping=3, empty=1, nan=2)
    assert [s.split(" of ")[0] for s in broken("copy.id", before, now)] == ["2", "3"]
    assert len(copy_rows(3, 1)) == 3
