"""Checkpoints that are almost right, from bug reports of other projects: names with wrappers' prefixes, a vocabulary
that config, weights and tokenizer do not agree on, an adapter that is put on another base.
"""

import json
import shutil

import pytest
import torch
from conftest import as_model, build_model, chat, copy_rows, events, outcome
from safetensors.torch import load_file, save_file
from seesaw_runner.checkpoints.files import inspect_checkpoint
from seesaw_runner.checkpoints.saving import identity
from seesaw_runner.run_folder import StageError
from seesaw_runner.training.loading import load_model
from test_router import experts, make_router  # noqa: F401

CPU = torch.device("cpu")


def copy_with(folder, to, change):
    """The same checkpoint with its tensors changed by `change(tensors)`."""
    shutil.copytree(folder, to)
    name = "adapter_model.safetensors" if (to / "adapter_config.json").exists() else "model.safetensors"
    save_file(change(load_file(to / name)), to / name, metadata={"format": "pt"})
    return to


def findings(folder, severity):
    return [str(f.message) for f in inspect_checkpoint(folder).findings if f.severity == severity]


def set_config(folder, name="config.json", **values):
    path = folder / name
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


# ---- prefixes of torch.compile and DistributedDataParallel


@pytest.mark.parametrize("prefix", ["_orig_mod.", "module.", "module._orig_mod."])
def test_a_wrappers_prefix_is_taken_off_and_said(base_folder, tmp_path, prefix):
    folder = copy_with(base_folder, tmp_path / "m", lambda tensors: {prefix + k: v for k, v in tensors.items()})
    before = (folder / "model.safetensors").read_bytes()
    (note,) = findings(folder, "info")
    assert f"begin with {prefix}, which" in note and inspect_checkpoint(folder).usable
    assert ("torch.compile" in note, "DistributedDataParallel" in note) == ("_orig" in prefix, "module" in prefix)
    found, plain = load_model(str(folder), torch.float32, CPU), load_model(str(base_folder), torch.float32, CPU)
    for (name, a), (other, b) in zip(found.state_dict().items(), plain.state_dict().items(), strict=True):
        assert name == other and torch.equal(a, b), name
    assert (folder / "model.safetensors").read_bytes() == before


def test_mixed_prefixes_are_read_too_with_a_warning(base_folder, tmp_path):
    def half(tensors):
        return {("_orig_mod." if k % 2 else "") + name: t for k, (name, t) in enumerate(sorted(tensors.items()))}

    folder = copy_with(base_folder, tmp_path / "m", half)
    total = len(load_file(base_folder / "model.safetensors"))
    (said,) = findings(folder, "warning")
    assert said.startswith(f"the names of {total // 2} of its {total} tensors begin with _orig_mod.,")
    found, plain = load_model(str(folder), torch.float32, CPU), load_model(str(base_folder), torch.float32, CPU)
    assert all(torch.equal(a, b) for a, b in zip(found.parameters(), plain.parameters(), strict=True))


def test_a_stage_starts_from_a_compiled_checkpoint(base_folder, tmp_path, make_run, sft):
    folder = copy_with(base_folder, tmp_path / "m", lambda tensors: {f"_orig_mod.{k}": v for k, v in tensors.items()})
    last = []
    for k, start in enumerate((base_folder, folder)):
        run = make_run(
            f"copy-20260101T000000-000{k}", start={"checkpoint": str(start), "label": "M0", "run": None, "step": None}
        )
        assert sft(run) == 0
        last.append(load_file(run / "checkpoints" / "step-000006" / "model.safetensors"))
    assert last[0].keys() == last[1].keys()
    assert all(torch.equal(tensor, last[1][name]) for name, tensor in last[0].items())


# ---- the size of the vocabulary


def test_config_and_weights_that_disagree_are_refused_with_both_numbers(base_folder, tmp_path, make_run, sft):
    folder = copy_with(
        base_folder, tmp_path / "m", lambda t: {k: v[:310].clone() if "embed_tokens" in k else v for k, v in t.items()}
    )
    (said,) = findings(folder, "error")
    assert said == "config.json says that there are 320 tokens, and model.embed_tokens.weight has 310 rows"
    run = make_run(start={"checkpoint": str(folder), "label": "M0", "run": None, "step": None})
    assert sft(run) == 1
    assert "320" in outcome(run)["message"] and "310" in outcome(run)["message"]
    assert findings(base_folder, "error") == findings(base_folder, "warning") == []


