"""Weight drift: against plain torch on whole models, adapters exact, streamed, and honest where it cannot compare."""

import json
import subprocess
import sys

import pytest
import torch
from conftest import RUNNER, build_model, build_tokenizer
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file, save_file
from seesaw_runner.run_folder import StageError
from seesaw_runner.weights import blocks
from seesaw_runner.weights.drift import measure
from seesaw_runner.weights.names import place
from seesaw_runner.weights.source import WeightSource


def save(folder, model, dtype=torch.float32, **shards):
    model.to(dtype).save_pretrained(folder, **shards)
    build_tokenizer().save_pretrained(folder)
    return folder


def moved(seed, size=0.01, **overrides):
    """The model of seed 0, every entry pushed a little."""
    model = build_model(0, **overrides)
    torch.manual_seed(seed)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn_like(p) * size)
    return model


def adapter(folder, base, seed, *, size=0.05, **config):
    """A LoRA on the model in `base` whose B is not zero."""
    model = build_model(0)
    model.name_or_path = str(base)
    torch.manual_seed(seed)
    wrapped = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", **{"target_modules": "all-linear", **config}))
    with torch.no_grad():
        for name, p in wrapped.named_parameters():
            if "lora_B" in name:
                p.copy_(torch.randn_like(p) * size)
    wrapped.peft_config["default"].base_model_name_or_path = str(base)
    wrapped.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def chain(tmp_path_factory):
    """M0, M1 and M2, the last one in shards."""
    root = tmp_path_factory.mktemp("chain")
    m1, m2 = moved(1), moved(1)
    torch.manual_seed(5)
    with torch.no_grad():
        m2.model.layers[1].mlp.up_proj.weight.add_(torch.randn(64, 3) @ torch.randn(3, 32) * 0.01)
    return (
        save(root / "m0", build_model(0)),
        save(root / "m1", m1),
        save(root / "m2", m2, max_shard_size="40KB"),
    )


def by_module(report):
    return {(m["layer"], m["module"]): m for m in report["modules"]}


@pytest.mark.parametrize("block", [None, 97])
def test_numbers_equal_plain_torch(chain, block, monkeypatch):
    if block:
        monkeypatch.setattr(blocks, "BLOCK", block)
    m0, m1, m2 = map(WeightSource, chain)
    assert len(list(chain[2].glob("model-*.safetensors"))) > 2
    report = measure(m1, m2, m0, rank=True)
    a, b, c = ({k: v.double() for k, v in load_all(f).items()} for f in (chain[1], chain[2], chain[0]))
    for entry in report["tensors"]:
        name = entry["name"]
        delta, earlier = b[name] - a[name], a[name] - c[name]
        assert entry["relative"] == pytest.approx(float(delta.norm() / a[name].norm()), rel=1e-5)
        assert entry["changed"] == pytest.approx(float((delta != 0).double().mean()))
        if name != "model.layers.1.mlp.up_proj.weight":
            assert entry["delta_norm"] == 0 and entry["cosine"] is None and entry["effective_rank"] is None
            continue
        expected = torch.nn.functional.cosine_similarity(delta.flatten(), earlier.flatten(), 0)
        assert entry["cosine"] == pytest.approx(float(expected), rel=1e-4)
        values = torch.linalg.svdvals(delta)
        shares = values / values.sum()
        effective = float(torch.exp(-(shares[:3] * shares[:3].log()).sum()))
        assert entry["effective_rank"] == pytest.approx(effective, rel=1e-2) and entry["effective_rank"] <= 3.1
        assert entry["stable_rank"] == pytest.approx(float(values.square().sum() / values[0] ** 2), rel=1e-4)
    assert {e["name"] for e in report["tensors"]} == set(a) and report["total"]["count"] == sum(
        t.numel() for t in a.values()
    )
    whole = by_module(report)[1, "mlp.up_proj"]
    assert report["total"]["delta_norm"] == pytest.approx(whole["delta_norm"]) == report["layers"][-1]["delta_norm"]
    assert any("tied" in note for note in report["notes"])


