"""Merging: every method against independent arithmetic, streamed in bounded memory, exact for adapters."""

import json
import math
import os
import subprocess
import sys

import pytest
import torch
from conftest import RUNNER, build_model
from peft import PeftModel
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from seesaw_runner.merging.magnitudes import kth_magnitude
from seesaw_runner.merging.merge import merge
from seesaw_runner.merging.options import read_options
from seesaw_runner.run_folder import StageError
from seesaw_runner.training.loading import load_model
from seesaw_runner.weights import blocks
from seesaw_runner.weights.source import WeightSource
from test_weights import adapter, moved, save

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A base and two models trained apart, float32."""
    root = tmp_path_factory.mktemp("models")
    return {
        "base": save(root / "m0", build_model(0)),
        "a": save(root / "a", moved(1)),
        "b": save(root / "b", moved(2, 0.02)),
    }


def run(folder, models, options, *, seed=7, order=("a", "b"), **more):
    """Merges; gives (tensors, report)."""
    folder.mkdir(parents=True)
    options = read_options({"models": list(order), **options})
    sources = [WeightSource(models[ref], f"model {ref}") for ref, _ in options.models]
    hashes = [f"hash of {ref}" for ref, _ in options.models]
    report = merge(options, sources, WeightSource(models["base"], "M0"), folder, hashes=hashes, seed=seed, **more)
    return {k: v for path in sorted(folder.glob("*model*.safetensors")) for k, v in load_file(path).items()}, report


def dense(models, *names):
    return [load_file(models[name] / "model.safetensors") for name in names]


def slerp(a, b, t):
    """As in mergekit."""
    v0, v1 = a.double().flatten(), b.double().flatten()
    dot = float((v0 / v0.norm()) @ (v1 / v1.norm()))
    if abs(dot) > 0.9995:
        return (1 - t) * a + t * b
    angle = math.acos(dot)
    return ((math.sin((1 - t) * angle) * v0 + math.sin(t * angle) * v1) / math.sin(angle)).view(a.shape).float()


def ties(deltas, density, weights):
    """PEFT's own, whose weights scale the changes but not the mean's divisor."""
    from peft.utils.merge_utils import ties as peft_ties

    return peft_ties(deltas, torch.tensor(weights), density)


METHODS = {
    "average": ({}, lambda w, a, b: (a + b) / 2),
    "linear": ({"weight": 0.3}, lambda w, a, b: 0.7 * a + 0.3 * b),
    "slerp": ({"weight": 0.25}, lambda w, a, b: slerp(a, b, 0.25)),
    "task-arithmetic": ({"weight": 0.6}, lambda w, a, b: w + 0.6 * ((a - w) + (b - w))),
    "ties": ({"weight": 0.9, "density": 0.3}, lambda w, a, b: w + 0.9 * ties([a - w, b - w], 0.3, [1.0, 1.0])),
}


@pytest.mark.parametrize("method", METHODS)
def test_methods_equal_the_dense_computation_whatever_the_blocks(models, tmp_path, monkeypatch, method):
    options, expected = METHODS[method]
    merged, report = run(tmp_path / "one", models, {"method": method, **options})
    for name, w, a, b in rows(models, "base", "a", "b"):
        assert torch.allclose(merged[name], expected(w, a, b), atol=3e-7), name
    assert (
        report["output"] == "full"
        and report["total"]["cosine"] == pytest.approx(1, abs=1e-6)
        and not report["warnings"]
    )
    base = dense(models, "base")[0]
    squares = sum(float((merged[k] - base[k]).double().square().sum()) for k in base)
    norm = sum(float(v.double().square().sum()) for v in base.values())
    assert report["total"]["stored"] == pytest.approx(math.sqrt(squares / norm), rel=1e-5)
    monkeypatch.setattr(blocks, "BLOCK", 500)
    sharded = {**models, "a": save(tmp_path / "a", moved(1), max_shard_size="40KB")}
    assert len(list(sharded["a"].glob("model-*.safetensors"))) > 2
    again, _ = run(tmp_path / "two", sharded, {"method": method, **options}, shard_bytes=20_000)
    assert len(list((tmp_path / "two").glob("model-*.safetensors"))) > 3
    assert all(torch.allclose(merged[k], again[k], atol=1e-7) for k in merged)
    if method != "slerp":  # its sums are added up in another order
        assert all(torch.equal(merged[k], again[k]) for k in merged)
    loaded = load_model(str(tmp_path / "two"), torch.float32, CPU)
    assert torch.equal(loaded.lm_head.weight, again["model.embed_tokens.weight"]) and report["tied"] is True
    assert "lm_head.weight" not in again


def rows(models, *names):
    found = dense(models, *names)
    for name in found[0]:
        yield name, *(tensors[name] for tensors in found)


def test_identities_are_exact(models, tmp_path):
    a = dense(models, "a")[0]
    for k, options in enumerate(
        (
            {"method": "linear", "models": [{"model": "a", "weight": 1}, {"model": "b", "weight": 0}]},
            {"method": "slerp", "weight": 0},
            {"method": "task-arithmetic", "models": ["a"]},
            {"method": "ties", "models": ["a"], "density": 1},
            {"method": "dare-linear", "models": ["a"], "density": 1},
        )
    ):
        merged, _ = run(tmp_path / str(k), models, options)
        off = max(float((merged[n] - a[n]).abs().max()) for n in a)
        assert off <= (0 if k < 2 else 1e-8), options
    nothing, report = run(tmp_path / "none", models, {"method": "task-arithmetic", "weight": 0})
    assert report["total"]["changed"] == 0 and "changes nothing" in report["warnings"][0]


@pytest.mark.parametrize("change", [{"vocab_size": 330}, {"num_hidden_layers": 1}])
def test_a_mix_needs_no_base_and_task_arithmetic_does(models, tmp_path, change):
    found = {**models, "base": save(tmp_path / "other", build_model(0, **change))}
    merged, report = run(tmp_path / "mean", found, {"method": "average"})
    expected, _ = run(tmp_path / "usual", models, {"method": "average"})
    assert all(torch.equal(merged[k], expected[k]) for k in expected)
    assert report["compared_with"] == "model a" and any("has other tensors" in n for n in report["notes"])
    with pytest.raises(StageError, match="in model a"):
        run(tmp_path / "out", found, {"method": "task-arithmetic"})


def test_dare_can_be_repeated_and_follows_its_rule(models, tmp_path):
    options = {"method": "dare-linear", "density": 0.25, "models": [{"model": n, "weight": 0.5} for n in "ab"]}
    merged, report = run(tmp_path / "one", models, options)
    file = (tmp_path / "one" / "model.safetensors").read_bytes()
    run(tmp_path / "two", models, options)
    assert file == (tmp_path / "two" / "model.safetensors").read_bytes()
    other, _ = run(tmp_path / "three", models, options, seed=8)
    assert any(not torch.equal(merged[k], other[k]) for k in merged)
    turned, _ = run(tmp_path / "four", models, {**options, "models": options["models"][::-1]})
    kept = 0
    for name, w, a, b in rows(models, "base", "a", "b"):
        assert torch.allclose(turned[name], merged[name], atol=1e-7)
        change, (one, two) = merged[name] - w, (0.5 / 0.25 * (x - w) for x in (a, b))
        near = torch.stack([torch.zeros_like(one), one, two, one + two]).sub(change).abs().amin(0)
        assert float(near.max()) < 1e-6
        kept += int((change != 0).sum())
    share = kept / report["total"]["count"]
    assert share == pytest.approx(1 - 0.75**2, abs=0.01) and report["total"]["changed"] == pytest.approx(share)
    with safe_open(tmp_path / "one" / "model.safetensors", "pt") as opened:
        told = json.loads(opened.metadata()["seesaw_merge"])
    assert told["seed"] == 7 == report["seed"] and "Philox" in told["mask"] and told["models"][0] == ["hash of a", 0.5]
    both, _ = run(tmp_path / "five", models, {"method": "dare-ties", "density": 0.25})
    for name, w, a, b in rows(models, "base", "a", "b"):
        change = (both[name] - w) * 0.25
        near = torch.stack([torch.zeros_like(w), a - w, b - w, (a + b) / 2 - w]).sub(change).abs().amin(0)
        assert float(near.max()) < 1e-6


@pytest.mark.parametrize("k", [1, 2, 400, 999, 1000])
def test_the_kth_magnitude_is_exact(k):
    torch.manual_seed(k)
    values = torch.randn(1000) * torch.logspace(-20, 3, 1000)
    values[5:9] = 0.25
    expected = values.abs().sort(descending=True).values[k - 1]
    assert kth_magnitude(lambda: values.split(37), k) == float(expected)


# ---- adapters


def test_adapters_of_unlike_rank_and_scale_merge_exactly(models, tmp_path):
    found = {
        "base": models["base"],
        "a": adapter(tmp_path / "a", models["base"], 1, r=4, lora_alpha=8),
        "b": adapter(
            tmp_path / "b", models["base"], 2, r=2, lora_alpha=6, use_rslora=True, target_modules=["q_proj", "up_proj"]
        ),
    }
    given = [{"model": "a", "weight": 0.7}, {"model": "b", "weight": -0.3}]
    merged, report = run(tmp_path / "out", found, {"method": "task-arithmetic", "weight": 1.5, "models": given})
    assert report["output"] == "adapter" and report["ranks"] == [4, 6] and "exact" in report["exact"]
    loaded, base = (load_model(str(f), torch.float32, CPU).state_dict() for f in (tmp_path / "out", found["base"]))
    parts = [WeightSource(found[n]) for n in "ab"]
    for name in base:
        if name in parts[0]:
            a, b = (p.read(name).view(base[name].shape) - base[name] for p in parts)
            assert torch.allclose(loaded[name] - base[name], 1.5 * (0.7 * a - 0.3 * b), atol=2e-6), name
    # PEFT's `cat` is the same model; its `linear` (one scale for A and one for B) is another one.
    other = PeftModel.from_pretrained(build_model(0), str(found["a"]), adapter_name="a")
    other.load_adapter(str(found["b"]), adapter_name="b")
    other.add_weighted_adapter(["a", "b"], [1.05, -0.45], "cat", combination_type="cat")
    other.set_adapter("cat")
    peft = other.merge_and_unload().state_dict()
    assert all(torch.allclose(loaded[k], peft[k], atol=2e-6) for k in base)
    # The same as full weights, when a type is asked for.
    full, told = run(
        tmp_path / "full", found, {"method": "task-arithmetic", "weight": 1.5, "models": given, "dtype": "float32"}
    )
    assert told["output"] == "full" and all(torch.allclose(full[k], loaded[k], atol=2e-6) for k in full)


def test_an_average_of_adapters_is_one_and_ties_of_adapters_is_a_full_model(models, tmp_path):
    found = {"base": models["base"], **{n: adapter(tmp_path / n, models["base"], k, r=2) for k, n in enumerate("ab")}}
    merged, report = run(tmp_path / "mean", found, {"method": "average"})
    assert report["output"] == "adapter" and report["ranks"] == [4]
    loaded = load_model(str(tmp_path / "mean"), torch.float32, CPU).state_dict()
    whole = [load_model(str(found[n]), torch.float32, CPU).state_dict() for n in "ab"]
    assert all(torch.allclose(loaded[k], (whole[0][k] + whole[1][k]) / 2, atol=1e-6) for k in loaded)
    merged, report = run(tmp_path / "ties", found, {"method": "ties", "density": 0.5})
    base = dense(models, "base")[0]
    assert report["output"] == "full"
    assert torch.equal(merged["model.embed_tokens.weight"], base["model.embed_tokens.weight"])
    name = "model.layers.0.mlp.up_proj.weight"
    expected = base[name] + ties([w[name] - base[name] for w in whole], 0.5, [1.0, 1.0])
    assert torch.allclose(merged[name], expected, atol=1e-6)


def test_an_adapter_of_another_base_is_said(models, tmp_path):
    found = {**models, "b": adapter(tmp_path / "b", models["a"], 3, r=2)}
    merged, report = run(tmp_path / "out", found, {"method": "task-arithmetic", "weight": 1, "models": ["b"]})
    assert report["output"] == "full" and any(
        "was trained on" in n and "includes the difference" in n for n in report["notes"]
    )
    whole = WeightSource(found["b"])
    assert all(torch.allclose(merged[k], whole.read(k).view(merged[k].shape), atol=1e-6) for k in merged)


# ---- rounding


def test_bf16_swallows_small_changes_and_the_report_says_how_much(models, tmp_path):
    found = {"base": save(tmp_path / "m0", build_model(0), torch.bfloat16), "a": save(tmp_path / "a", moved(1, 2e-5))}
    options = {"method": "task-arithmetic", "models": ["a"], "dtype": "bfloat16"}
    merged, report = run(tmp_path / "out", found, options)
    base, a = (load_file(found[n] / "model.safetensors") for n in ("base", "a"))
    assert {v.dtype for v in merged.values()} == {torch.bfloat16} and report["dtypes"] == ["BF16"]
    assert json.loads((tmp_path / "out" / "config.json").read_text())["dtype"] == "bfloat16"
    wanted = torch.cat([(a[k] - base[k].float()).double().flatten() for k in base])
    stored = torch.cat([(merged[k].float() - base[k].float()).double().flatten() for k in base])
    total = report["total"]
    assert total["changed"] == pytest.approx(float((stored != 0).double().mean()))
    assert total["cosine"] == pytest.approx(float(torch.nn.functional.cosine_similarity(wanted, stored, 0)), rel=1e-5)
    assert total["kept"] == pytest.approx(float(stored.norm() / wanted.norm()), rel=1e-5)
    assert total["stored"] != pytest.approx(total["wanted"], rel=1e-3)
    norm = torch.cat([base[k].double().flatten() for k in base]).norm()
    assert total["wanted"] == pytest.approx(float(wanted.norm() / norm), rel=1e-5)
    rank1 = {"base": found["base"], "a": adapter(tmp_path / "weak", found["base"], 1, r=1, lora_alpha=1, size=1e-3)}
    _, report = run(tmp_path / "kept", rank1, {"method": "task-arithmetic", "models": ["a"]})
    assert report["output"] == "adapter" and "Keep the adapter separate" in report["warnings"][0]


def test_an_overflow_is_an_error_with_its_way_out(models, tmp_path):
    with pytest.raises(StageError, match=r"overflows F16 after merging .* Write options.dtype"):
        run(tmp_path / "out", models, {"method": "task-arithmetic", "weight": 1e7, "dtype": "float16"})


# ---- what is refused


def broken(tmp_path, models, kind):
    """The model b, unlike a in one way."""
    if kind == "shape":
        return save(tmp_path / "b", build_model(0, intermediate_size=48))
    if kind == "vocabulary":
        return save(tmp_path / "b", build_model(0, vocab_size=330))
    if kind == "layers":
        return save(tmp_path / "b", build_model(0, num_hidden_layers=3))
    if kind == "untied":
        return save(tmp_path / "b", build_model(0, tie_word_embeddings=False))
    if kind == "type":
        return save(tmp_path / "b", build_model(0), torch.float16)
    if kind == "activation":
        return save(tmp_path / "b", build_model(0, hidden_act="gelu"))
    folder = save(tmp_path / "b", moved(2))
    if kind == "nan":
        tensors = load_file(folder / "model.safetensors")
        tensors["model.norm.weight"][0] = float("nan")
        save_file(tensors, folder / "model.safetensors")
    if kind == "tokens":
        about = json.loads((folder / "tokenizer.json").read_text())
        vocab = about["model"]["vocab"]
        one, two = sorted(vocab, key=vocab.get)[100:102]
        vocab[one], vocab[two] = vocab[two], vocab[one]
        (folder / "tokenizer.json").write_text(json.dumps(about))
    return folder


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("shape", ["mlp.down_proj.weight is [32, 64] in model a and [32, 48] in model b"]),
        (
            "vocabulary",
            ["model.embed_tokens.weight is [320, 32] in model a and [330, 32] in model b", "vocabularies differ"],
        ),
        ("layers", ["model.layers.2.input_layernorm.weight (and 8 more) is in model b and not in model a"]),
        ("untied", ["lm_head.weight is tied to the embedding in model a", "of its own in model b"]),
        ("type", ["is stored as F32 in model a and F16 in model b", "options.dtype"]),
        ("activation", ['hidden_act is "silu" and "gelu"']),
        ("nan", ["model.norm.weight of model b holds NaN"]),
        ("tokens", ["is token 100 in model a and 101 in model b"]),
    ],
)
def test_unlike_models_are_refused_by_tensor_and_name(models, tmp_path, kind, words):
    found = {**models, "b": broken(tmp_path, models, kind)}
    with pytest.raises(StageError) as error:
        run(tmp_path / "out", found, {"method": "average"})
    assert error.value.code == "bad-checkpoint" and all(w in str(error.value) for w in words), str(error.value)


@pytest.mark.parametrize(
    ("options", "where"),
    [
        ({"method": "tiez"}, "method"),
        ({"method": "average", "weight": 0.5}, "weight"),
        ({"method": "linear", "density": 0.5}, "density"),
        ({"method": "ties", "density": 1.5}, "density"),
        ({"method": "ties", "densty": 0.5}, "densty"),
        ({"method": "slerp", "weight": 2}, "weight"),
        ({"method": "slerp", "models": ["a"]}, "models"),
        ({"method": "average", "models": [{"model": "a", "weight": 1}, "b"]}, "models"),
        ({"method": "linear", "models": [{"model": "a", "weight": 1}, "b"]}, "models"),
        ({"method": "linear", "models": [{"model": "a", "weight": 1}, {"model": "b", "weight": -1}]}, "models"),
        ({"method": "linear", "weight": 0.5, "models": [{"model": "a", "weight": 1}, "b"]}, "weight"),
        ({"method": "average", "models": ["a", "a"]}, "models[1]"),
        ({"method": "average", "models": [{"model": "a", "wight": 1}, "b"]}, "models[0].wight"),
        ({"method": "average", "models": []}, "models"),
        ({"method": "ties", "dtype": "int8"}, "dtype"),
        ({"method": "ties", "weight": True}, "weight"),
        ({"method": "ties", "smoke": "no"}, "smoke"),
    ],
)
def test_options_that_cannot_be_followed_are_refused_by_name(options, where):
    with pytest.raises(StageError) as error:
        read_options({"models": ["a", "b"], **options})
    assert error.value.code == "bad-argument" and error.value.where == f"options.{where}"


def test_the_weights_of_a_mix_add_up_to_one():
    def weights(**options):
        return [round(w, 9) for _, w in read_options({"models": ["a", "b", "c"], **options}).models]

    assert weights(method="average") == weights(method="linear") == [0.333333333] * 3
    assert weights(method="linear", weight=0.5) == [0.25, 0.25, 0.5]
    assert weights(method="linear", models=[{"model": n, "weight": w} for n, w in (("a", 1), ("b", 3))]) == [0.25, 0.75]
    assert weights(method="ties") == [1, 1, 1] and read_options({"method": "ties", "models": ["a"]}).density == 0.5


# ---- memory

LIMITED = """
import resource, sys, json
from pathlib import Path
import torch
from seesaw_runner.merging.merge import merge
from seesaw_runner.merging.options import read_options
from seesaw_runner.weights.drift import measure
from seesaw_runner.weights.source import WeightSource
torch.set_num_threads(1)
root, room = Path(sys.argv[1]), int(sys.argv[2])
torch.zeros(2**20) @ torch.zeros(2**20); torch.bincount(torch.zeros(9, dtype=torch.int64))
status = Path("/proc/self/status").read_text()
used = int(status.split("VmSize:")[1].split()[0]) * 1024
resource.setrlimit(resource.RLIMIT_AS, (used + room, used + room))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
for method in sys.argv[3:]:
    out = root / method
    out.mkdir()
    models = [WeightSource(root / n) for n in "ab"]
    options = read_options({"method": method, "models": ["a", "b"]})
    merge(options, models, WeightSource(root / "m0"), out, hashes=["a", "b"], seed=0, shard_bytes=70 << 20)