def test_tokens_without_an_embedding_are_counted_and_rows_with_them_left_out(base_folder, tmp_path, make_run, sft):
    from transformers import AutoTokenizer

    folder = tmp_path / "m"
    shutil.copytree(base_folder, folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    rows, size = build_model().get_input_embeddings().weight.shape[0], len(tokenizer)
    tokenizer.add_tokens([f"<{k}>" for k in range(rows - size + 2)])  # the last two are beyond the table
    tokenizer.save_pretrained(folder)
    beyond = f"<{rows - size}>"
    (said,) = findings(folder, "warning")
    assert said.startswith(f'2 token ids have no embedding ("{beyond}" is {rows}, and there are {rows} rows)')
    train = [*copy_rows(20, 1), chat(f"say {beyond}", beyond), chat("say <0>", "<0>")]
    run = make_run(train=train, start={"checkpoint": str(folder), "label": "M0", "run": None, "step": None})
    assert sft(run) == 0
    told = {e["code"]: e["message"] for e in events(run, "warning")}
    assert "2 token ids have no embedding" in told["token-without-embedding"]
    assert told["row-skipped"] == (
        f"1 training rows are left out. Line 21: The row has the token {beyond} (id {rows}), for which the model "
        "has no embedding."
    )


def test_a_tokenizer_with_fewer_tokens_than_rows_is_usual(tmp_path, base_folder):
    folder = tmp_path / "m"
    shutil.copytree(base_folder, folder)
    build_model(vocab_size=384).save_pretrained(folder)
    assert inspect_checkpoint(folder).findings == []


# ---- an adapter and its base


@pytest.fixture(scope="session")
def adapter(experts):  # noqa: F811
    return experts["red"]


def on(adapter, base, to):
    shutil.copytree(adapter, to)
    set_config(to, "adapter_config.json", base_model_name_or_path=str(base))
    return to


def test_an_adapter_of_another_width_is_refused_with_both_shapes(adapter, tmp_path, tokenizer):
    wide = tmp_path / "wide"
    build_model(hidden_size=48, intermediate_size=96).save_pretrained(wide)
    with pytest.raises(
        StageError, match=r"does not fit .*wide: its model\.layers\.0\.\S+ is 32×64, and the model's is 48×96\."
    ):
        load_model(str(on(adapter, wide, tmp_path / "a")), torch.float32, CPU)


def test_matrices_that_find_no_place_are_counted(adapter, tmp_path, base_folder):
    one_layer = tmp_path / "short"
    build_model(num_hidden_layers=1).save_pretrained(one_layer)
    total = len(load_file(adapter / "adapter_model.safetensors"))
    with pytest.raises(StageError, match=rf"{total // 2} of its {total} matrices have no place in the model, first"):
        load_model(str(on(adapter, one_layer, tmp_path / "a")), torch.float32, CPU)
    cut = copy_with(adapter, tmp_path / "cut", lambda t: {k: v for k, v in t.items() if ".layers.1." not in k})
    with pytest.raises(StageError, match=rf"{total // 2} of the {total} matrices it should have are not in it, first"):
        load_model(str(cut), torch.float32, CPU)
    assert load_model(str(adapter), torch.float32, CPU)


def test_a_base_of_equal_shapes_and_other_weights_is_a_warning(
    adapter, base_folder, tmp_path, make_run, sft, tokenizer
):
    other = tmp_path / "base"
    build_model(9).save_pretrained(other)
    tokenizer.save_pretrained(other)
    cases = {
        "same": (base_folder, identity(base_folder), None),
        "other": (other, identity(base_folder), "was trained on other weights than"),
        "unknown": (other, None, "is not verified"),
    }
    for k, (name, (base, recorded, said)) in enumerate(cases.items()):
        folder = on(adapter, base, tmp_path / name)
        if recorded:
            (folder / "seesaw.json").write_text(json.dumps({"v": 1, "base": recorded}))
        run = make_run(
            f"copy-20260101T000000-000{k}",
            start={"checkpoint": str(folder), "label": "M1", "run": None, "step": None},
            args={"max_steps": 1},
        )
        assert sft(run) == 0
        told = [e for e in events(run, "warning") if e["code"] == "adapter-base"]
        assert len(told) == (said is not None), name
        if said:
            assert said in told[0]["message"] and told[0]["severity"] == ("warning" if recorded else "info")


def test_an_adapter_says_what_it_was_trained_on_and_a_router_looks_at_it(
    make_run,
    recipe,
    base_folder,
    make_router,  # noqa: F811
    tmp_path,
):
    run = make_run(recipe="experts", adapter={"r": 2, "target_modules": "all-linear"}, args={"max_steps": 2})
    assert recipe("experts", run) == 0
    saved = run / "checkpoints" / "step-000002"
    assert json.loads((saved / "seesaw.json").read_text())["base"] == identity(base_folder)
    swapped = tmp_path / "swapped"
    shutil.copytree(saved, swapped)
    set_config(swapped, "seesaw.json", base="0" * 64)
    router = make_router(models={"red-stage": as_model(swapped, "RED")})
    assert recipe("router", router) == 1
    assert "was trained on other weights than" in outcome(router)["message"]
