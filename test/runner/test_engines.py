"""Generation by vLLM: what it is asked, through a stand-in of its names in a real process of its own whose answers a
real model gives; see fakes/vllm. vLLM itself was never run here.
"""

import importlib.util
import json
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from conftest import as_model, copy_rows, events, outcome
from seesaw_runner.rollouts.engines import (
    Wanted,
    end_ids_of,
    model_arguments,
    sampling_arguments,
    uses_vllm,
    vllm_engine,
)
from seesaw_runner.rollouts.vllm_process import worker_env
from seesaw_runner.run_folder import StageError
from seesaw_runner.scoring.generate import end_ids, generate
from test_rollout_recipes import two_domains, written
from test_router import experts, make_router, report  # noqa: F401

FAKES = Path(__file__).parent / "fakes"


@pytest.fixture
def vllm(tmp_path, monkeypatch):
    """vllm() → what it was asked so far. The stand-in is found by this process and by the one that is started."""
    log = tmp_path / "vllm.log"
    monkeypatch.setenv("FAKE_VLLM_LOG", str(log))
    monkeypatch.setenv("PYTHONPATH", str(FAKES))
    monkeypatch.syspath_prepend(str(FAKES))
    importlib.invalidate_caches()
    return lambda: [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def stage_of(tmp_path, tokenizer, kind="cpu"):
    """As much of a stage as an engine needs."""
    told = []
    return SimpleNamespace(
        run=tmp_path,
        tokenizer=tokenizer,
        device=SimpleNamespace(kind=kind, index=0, frozen_dtype=torch.float32),
        watch=SimpleNamespace(signal=None),
        loading=told.append,
        warn=lambda *what, **_: told.append(what),
        journal=SimpleNamespace(append=lambda *what, **_: told.append(what)),
        told=told,
    )


# ---- what it is asked


def test_sampling_arguments():
    wanted = Wanted(temperature=0.7, top_p=0.9, samples=4, seed=3)
    assert sampling_arguments(wanted, 32, {4, 2}, 11) == {
        "n": 4, "temperature": 0.7, "top_p": 0.9, "max_tokens": 32, "seed": 11, "stop_token_ids": [2, 4],
        "detokenize": False,
    }  # fmt: skip
    greedy = sampling_arguments(Wanted(samples=4), 32, {4}, 11)
    assert (greedy["n"], greedy["temperature"], greedy["seed"]) == (1, 0.0, None)


def test_model_arguments_load_safetensors_alone_and_name_a_rank_that_vllm_knows():
    plain = model_arguments("m", dtype="bfloat16", seed=1, length=300, share=0.512345, rank=None)
    assert plain["load_format"] == "safetensors" and plain["trust_remote_code"] is False
    assert plain["gpu_memory_utilization"] == 0.5123 and "enable_lora" not in plain
    with_lora = model_arguments("m", dtype="bfloat16", seed=1, length=300, share=None, rank=9)
    assert (with_lora["enable_lora"], with_lora["max_lora_rank"]) == (True, 16)
    assert "gpu_memory_utilization" not in with_lora


def test_auto_takes_vllm_only_where_it_is_installed_and_a_gpu_is_there(tmp_path, tokenizer, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    cpu, gpu = stage_of(tmp_path, tokenizer), stage_of(tmp_path, tokenizer, "cuda")
    assert not uses_vllm(gpu, "auto") and not uses_vllm(gpu, "transformers")
    with pytest.raises(StageError, match=r"not installed .*`pip install vllm`.*Set `engine: transformers`"):
        uses_vllm(gpu, "vllm")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    assert uses_vllm(gpu, "auto") and not uses_vllm(cpu, "auto") and uses_vllm(cpu, "vllm")
    assert not uses_vllm(gpu, "transformers")


def test_the_worker_sees_its_own_gpu_alone_and_none_of_the_ranks(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,7")
    monkeypatch.setenv("LOCAL_RANK", "1")
    env = worker_env(1)
    assert env["CUDA_VISIBLE_DEVICES"] == "7" and "LOCAL_RANK" not in env
    assert env["VLLM_ENABLE_V1_MULTIPROCESSING"] == "0"
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert worker_env(3)["CUDA_VISIBLE_DEVICES"] == "3" and "CUDA_VISIBLE_DEVICES" not in worker_env(None)


# ---- a process of its own


def test_greedy_answers_are_those_of_transformers_and_the_process_is_gone(
    vllm, tmp_path, taught_folder, tokenizer, encoded
):
    from seesaw_runner.training.loading import load_model

    model = load_model(str(taught_folder), torch.float32, torch.device("cpu"))
    prompts = [row.ids[: row.scored[0]] for row in encoded[:8]]
    ends = end_ids(model, tokenizer)
    assert end_ids_of(taught_folder, tokenizer) == ends
    limits = [8, 1, 0, 8, 2, 8, 8, 8]
    expected = generate(model, prompts, max_new_tokens=limits, ends=ends)
    stage = stage_of(tmp_path, tokenizer)
    with vllm_engine(stage, taught_folder, length=64, seed=0) as engine:
        found = engine.answers(prompts, limits, Wanted(samples=2))
        process = engine.process._process
        assert process.poll() is None and process.pid != os.getpid()
    assert [one for one, _ in found] == expected and all(a == b for a, b in found)
    assert {one.finish for one in expected} == {"stop", "length"}
    assert process.poll() == 0  # its memory is the system's again
    assert [what for e in vllm() for what in e if what in ("shutdown", "cleanup")] == ["shutdown", "cleanup"]
    assert {e["pid"] for e in vllm()} == {process.pid}


def test_samples_depend_on_the_seed_and_the_prompts_place_alone(
    vllm, tmp_path, base_folder, tokenizer, encoded, monkeypatch
):
    prompts = [encoded[0].ids[: encoded[0].scored[0]]] * 5
    stage = stage_of(tmp_path, tokenizer)
    found = []
    with vllm_engine(stage, base_folder, length=64, seed=0) as engine:
        for size, seed in ((512, 0), (2, 0), (512, 1)):
            monkeypatch.setattr("seesaw_runner.rollouts.engines.CALL", size)
            found.append(engine.answers(prompts, [6] * 5, Wanted(1.0, 1.0, 3, seed)))
    assert found[0] == found[1] != found[2]
    assert len({tuple(one.ids) for rows in found[0] for one in rows}) > 5


@pytest.mark.parametrize(
    ("said", "code", "fix"),
    [
        ("CUDA out of memory. Tried to allocate 2 GiB.", "out-of-memory", "Free memory on the GPU"),
        ("No available memory for the cache blocks.", "out-of-memory", "Free memory on the GPU"),
        ("Model architectures ['X'] are not supported for now.", "exception", "See out.log"),
    ],
)
def test_a_failure_of_vllm_is_a_sentence_with_the_fix(
    vllm, tmp_path, base_folder, tokenizer, monkeypatch, said, code, fix
):
    monkeypatch.setenv("FAKE_VLLM_FAILS", said)
    stage = stage_of(tmp_path, tokenizer)
    with pytest.raises(StageError) as caught, vllm_engine(stage, base_folder, length=64, seed=0):
        pass
    assert caught.value.code == code and fix in str(caught.value) and said.rstrip(".") in str(caught.value)
    assert "Set `engine: transformers`" in str(caught.value)


def test_a_stop_ends_it_at_once(vllm, tmp_path, base_folder, tokenizer, encoded):
    stage = stage_of(tmp_path, tokenizer)
    with pytest.raises(StageError) as caught, vllm_engine(stage, base_folder, length=64, seed=0) as engine:
        process = engine.process._process
        stage.watch.signal = 15
        engine.answers([encoded[0].ids], [4], Wanted())
    assert caught.value.code == "cancelled" and process.poll() is not None


# ---- the recipes


def test_self_distill_by_vllm_learns_what_transformers_would_have_answered(vllm, make_run, recipe, taught_folder):
    learned = {}
    for k, engine in enumerate(("transformers", "vllm")):
        run = make_run(
            f"copy-20260101T000000-000{k}",
            recipe="self-distill",
            options={"labeller": "t", "temperature": 0, "max_new_tokens": 10, "batch_size": 16, "engine": engine},
            models={"t": as_model(taught_folder)},
            args={"max_steps": 2},
        )
        assert recipe("self-distill", run) == 0
        learned[engine] = written(run)
    assert learned["vllm"] == learned["transformers"] and len(learned["vllm"]) > 10
    asked = [e["llm"] for e in vllm() if "llm" in e]
    assert len(asked) == 1 and asked[0]["model"] == str(taught_folder) and asked[0]["max_model_len"] <= 128
    told = [e for e in events(run, "warning") if e["code"] == "engine"]
    assert told[0]["message"] == f"vLLM 0.99-fake generates the answers of {taught_folder}."


def test_oracles_answer_by_vllm_one_after_another(vllm, make_run, recipe, taught_folder):
    rows, skills = two_domains(16)
    run = make_run(
        train=rows, recipe="oracle-sft", models={"a": as_model(taught_folder, "A"), "b": as_model(taught_folder, "B")}
    )
    spec = json.loads((run / "run.json").read_text())
    spec |= {"skills": skills(spec["skills"]), "options": {
        "oracles": {"copy": "a", "shout": "b"}, "temperature": 0, "max_new_tokens": 10, "engine": "vllm",
    }}  # fmt: skip
    (run / "run.json").write_text(json.dumps(spec))
    assert recipe("oracle-sft", run) == 0
    assert {(row["data_source"], row["relabelled"]["model"]) for row in written(run)} == {("copy", "A"), ("shout", "B")}
    pids = [e["pid"] for e in vllm() if "llm" in e]
    assert len(pids) == len(set(pids)) == 2
    first, second = ([k for k, e in enumerate(vllm()) if e["pid"] == pid] for pid in pids)
    assert max(first) < min(second)  # the first was gone before the second came


def test_a_labeller_that_is_an_adapter_is_merged_for_vllm(vllm, make_run, recipe, experts):  # noqa: F811
    learned = []
    for k, engine in enumerate(("transformers", "vllm")):
        run = make_run(
            f"copy-20260101T000000-000{k}",
            train=copy_rows(16, 1),
            recipe="self-distill",
            options={
                "labeller": "t",
                "check": {"kind": "regex", "pattern": "^[ -~]+$"},
                "temperature": 0,
                "max_new_tokens": 8,
                "engine": engine,
            },
            models={"t": as_model(experts["red"])},
            args={"max_steps": 1},
        )
        assert recipe("self-distill", run) == 0
        learned.append(written(run))
    assert learned[0] == learned[1] and learned[0]
    (asked,) = [e["llm"] for e in vllm() if "llm" in e]
    assert Path(asked["model"]).parent == run and not Path(asked["model"]).exists() and not asked["enable_lora"]


def test_a_router_asks_its_experts_as_adapters_of_one_base(vllm, make_router, recipe):  # noqa: F811
    found = {}
    for k, engine in enumerate(("transformers", "vllm")):
        run = make_router(f"router-20260101T000000-000{k}", engine=engine)
        assert recipe("router", run) == 0
        found[engine] = (run / "router-answers.jsonl").read_text().splitlines(), report(run)["sets"]
    assert sorted(found["vllm"][0]) == sorted(found["transformers"][0]) and found["vllm"][1] == found["transformers"][1]
    asked = [e for e in vllm() if "llm" in e]
    assert len(asked) == 1 and asked[0]["llm"]["enable_lora"] and asked[0]["llm"]["max_lora_rank"] == 8
    assert {e["lora"] for e in vllm() if "generate" in e} == {"red", "cat", None}
    assert [e for e in vllm() if "shutdown" in e]


def test_an_adapter_that_vllm_would_misread_is_refused(vllm, make_router, recipe, experts, tmp_path):  # noqa: F811
    import shutil

    odd = tmp_path / "odd"
    shutil.copytree(experts["red"], odd)
    config = json.loads((odd / "adapter_config.json").read_text())
    (odd / "adapter_config.json").write_text(json.dumps({**config, "alpha_pattern": {"q_proj": config["lora_alpha"]}}))
    run = make_router(engine="vllm", models={"red-stage": as_model(odd, "RED")})
    assert recipe("router", run) == 1
    assert "RED has a alpha_pattern, which vLLM does not read. Set `engine: transformers`" in outcome(run)["message"]
    assert not vllm()


def test_vllm_that_is_asked_for_and_not_installed_is_told_before_anything_is_loaded(make_run, recipe):
    run = make_run(recipe="self-distill", options={"check": False, "engine": "vllm"})
    assert recipe("self-distill", run) == 1
    said = outcome(run)
    assert said["code"] == "preflight" and "the package vllm is not installed" in said["message"]
    assert "options.engine at auto" in said["message"] and not events(run, "run.started")