measure(models[0], models[1], WeightSource(root / "m0"))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs RLIMIT_AS")
def test_a_model_larger_than_the_memory_merges_and_is_compared(tmp_path):
    """128 MiB a model, each of its two tensors 64 MiB, merged in a process that may take 100 MiB more than it has, and
    takes less than one tensor."""
    size = 2 * 1024 * 1024
    for k, name in enumerate(("m0", "a", "b")):
        folder = tmp_path / name
        folder.mkdir()
        torch.manual_seed(k)
        big = torch.randn(size).repeat(8).view(2048, -1)
        save_file(
            {"model.embed_tokens.weight": big, "model.layers.0.mlp.up_proj.weight": big + 1},
            folder / "model.safetensors",
        )
        (folder / "config.json").write_text(json.dumps({"tie_word_embeddings": True}))
    room, methods = 100 << 20, ["linear", "dare-ties"]
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path), str(room), *methods],
        cwd=RUNNER,
        env={**os.environ, "PYTHONPATH": str(RUNNER), "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) < 64 << 20 and room < (tmp_path / "a" / "model.safetensors").stat().st_size
    name = "model.layers.0.mlp.up_proj.weight"
    index = json.loads((tmp_path / "linear" / "model.safetensors.index.json").read_text())
    with safe_open(tmp_path / "linear" / index["weight_map"][name], "pt") as file:
        merged = file.get_slice(name)[100:101]
    parts = [safe_open(tmp_path / n / "model.safetensors", "pt").get_slice(name)[100:101] for n in "ab"]
    assert torch.allclose(merged, sum(parts) / 2)