def load_all(folder):
    return {k: v for path in sorted(folder.glob("model*.safetensors")) for k, v in load_file(path).items()}


def test_an_adapter_is_expanded_exactly_also_on_another_adapter(chain, tmp_path):
    from seesaw_runner.training.loading import load_model

    first = adapter(tmp_path / "a", chain[0], 1, r=4, lora_alpha=8, use_rslora=True, alpha_pattern={"up_proj": 3})
    second = adapter(tmp_path / "b", first, 2, r=2, target_modules=["q_proj", "embed_tokens"])
    source = WeightSource(second, "M2")
    assert source.kind == "adapter" and len(source.adapters) == 2
    loaded = load_model(str(second), torch.float32, torch.device("cpu")).state_dict()
    for name in source.names:
        assert torch.allclose(source.read(name), loaded[name].reshape(source.read(name).shape), atol=1e-6), name
    report = measure(WeightSource(chain[0]), WeightSource(first), rank=True)
    for entry in report["tensors"]:
        if "proj" in entry["name"]:
            assert 1 <= entry["effective_rank"] <= 4.01
        else:
            assert entry["delta_norm"] == 0


def test_transposed_layers_and_modules_trained_whole_are_expanded_too(tmp_path):
    from seesaw_runner.training.loading import load_model
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    size = {"vocab_size": 64, "n_positions": 32, "n_embd": 16, "n_layer": 1, "n_head": 2}
    GPT2LMHeadModel(GPT2Config(**size)).save_pretrained(tmp_path / "gpt2")
    free = save(tmp_path / "free", build_model(0, tie_word_embeddings=False))
    for base, config in (
        (tmp_path / "gpt2", {"target_modules": ["c_attn", "c_fc"], "fan_in_fan_out": True}),
        (free, {"target_modules": ["q_proj"], "modules_to_save": ["lm_head", "norm"]}),
    ):
        model = load_model(str(base), torch.float32, torch.device("cpu"))
        wrapped = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", r=3, lora_alpha=5, **config))
        with torch.no_grad():
            for p in wrapped.parameters():
                if p.requires_grad:
                    p.add_(torch.randn_like(p) * 0.1)
        folder = tmp_path / f"{base.name}-adapter"
        wrapped.save_pretrained(folder)
        loaded = load_model(str(folder), torch.float32, torch.device("cpu")).state_dict()
        source, under = WeightSource(folder), WeightSource(base)
        changed = [n for n in source.names if not torch.equal(source.read(n), under.read(n))]
        assert changed and all(source.touched(n) for n in changed)
        for name in source.names:
            assert torch.allclose(source.read(name), loaded[name].reshape(source.read(name).shape), atol=1e-6), name
        report = measure(under, source)
        assert report["total"]["changed"] == pytest.approx(
            sum(loaded[n].numel() for n in changed) / report["total"]["count"], rel=0.01
        )


def test_an_adapter_trained_on_an_adapter_names_it_as_its_base(chain, tmp_path):
    from seesaw_runner.training.loading import load_model

    first = adapter(tmp_path / "a", chain[0], 1, r=4)
    model = load_model(str(first), torch.float32, torch.device("cpu"))
    get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", target_modules=["q_proj"])).save_pretrained(tmp_path / "b")
    source = WeightSource(tmp_path / "b", "M2")
    assert len(source.adapters) == 2 and source.adapters[0].checkpoint.folder == first


