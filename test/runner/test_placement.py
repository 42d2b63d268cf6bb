"""Frozen models that do not fit on one device: the decision by figures, and models that really lie in parts. Without a
GPU the parts are main memory and disk; accelerate's hooks and parameters on `meta` are the same.
"""

import json

import pytest
import torch
from conftest import as_model, build_model, chat, copy_rows, events
from safetensors.torch import load_file
from seesaw_runner.distillation.teachers import Rolled, score_rows
from seesaw_runner.scoring.causal_lm import CausalLM
from seesaw_runner.scoring.generate import generate
from seesaw_runner.training import session
from seesaw_runner.training.loading import load_model
from seesaw_runner.training.placement import Placement, TooLarge, in_parts, loaded_bytes, place, told_parts

GIB = 2**30
CPU = torch.device("cpu")


def test_what_fits_on_the_first_gpu_stays_there():
    assert place(14 * GIB, [(0, 24 * GIB)], 64 * GIB) is None
    assert place(14 * GIB, [], 1) is None  # only main memory: nothing to choose
    assert place(int(0.85 * 100), [(0, 100)], 0) is None and place(86, [(0, 100)], 1000) is not None


def test_what_does_not_fit_is_spread_over_all_gpus_and_then_the_main_memory():
    found = place(30 * GIB, [(1, 24 * GIB), (0, 20 * GIB)], 64 * GIB)
    assert list(found.max_memory) == [1, 0, "cpu"]
    assert [round(size / GIB, 1) for size in found.max_memory.values()] == [20.4, 17.0, 44.8]


def test_room_for_gradients_and_optimizer_is_kept_on_the_trained_models_gpu_alone():
    both = [(0, 80 * GIB), (1, 80 * GIB)]
    assert place(20 * GIB, both, 64 * GIB) is None
    found = place(20 * GIB, both, 64 * GIB, later=60 * GIB)
    assert [round(size / GIB, 1) for size in found.max_memory.values()] == [8.0, 68.0, 44.8]
    assert list(place(20 * GIB, both, 64 * GIB, later=90 * GIB).max_memory) == [1, "cpu"]  # nothing left on the first


def test_a_model_that_fits_nowhere_is_an_error_with_the_figures():
    with pytest.raises(TooLarge, match=r"Llama takes 140\.0 GiB, but only 68\.0 GiB on 1 GPU and 44\.8 GiB of main"):
        place(140 * GIB, [(0, 80 * GIB)], 64 * GIB, name="Llama")
    assert place(140 * GIB, [(0, 80 * GIB)], None).max_memory["cpu"] == 140 * GIB  # unknown: try


def test_bytes_of_an_adapter_are_those_of_the_model_it_is_merged_into(base_folder, tmp_path):
    adapter = make_adapter(base_folder, tmp_path / "adapter")
    count = sum(p.numel() for p in build_model().parameters())
    assert loaded_bytes(base_folder, 2) == loaded_bytes(adapter, 2) == 2 * count


# ---- models in parts


