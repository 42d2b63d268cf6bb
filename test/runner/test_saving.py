"""Checkpoints: whole or not there, no pickle, optimizer and random numbers exactly back."""

import hashlib
import json
import os
import random

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from seesaw_runner.checkpoints import saving
from seesaw_runner.run_folder import StageError
from seesaw_runner.training.loading import load_model
from seesaw_runner.training.stage_trainer import StageTrainer


def steps(model, optimizer, scheduler, n):
    for _ in range(n):
        model(torch.randn(4, 6)).square().sum().backward()
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()


def world(seed=0, optimizer=torch.optim.AdamW):
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 2))
    opt = optimizer(
        [{"params": [model[0].weight], "weight_decay": 0.1}, {"params": [model[0].bias, *model[2].parameters()]}],
        lr=1e-2,
    )
    return model, opt, torch.optim.lr_scheduler.LambdaLR(opt, lambda k: 1 / (k + 1))


@pytest.mark.parametrize("optimizer", [torch.optim.AdamW, torch.optim.SGD, torch.optim.Adagrad, torch.optim.RMSprop])
def test_optimizer_scheduler_and_randomness_come_back_exactly(tmp_path, optimizer):
    model, opt, scheduler = world(optimizer=optimizer)
    steps(model, opt, scheduler, 3)
    saving.save_optimizer(tmp_path, opt)
    saving.save_scheduler(tmp_path, scheduler)
    saving.save_random(tmp_path, 0)
    weights = {k: v.clone() for k, v in model.state_dict().items()}
    steps(model, opt, scheduler, 3)
    after, drawn = model.state_dict(), (random.random(), float(np.random.rand()), float(torch.rand(1)))

    again, opt2, scheduler2 = world(seed=5, optimizer=optimizer)
    again.load_state_dict(weights)
    saving.load_optimizer(tmp_path, opt2)
    saving.load_scheduler(tmp_path, scheduler2)
    saving.load_random(tmp_path, 0)
    steps(again, opt2, scheduler2, 3)
    assert all(torch.equal(v, again.state_dict()[k]) for k, v in after.items())
    assert drawn == (random.random(), float(np.random.rand()), float(torch.rand(1)))
    assert {p.suffix for p in tmp_path.iterdir()} == {".json", ".safetensors"}


def test_no_random_state_for_this_process_changes_nothing(tmp_path):
    before = torch.random.get_rng_state()
    saving.load_random(tmp_path, 3)
    assert torch.equal(before, torch.random.get_rng_state())


def test_odd_optimizer_state_is_refused_with_a_sentence(tmp_path):
    _, opt, _ = world()
    opt.state[next(iter(opt.param_groups[0]["params"]))]["odd"] = object()
    with pytest.raises(saving.CheckpointError, match="without pickle"):
        saving.save_optimizer(tmp_path, opt)


def test_publish_is_atomic_and_replaces(tmp_path):
    folder = tmp_path / "checkpoints"
    for content in ("one", "two"):
        temporary = saving.begin(folder, 7)
        assert temporary.name.startswith(".") and saving.complete_checkpoints(folder) in (
            [],
            [(7, folder / "step-000007")],
        )
        (temporary / "model.safetensors").write_text(content)
        saving.write_json(temporary / "seesaw.json", {"step": 7, "weights_hash": saving.weights_hash(temporary)})
        path = saving.publish(temporary, 7)
    assert path == folder / "step-000007" and (path / "model.safetensors").read_text() == "two"
    assert [p.name for p in folder.iterdir()] == ["step-000007"]


