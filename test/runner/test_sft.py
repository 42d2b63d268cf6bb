"""The recipe end to end on a tiny model: weights move, resume is exact, every way to end leaves its outcome."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest
import torch
from conftest import RUNNER, chat, copy_rows, events, write_rows
from safetensors.torch import load_file
from seesaw_runner.scoring.trace import read_trace

END = "checkpoints/step-000006"


def outcome(run):
    path = run / "attempt-0001" / "outcome.json"
    return json.loads(path.read_text()) if path.exists() else None


def spawn(run, launcher=(), **env):
    """The recipe as its own process, as the agent starts it."""
    return subprocess.Popen(
        [sys.executable, *launcher, "-m", "seesaw_runner.recipes.sft", *([] if launcher else ["--run"]), str(run)],
        cwd=RUNNER,
        env={**os.environ, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_full_training_moves_every_parameter_and_tells_the_journal(make_run, sft, base_folder, shared_model):
    run = make_run(save_every=4)
    assert sft(run) == 0 and outcome(run) is None
    before, after = load_file(base_folder / "model.safetensors"), load_file(run / END / "model.safetensors")
    assert before.keys() == after.keys() and not any(torch.equal(before[k], after[k]) for k in before)

    kinds = Counter(e["type"] for e in events(run))
    assert (
        [e["seq"] for e in events(run)] == list(range(1, sum(kinds.values()) + 1))
        and kinds["run.started"] == 1
        and "run.finished" not in kinds
    )
    started = events(run, "run.started")[0]
    assert (
        started["total_steps"] == 6
        and started["rows"] == 48
        and started["parameters"] == started["trainable"] == sum(p.numel() for p in shared_model.parameters())
    )
    assert [(e["step"], e["final"], e["kind"]) for e in events(run, "checkpoint.saved")] == [
        (4, False, "full"),
        (6, True, "full"),
    ]
    assert sorted({e["step"] for e in events(run, "probe.scored")}) == [0, 3, 6] and kinds["probe.scored"] == 6
    assert sorted({e["step"] for e in events(run, "eval.result")}) == [0, 6]
    assert all(
        e["summary"]["delta_nll"] == 0 and e["summary"]["kl_start"] == 0
        for e in events(run, "probe.scored")
        if e["step"] == 0
    )
    metrics = events(run, "metric")
    assert metrics[-1]["step"] == 6 and {"loss", "learning_rate", "grad_norm"} <= metrics[-1]["values"].keys()
    last = events(run, "stage.progress")[-1]
    assert events(run, "probe.cost")[-1]["share"] > 0 and last["total"] == 6

    saved = json.loads((run / END / "seesaw.json").read_text())
    assert saved["label"] == "M1" and saved["weights_hash"] == events(run, "checkpoint.saved")[-1]["weights_hash"]
    assert not list(run.rglob("*.bin")) and not list(run.rglob("*.pt*")) and not list(run.rglob("*.tmp"))
    assert (run / "checkpoints/step-000004/resume/optimizer.safetensors").exists() and not (
        run / END / "resume"
    ).exists()


def test_trace_equals_plain_transformers(make_run, sft, base_folder, tokenizer):
    from seesaw_runner.scoring.encode import Encoder
    from seesaw_runner.training.loading import load_model

    run = make_run()
    assert sft(run) == 0
    base = load_model(str(base_folder), torch.float32, torch.device("cpu")).eval()
    final = load_model(str(run / END), torch.float32, torch.device("cpu")).eval()
    trace, start = (
        read_trace(run / "traces/step-000006/copy.id.trace"),
        read_trace(run / "traces/step-000000/copy.id.trace"),
    )
    encoder, values = Encoder(tokenizer), copy_rows(34, 2)
    assert trace.segments == ["answer", "terminator"] and trace.meta["weights_hash"] != start.meta["weights_hash"]
    for value, row, before in zip(values, trace.rows, start.rows, strict=True):
        encoded = encoder.encode(value)
        with torch.no_grad():
            q, p = (
                torch.log_softmax(m(input_ids=torch.tensor([encoded.ids])).logits[0], -1)[
                    [k - 1 for k in encoded.scored]
                ]
                for m in (final, base)
            )
        ids = torch.tensor(row.ids)
        assert row.reference == value["messages"][1]["content"] and row.tags == value["tags"] and row.segment[-1] == 1
        assert torch.allclose(torch.tensor(row.logprob), q.gather(1, ids[:, None])[:, 0], atol=1e-4)
        assert torch.allclose(torch.tensor(before.logprob), p.gather(1, ids[:, None])[:, 0], atol=1e-4)
        assert torch.allclose(torch.tensor(row.kl["start"]), (p.exp() * (p - q)).sum(-1), atol=1e-4)
        assert row.kl["base"] == row.kl["start"] and row.topk_ids[::4] == q.argmax(-1).tolist()
    assert trace.summary["tag", "short"]["rows"] == sum("short" in v["tags"] for v in values)


def test_lora_trains_the_adapter_only(make_run, sft, base_folder):
    run = make_run(adapter={"r": 4, "lora_alpha": 8, "target_modules": "all-linear"}, save_every=3)
    assert sft(run) == 0
    started, saved = events(run, "run.started")[0], events(run, "checkpoint.saved")
    assert started["trainable"] < started["parameters"] / 2 and {e["kind"] for e in saved} == {"adapter"}
    one, two = (load_file(run / f"checkpoints/step-00000{k}/adapter_model.safetensors") for k in (3, 6))
    assert sum(v.numel() for v in two.values()) == started["trainable"] and not any(
        torch.equal(one[k], two[k]) for k in one
    )
    assert not (run / END / "model.safetensors").exists()
    from seesaw_runner.training.loading import load_model

    base = load_file(base_folder / "model.safetensors")
    merged = load_model(str(run / END), torch.float32, torch.device("cpu")).state_dict()
    assert torch.equal(merged["model.embed_tokens.weight"], base["model.embed_tokens.weight"])
    assert not torch.equal(merged["model.layers.0.mlp.up_proj.weight"], base["model.layers.0.mlp.up_proj.weight"])
    # The next stage starts from the adapter checkpoint: merged, then trained in full.
    after = make_run(
        name="next-20260101T000000-0002",
        start={"checkpoint": str(run / END), "label": "M1", "run": run.name, "step": 6},
        index=2,
    )
    assert sft(after) == 0
    first = [e for e in events(after, "probe.scored") if e["step"] == 0]
    final = [e for e in events(run, "probe.scored") if e["step"] == 6]
    assert [e["summary"]["nll"] for e in first] == pytest.approx([e["summary"]["nll"] for e in final], rel=1e-4)


@pytest.mark.parametrize(
    "adapter", [None, {"r": 4, "target_modules": "all-linear", "lora_dropout": 0.2}], ids=["full", "lora"]
)
def test_resume_equals_an_uninterrupted_run(make_run, sft, adapter):
    whole = make_run(name="whole-20260101T000000-0001", save_every=2, adapter=adapter)
    assert sft(whole) == 0
    parted = make_run(name="parted-20260101T000000-0001", save_every=2, adapter=adapter)
    stop_after(4)
    assert sft(parted) == 143 and outcome(parted)["code"] == "cancelled"
    (parted / "attempt-0002").mkdir()
    assert sft(parted) == 0
    assert events(parted, "run.started")[-1]["resumed_from"] == 4
    file = "adapter_model.safetensors" if adapter else "model.safetensors"
    one, two = load_file(whole / END / file), load_file(parted / END / file)
    assert all(torch.equal(one[k], two[k]) for k in one)
    ends = [[e["summary"]["nll"] for e in events(run, "probe.scored") if e["step"] == 6] for run in (whole, parted)]
    assert ends[0] == ends[1]


def stop_after(step):
    """SIGTERM to ourselves in the given step, once."""
    from seesaw_runner.training.callbacks import StopWatch

    original = StopWatch.on_step_end

    def once(self, args, state, control, **rest):
        if state.global_step == step:
            StopWatch.on_step_end = original
            os.kill(os.getpid(), signal.SIGTERM)
        return original(self, args, state, control, **rest)

    StopWatch.on_step_end = once


def test_next_attempt_after_the_weights_were_complete_only_probes(make_run, sft):
    run = make_run()
    assert sft(run) == 0
    before = (run / END / "model.safetensors").stat().st_mtime_ns
    (run / "attempt-0002").mkdir()
    assert sft(run) == 0
    assert (run / END / "model.safetensors").stat().st_mtime_ns == before
    assert [e["step"] for e in events(run, "probe.scored") if e["attempt"] == 2] == [6, 6]


def test_unknown_argument_ends_before_torch(make_run):
    run = make_run(args={"learning_rat": 1})
    process = spawn(run, PYTHONPROFILEIMPORTTIME="1")
    text, _ = process.communicate(timeout=120)
    assert (
        process.returncode == 1
        and outcome(run)["code"] == "bad-argument"
        and "learning_rate" in outcome(run)["message"]
    )
    assert not any(line.rpartition("|")[2].strip() == "torch" for line in text.splitlines())
    assert events(run, "warning")[0]["code"] == "bad-argument"


def test_nan_stops_the_stage_without_saving_it(make_run, sft, monkeypatch):
    from seesaw_runner.training.stage_trainer import StageTrainer

    original = StageTrainer.training_step

    def poisoned(self, model, *args, **kwargs):
        if self.state.global_step == 2:
            with torch.no_grad():
                next(model.parameters()).fill_(float("nan"))
        return original(self, model, *args, **kwargs)

    monkeypatch.setattr(StageTrainer, "training_step", poisoned)
    run = make_run(save_every=1)
    assert sft(run) == 1 and outcome(run)["code"] == "nan-loss" and "step 3" in outcome(run)["message"]
    assert [e["code"] for e in events(run, "warning")].count("nan-loss") == 1
    assert [e["step"] for e in events(run, "checkpoint.saved")] == [1, 2] and events(run, "metric")[-1]["values"][
        "loss"
    ] == "NaN"


def test_a_full_disk_and_memory_have_their_codes(make_run, sft, monkeypatch):
    from seesaw_runner.checkpoints import saving
    from seesaw_runner.training.stage_trainer import StageTrainer

    def full(*_):
        raise OSError(28, "No space left on device", "model.safetensors")

    monkeypatch.setattr(saving, "publish", full)
    run = make_run()
    assert sft(run) == 1 and outcome(run)["code"] == "disk-full"
    monkeypatch.undo()

    def exhausted(*_, **__):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    monkeypatch.setattr(StageTrainer, "training_step", exhausted)
    run = make_run(name="memory-20260101T000000-0003")
    assert (
        sft(run) == 1
        and outcome(run)["code"] == "out-of-memory"
        and "per_device_train_batch_size" in outcome(run)["message"]
    )


def test_bad_rows_are_told_and_left_out(make_run, sft):
    run = make_run(
        train=[*copy_rows(12, 1), chat("x", "y " * 2000), {"messages": [{"role": "user", "content": "only"}]}],
        args={"max_length": 64},
    )
    assert sft(run) == 0
    assert events(run, "run.started")[0]["rows"] == 13  # the long answer is cut, the row without one left out
    assert any(e["code"] == "row-skipped" for e in events(run, "warning"))


def test_replay_is_exact_in_the_ledger(make_run, sft, tmp_path):
    old = write_rows(tmp_path / "project" / "data" / "old.jsonl", [chat(f"old {k}", f"answer {k}") for k in range(20)])
    replay = {
        "buffer": "main",
        "ratio": 0.25,
        "rows": 10,
        "from": [{"stage": "old", "data": str(old), "skill": None}],
        "quality": None,
        "diversity": None,
    }
    run = make_run(replay=replay, args={"gradient_accumulation_steps": 2})
    assert sft(run) == 0
    from seesaw_runner.replay.ledger import ledger_lines, valid_draws

    draws = valid_draws(ledger_lines(run / "ledger.jsonl"))
    assert sum(n for line in draws for _, n in line["draws"]) == 6 * 8 * 0.25 and {
        line["step"] for line in draws
    } <= set(range(1, 7))
    frozen = {r["hash"] for r in json.loads((run / "buffer.json").read_text())["rows"]}
    assert len(frozen) == 10 and {h for line in draws for h, _ in line["draws"]} <= frozen
    told = events(run, "ledger.drawn")[-1]
    assert (told["step"], told["rows"]) == (6, 12) and events(run, "run.started")[0]["replay_rows"] == 10


def test_sigterm_saves_and_ends_with_143(make_run):
    run = make_run(
        args={"max_steps": 4000},
        probe={"every": 4000, "eval_every": None, "top_k": 4, "max_new_tokens": 8, "batch_size": 16, "kl": ["start"]},
    )
    process = spawn(run)
    while not any(e["step"] > 0 for e in (events(run, "stage.progress") if (run / "journal.jsonl").exists() else [])):
        assert process.poll() is None, process.stdout.read()
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=120)
    assert process.returncode == 143 and outcome(run)["code"] == "cancelled"
    saved = events(run, "checkpoint.saved")
    assert len(saved) == 1 and not saved[0]["final"] and (run / saved[0]["path"] / "resume").is_dir()


RECORDER = """import json, os
if "RANK" in os.environ:
    from seesaw_runner.training.stage_trainer import StageTrainer
    real = StageTrainer.training_step
    def watched(self, model, inputs, *args, **kwargs):
        rows = [r[m.bool()].tolist() for r, m in zip(inputs["input_ids"], inputs["attention_mask"])]
        with open(os.path.join(os.environ["SEEN_FOLDER"], f"seen-{os.environ['RANK']}.jsonl"), "a") as file:
            file.write(json.dumps([self.state.global_step + 1, rows]) + chr(10))
        return real(self, model, inputs, *args, **kwargs)
    StageTrainer.training_step = watched