def make_adapter(base_folder, folder):
    from peft import LoraConfig, get_peft_model

    model = load_model(str(base_folder), torch.float32, CPU)
    torch.manual_seed(5)
    model = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", r=2, target_modules="all-linear"))
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.3)
    model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def deep_folder(tmp_path_factory, tokenizer):
    """Twelve layers, so that some fit into half of the memory and some do not."""
    folder = tmp_path_factory.mktemp("deep")
    build_model(3, num_hidden_layers=12).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def halved(folder) -> Placement:
    return Placement({"cpu": loaded_bytes(folder, 4) * 2 // 3})


def test_a_model_in_parts_computes_what_the_whole_one_does(deep_folder, encoded):
    whole = load_model(str(deep_folder), torch.float32, CPU).eval()
    parts = load_model(str(deep_folder), torch.float32, CPU, placement=halved(deep_folder)).eval()
    assert {"cpu", "disk"} == {str(part) for part in parts.hf_device_map.values()}
    assert in_parts(parts) and not in_parts(whole)
    assert told_parts(parts) == ("main memory and disk", True)
    rows = [Rolled(row.ids, row.scored[0]) for row in encoded[:6]]
    with torch.no_grad():
        for a, b in zip(score_rows(whole, rows), score_rows(parts, rows), strict=True):
            assert torch.equal(a.logprob, b.logprob)
    assert CausalLM(parts).path == "whole" and CausalLM(whole).path == "head"
    prompts = [row.ids[: row.scored[0]] for row in encoded[:6]]
    options = {"max_new_tokens": 6, "ends": {4}}
    assert generate(parts, prompts, **options) == generate(whole, prompts, **options)


def test_an_adapter_in_parts_is_merged_first_and_leaves_nothing_behind(base_folder, tmp_path, encoded):
    adapter = make_adapter(base_folder, tmp_path / "adapter")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    whole = load_model(str(adapter), torch.float32, CPU).eval()
    found = load_model(str(adapter), torch.float32, CPU, placement=Placement({"cpu": 10**9}), scratch=scratch).eval()
    ids = torch.tensor([encoded[0].ids])
    with torch.no_grad():
        assert torch.equal(whole(input_ids=ids).logits, found(input_ids=ids).logits)
        assert not torch.equal(whole(input_ids=ids).logits, build_model()(input_ids=ids).logits)
    assert not list(scratch.iterdir()) and not in_parts(found)


def test_a_labeller_in_parts_answers_and_the_journal_says_that_it_is_slow(make_run, recipe, deep_folder, monkeypatch):
    options = {"labeller": "t", "check": False, "max_new_tokens": 6, "temperature": 0.7, "batch_size": 16}
    learned = []
    for k, found in enumerate((None, halved(deep_folder))):
        monkeypatch.setattr(session, "frozen_placement", lambda *_, found=found, **__: found)
        run = make_run(
            f"copy-20260101T000000-000{k}",
            train=[chat(row["messages"][0]["content"], "x") for row in copy_rows(24, 1)],
            recipe="self-distill",
            options={**options, "check": {"kind": "regex", "pattern": "."}},
            models={"t": as_model(deep_folder)},
            args={"max_steps": 2},
        )
        code = recipe("self-distill", run)
        told = [e for e in events(run, "warning") if e["code"] == "model-in-parts"]
        learned.append((code, (run / "relabelled.jsonl").read_text() if code == 0 else json.dumps(events(run)[-1])))
        assert len(told) == (1 if found else 0)
    assert told[0]["message"].endswith(
        "main memory and disk. Every forward pass copies the rest to the GPU, so it will be slow."
    )
    assert learned[0] == learned[1]


def test_a_teacher_in_parts_teaches_the_same(make_run, recipe, taught_folder, monkeypatch):
    learned = []
    for k, found in enumerate((None, Placement({"cpu": loaded_bytes(taught_folder, 4) // 2}))):
        monkeypatch.setattr(session, "frozen_placement", lambda *_, found=found, **__: found)
        rows = [{**row, "data_source": "copy"} for row in copy_rows(24, 1)]
        run = make_run(
            f"copy-20260101T000000-000{k}",
            train=rows,
            recipe="distill",
            options={"teachers": {"copy": "t"}, "max_new_tokens": 6},
            models={"t": as_model(taught_folder)},
            args={"max_steps": 3, "logging_steps": 1},
        )
        assert recipe("distill", run) == 0
        assert any(e["code"] == "model-in-parts" for e in events(run, "warning")) == (found is not None)
        learned.append(load_file(run / "checkpoints" / "step-000003" / "model.safetensors"))
    whole, parts = learned
    assert whole.keys() == parts.keys() and all(torch.equal(tensor, parts[name]) for name, tensor in whole.items())