def test_torn_or_changed_checkpoints_are_not_resumed(tmp_path):
    def make(step, **about):
        folder = tmp_path / f"step-{step:06d}"
        (folder / "resume").mkdir(parents=True)
        (folder / "model.safetensors").write_bytes(b"w%d" % step)
        save_file({"0.step": torch.zeros(4)}, folder / "resume" / "optimizer.safetensors")
        for name in ("resume/optimizer.json", "resume/scheduler.json", "trainer_state.json"):
            (folder / name).write_text("{}")
        (folder / "seesaw.json").write_text(
            json.dumps({"step": step, "weights_hash": saving.weights_hash(folder), **about})
        )
        return folder

    good, changed, torn, weightless, cut = make(2), make(4), make(6), make(7), make(8)
    (weightless / "model.safetensors").unlink()
    os.truncate(cut / "resume" / "optimizer.safetensors", 90)
    (changed / "model.safetensors").write_bytes(b"w4 but half")
    (torn / "seesaw.json").write_text('{"step": 6')
    (tmp_path / ".step-000008.1.tmp").mkdir()
    assert saving.newest_resumable(tmp_path) == (2, good)


def test_weights_hash_is_that_of_the_file_and_pickles_are_refused(tmp_path, base_folder):
    digest = hashlib.sha256((base_folder / "model.safetensors").read_bytes()).hexdigest()
    assert saving.weights_hash(base_folder) == digest
    (tmp_path / "config.json").write_text((base_folder / "config.json").read_text())
    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x04never read")
    with pytest.raises(StageError, match="never unpickles") as error:
        load_model(str(tmp_path), torch.float32, torch.device("cpu"))
    assert error.value.code == "bad-checkpoint"


def test_half_written_weights_are_a_sentence(tmp_path, base_folder):
    import shutil

    shutil.copytree(base_folder, tmp_path / "m")
    data = (base_folder / "model.safetensors").read_bytes()
    (tmp_path / "m" / "model.safetensors").write_bytes(data[: len(data) // 2])
    with pytest.raises(StageError, match="cannot be loaded") as error:
        load_model(str(tmp_path / "m"), torch.float32, torch.device("cpu"))
    assert error.value.code == "bad-checkpoint"


def test_the_names_we_override_still_exist():
    from transformers import Trainer

    ours = [
        n
        for n, v in vars(StageTrainer).items()
        if callable(v) and n not in ("prepare_stage", "_save_weights", "_save_whole")
    ]
    assert ours and all(hasattr(Trainer, n) for n in ours)


def test_leftovers_of_a_dead_attempt_are_removed_and_a_replaced_save_is_put_back(tmp_path):
    checkpoints = tmp_path / "checkpoints"
    for name in (".step-000004.77.tmp", ".step-000006.77.old", ".step-000008.77.old", "step-000008"):
        folder = checkpoints / name
        folder.mkdir(parents=True)
        (folder / "model.safetensors").write_bytes(b"w")
        (folder / "seesaw.json").write_text(json.dumps({"step": 6, "weights_hash": saving.weights_hash(folder)}))
    trace = tmp_path / "traces" / "step-000004"
    trace.mkdir(parents=True)
    (trace / ".math.id.trace.77.tmp").write_bytes(b"half")
    (trace / "math.id.trace").write_bytes(b"whole")
    saving.remove_leftovers(tmp_path)
    assert sorted(p.name for p in checkpoints.iterdir()) == ["step-000006", "step-000008"]
    assert [p.name for p in trace.iterdir()] == ["math.id.trace"]
    saving.remove_leftovers(tmp_path / "nothing here")


def test_one_identity_is_one_model(base_folder, tmp_path):
    """The same weights under another config, and the same adapter on another base, are other models."""
    import shutil

    same, other = tmp_path / "same", tmp_path / "other"
    shutil.copytree(base_folder, same)
    shutil.copytree(base_folder, other)
    config = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps({**config, "rms_norm_eps": 0.1}))
    assert saving.identity(base_folder) == saving.identity(same) != saving.identity(other)
    assert saving.weights_hash(base_folder) == saving.weights_hash(other)
    for name, under in (("a", same), ("b", other)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "adapter_model.safetensors").write_bytes(b"the same adapter")
        (tmp_path / name / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": str(under)}))
    assert saving.identity(tmp_path / "a") != saving.identity(tmp_path / "b")