"""


def test_two_processes_draw_what_the_plan_says(make_run, sft, tmp_path, tokenizer):
    """The command line of src/targets/runnerEnv.ts with gloo: one journal, a ledger that is what both processes really
    trained on, and the same weights as one process that accumulates the two halves (up to rounding).
    """
    from test_hardship import consumed, drawn, replay_from

    probe = {"every": 3, "eval_every": None, "top_k": 4, "max_new_tokens": 8, "batch_size": 16, "kl": ["start"]}
    replay = replay_from(tmp_path)
    run = make_run(
        args={"per_device_train_batch_size": 2},
        save_every=3,
        launch={"kind": "torchrun", "processes": 2},
        probe=probe,
        replay=replay,
    )
    (tmp_path / "hook").mkdir()
    (tmp_path / "hook" / "sitecustomize.py").write_text(RECORDER)
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    path = f"{tmp_path / 'hook'}{os.pathsep}{RUNNER}"
    process = spawn(run, launcher=launcher, PYTHONPATH=path, SEEN_FOLDER=str(run), OMP_NUM_THREADS="1")
    text, _ = process.communicate(timeout=240)
    assert process.returncode == 0, text[-3000:]
    assert text.count("Done: M1") == 1
    assert events(run, "run.started")[0]["processes"] == 2 and [e["seq"] for e in events(run)] == list(
        range(1, len(events(run)) + 1)
    )
    assert [e["step"] for e in events(run, "checkpoint.saved")] == [3, 6]
    assert {p.name for p in (run / "checkpoints/step-000003/resume").glob("random-*")} == {
        "random-0.json",
        "random-1.json",
    }
    seen, total = consumed(run, tokenizer, [chat(f"old {k}", f"answer {k}") for k in range(20)])
    assert total == 6 * 4 and sum(seen.values()) == 6 and dict(seen) == drawn(run)
    single = make_run(
        name="single-20260101T000000-0002",
        args={"per_device_train_batch_size": 2, "gradient_accumulation_steps": 2},
        probe=probe,
        replay=replay,
    )
    assert sft(single) == 0
    one, two = load_file(run / END / "model.safetensors"), load_file(single / END / "model.safetensors")
    assert max(float((one[k] - two[k]).abs().max()) for k in one) < 2e-3
