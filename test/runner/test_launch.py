"""What starts the training processes: accelerate as torchrun, and what would cut the model up is refused."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest
import torch
from conftest import RUNNER, events, outcome
from safetensors.torch import load_file
from seesaw_runner.preflight.launch import check_launch
from seesaw_runner.preflight.packages import check_packages

END = "checkpoints/step-000006/model.safetensors"
#: As src/targets/runnerEnv.ts puts it together for launch: { kind: accelerate, processes: 2 }.
ACCELERATE = "--multi_gpu --num_processes 2 --num_machines 1 --main_process_port 0".split()
ACCELERATE += "--mixed_precision no --dynamo_backend no".split()


def launch(run, *words, **env):
    command = [sys.executable, "-m", "accelerate.commands.launch", *words, *ACCELERATE]
    process = subprocess.run(
        [*command, "-m", "seesaw_runner.recipes.sft", str(run)],
        cwd=RUNNER,
        env={**os.environ, "OMP_NUM_THREADS": "1", **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=240,
        check=False,
    )
    return process.returncode, process.stdout


def test_accelerate_trains_what_the_plan_says_and_resumes_to_the_same_weights(make_run, sft, tmp_path):
    """Two processes with gloo: the same weights as one process that accumulates both halves (up to rounding); a run
    that went on from its checkpoint under accelerate has those of the whole one, bit for bit."""
    from test_hardship import replay_from

    probe = {"every": 6, "eval_every": None, "top_k": 4, "max_new_tokens": 4, "batch_size": 16, "kl": ["start"]}
    how = {"save_every": 3, "skills": [], "probe": probe, "replay": replay_from(tmp_path)}
    config = tmp_path / "acc.yaml"
    config.write_text("compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\nmixed_precision: bf16\n")
    spec = {"kind": "accelerate", "processes": 2, "config": str(config)}
    whole = make_run(args={"per_device_train_batch_size": 2}, launch=spec, **how)
    code, text = launch(whole, "--config_file", str(config))
    assert code == 0 and text.count("Done: M1") == 1, text[-3000:]
    assert events(whole, "run.started")[0]["processes"] == 2
    assert [e["seq"] for e in events(whole)] == list(range(1, len(events(whole)) + 1))
    unused = next(e for e in events(whole, "warning") if "mixed_precision: bf16" in e["message"])
    assert unused["severity"] == "warning" and events(whole, "run.started")[0]["dtype"] == "float32"
    names = {path.name for path in (whole / "checkpoints/step-000003/resume").glob("random-*")}
    assert names == {"random-0.json", "random-1.json"}
    single = make_run(
        name="single-20260101T000000-0002",
        args={"per_device_train_batch_size": 2, "gradient_accumulation_steps": 2},
        **how,
    )
    assert sft(single) == 0
    one, two = load_file(whole / END), load_file(single / END)
    assert max(float((one[k] - two[k]).abs().max()) for k in one) < 2e-3

    shutil.rmtree(whole / "checkpoints/step-000006")
    (whole / "attempt-0002").mkdir()
    code, text = launch(whole, SEESAW_ATTEMPT=str(whole / "attempt-0002"))
    assert code == 0, text[-3000:]
    assert events(whole, "run.started")[-1]["resumed_from"] == 3
    again = load_file(whole / END)
    assert all(torch.equal(one[k], again[k]) for k in one)


def test_sharded_training_is_refused_before_anything_is_loaded(make_run, sft, monkeypatch):
    run = make_run()
    monkeypatch.setenv("ACCELERATE_USE_DEEPSPEED", "true")
    assert sft(run) == 1 and "deepspeed cannot be used: ZeRO keeps" in outcome(run)["message"]
    monkeypatch.delenv("ACCELERATE_USE_DEEPSPEED")
    for name in ("deepspeed", "fsdp"):
        other = make_run(name=f"{name}-20260101T000000-0002", args={name: "zero2.json"})
        assert sft(other) == 1 and f"`args.{name}` cannot be used" in outcome(other)["message"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("distributed_type: FSDP\n", "error: fsdp cannot be used"),
        ('{"distributed_type": "DEEPSPEED"}', "error: deepspeed cannot be used"),
        ("distributed_type: 'MULTI_GPU'\nnum_machines: 2\n", "error: the accelerate configuration asks for 2 machines"),
        ("dynamo_config:\n  dynamo_backend: INDUCTOR\n", "warning: the dynamo settings"),
        ("mixed_precision: fp8\n", "warning: mixed_precision: fp8"),
        ("distributed_type: NO\nmixed_precision: 'no'\ngpu_ids: all\n", ""),
    ],
)
def test_what_a_configuration_asks_for(tmp_path, text, said):
    config = tmp_path / "acc"
    config.write_text(text)
    found = check_launch({"launch": {"kind": "accelerate", "config": str(config)}}, {})
    assert [f"{one.severity}: {one.message}"[: len(said)] for one in found] == ([said] if said else [])


def test_missing_configuration_words_that_shard_and_packages(tmp_path):
    found = check_launch({"launch": {"kind": "accelerate", "config": str(tmp_path / "no"), "args": ["--use-fsdp"]}}, {})
    assert [one.where for one in found] == ["launch.args", str(tmp_path / "no")]
    spec = {"launch": {"kind": "deepspeed"}, "args": {"use_vllm": True}}
    spec["replay"] = {"diversity": {"k_center": {"features": "tfidf"}}}
    missing = {one.message for one in check_packages(spec)}
    assert "the package deepspeed is not installed" in missing and "the package vllm is not installed" in missing
    assert not any("scikit" in message for message in missing)
    assert check_packages({"launch": {"kind": "torchrun"}, "args": {}}) == []


def test_a_frozen_model_takes_half_the_memory_only_where_bf16_is_fast(base_folder):
    from seesaw_runner.training.device import Device, choose

    assert choose(force_cpu=True).frozen_dtype == torch.float32
    gpu = Device("cuda", 0, torch.float32, True)
    assert (gpu.frozen_dtype, gpu.dtype) == (torch.bfloat16, torch.float32)
    assert Device("cuda", 0, torch.float32, False).frozen_dtype == torch.float32


def test_the_room_of_teachers_is_that_of_the_numbers_they_are_loaded_in(base_folder):
    from seesaw_runner.training.placement import loaded_bytes

    assert loaded_bytes(base_folder, 2) * 2 == loaded_bytes(base_folder, 4)