def test_unlike_checkpoints_are_compared_where_they_can_be(chain, tmp_path):
    wider = save(tmp_path / "wide", build_model(0, vocab_size=322))
    half = save(tmp_path / "half", moved(1), torch.bfloat16)
    free = save(tmp_path / "free", build_model(0, tie_word_embeddings=False))
    m0 = WeightSource(chain[0], "M0")
    report = measure(m0, WeightSource(wider, "wide"))
    assert any("320" in n and "first 320 rows are compared" in n for n in report["notes"])
    report = measure(m0, WeightSource(free, "free"))
    assert report["only_b"] == ["lm_head.weight"] and any("head of its own" in n for n in report["notes"])
    assert any("BF16" in n and "rounding" in n for n in measure(m0, WeightSource(half, "half"))["notes"])
    wrapped = tmp_path / "ddp"
    wrapped.mkdir()
    save_file(
        {f"module._orig_mod.{k}": v for k, v in load_file(chain[0] / "model.safetensors").items()},
        wrapped / "model.safetensors",
    )
    (wrapped / "config.json").write_text((chain[0] / "config.json").read_text())
    report = measure(m0, WeightSource(wrapped, "ddp"))
    assert (
        report["total"]["changed"] == 0
        and not report["only_a"]
        and any("module._orig_mod." in n for n in report["notes"])
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"use_dora": True}, "DoRA"),
        ({"lora_bias": True}, "lora_bias"),
        ({"bias": "all"}, "bias: all"),
        ({"init_lora_weights": "pissa_niter_4"}, "pissa"),
        ({"some_new_maths": 3}, "some_new_maths"),
        ({"peft_type": "LOHA"}, "LOHA"),
        ({"r": 8}, "ranks 4 and 4, and adapter_config.json says 8"),
        ({"base_model_name_or_path": "/nowhere/m0"}, "/nowhere/m0"),
        ({"base_model_name_or_path": "{narrow}"}, "down_proj.weight is 32×64 and that of its base 32×80"),
    ],
)
def test_adapters_that_are_not_plain_are_refused_by_name(chain, tmp_path, change, words):
    narrow = save(tmp_path / "narrow", build_model(0, intermediate_size=80))
    folder = adapter(tmp_path / "a", chain[0], 1, r=4)
    path = folder / "adapter_config.json"
    change = {k: v.format(narrow=narrow) if isinstance(v, str) else v for k, v in change.items()}
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(StageError) as error:
        WeightSource(folder, "expert")
    assert words in str(error.value) and "expert" in str(error.value) and error.value.code == "bad-checkpoint"


def test_layers_and_modules_of_usual_names():
    assert place("model.layers.3.self_attn.q_proj.weight") == (3, "self_attn.q_proj")
    assert place("transformer.h.11.mlp.c_fc.bias") == (11, "mlp.c_fc.bias")
    assert place("model.layers.0.mlp.experts.17.up_proj.weight") == (0, "mlp.experts.*.up_proj")
    assert place("model.embed_tokens.weight") == (None, "embed_tokens") and place("lm_head.weight") == (None, "lm_head")


def test_the_command_prints_json_or_one_sentence(chain, tmp_path, capsys):
    from seesaw_runner.weights.__main__ import main

    def run(*argv):
        done = subprocess.run(
            [sys.executable, "-m", "seesaw_runner.weights", *map(str, argv)], cwd=RUNNER, capture_output=True, text=True
        )
        return done.returncode, json.loads(done.stdout)

    code, report = run(chain[1], chain[2], "--with", chain[0], "--rank", "--label", "M1", "--label", "M2")
    assert code == 0 and report["with"]["path"] == str(chain[0]) and report["total"]["cosine"] is not None
    broken = tmp_path / "broken"
    tensors = load_file(chain[0] / "model.safetensors")
    tensors["model.layers.0.mlp.up_proj.weight"][3, 4] = float("nan")
    build_model(0).save_pretrained(broken)
    save_file(tensors, broken / "model.safetensors")
    code = main([str(chain[0]), str(broken), "--label", "M0", "--label", "M1"])
    report = json.loads(capsys.readouterr().out)
    assert code == 1 and report["message"].startswith("model.layers.0.mlp.up_proj.weight of M1 holds NaN")
