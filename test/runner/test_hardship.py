"""A stage under bad circumstances: killed at the worst moment, a full disk, odd settings, damaged caches. Nothing that
was reached is lost, and what is said in the journal stays true."""

import json
import os
import subprocess
import sys

import pytest
import torch
from conftest import RUNNER, chat, copy_rows, events, write_rows
from safetensors import SafetensorError
from seesaw_runner.journal import read_events, standing_events
from seesaw_runner.scoring.trace import read_trace
from test_sft import END, outcome, stop_after

SMALL = {"every": 3, "eval_every": None, "top_k": 4, "max_new_tokens": 8, "batch_size": 16, "kl": ["start", "base"]}


def standing(run, kind):
    return [e for e in standing_events(read_events(run / "journal.jsonl")) if e["type"] == kind]


def again(run, number=2):
    (run / f"attempt-000{number}").mkdir()
    return run


def replay_from(tmp_path, n=20):
    rows = [chat(f"old {k}", f"answer {k}") for k in range(n)]
    old = write_rows(tmp_path / "project" / "data" / "old.jsonl", rows)
    origin = [{"stage": "old", "data": str(old), "skill": None}]
    return {"buffer": "main", "ratio": 0.25, "rows": 10, "from": origin, "quality": None, "diversity": None}


# ---- what a person reads


def test_the_log_has_a_few_readable_lines(make_run, sft, capsys):
    run = make_run(save_every=3)
    assert sft(run) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Stage copy from M0") and any("6 steps over 48 rows" in line for line in lines)
    assert [line.split(":")[0] for line in lines if line.startswith("step ")] == [
        *("step 0", "step 3", "step 3", "step 6", "step 6")
    ]
    assert (
        "copy.id" in lines[-2] and "right" in lines[-2] and lines[-1].startswith("Done: M1 is checkpoints/step-000006")
    )
    assert len(events(run, "probe.cost")) == 2  # one at each probe point after the start
    assert sft(make_run(name="bad-20260101T000000-0009", args={"learning_rat": 1})) == 1
    assert "Failed (bad-argument): " in capsys.readouterr().out


def test_help_loads_nothing():
    code = "import sys; from seesaw_runner.recipes import sft\ntry: sft.main(['--help'])\nexcept SystemExit: pass\n"
    done = subprocess.run(
        [sys.executable, "-c", code + "print(sorted({'torch', 'transformers'} & set(sys.modules)))"],
        cwd=RUNNER,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.splitlines()[-1] == "[]" and "exit code" in done.stdout.lower()


# ---- attempts


def test_an_attempt_from_scratch_says_everything_again(make_run, sft, monkeypatch):
    """Readers take back all that an attempt before its first checkpoint said, step 0 included."""
    from seesaw_runner.training.stage_trainer import StageTrainer

    run = make_run()
    monkeypatch.setattr(StageTrainer, "training_step", lambda *_, **__: 1 / 0)
    assert sft(run) == 1 and len(standing(run, "probe.scored")) == 2
    monkeypatch.undo()
    assert sft(again(run)) == 0
    assert [e["step"] for e in standing(run, "probe.scored")] == [0, 0, 3, 3, 6, 6]
    flags = standing(run, "flag.raised")
    assert {e["id"] for e in flags if e["step"] == 0} == {"copy.id", "copy.ood"} and flags[0]["attempt"] == 2


def test_a_checkpoint_that_was_never_announced_is(make_run, sft):
    """Killed between the rename and the journal: the next stage starts from this very event."""
    run = make_run(save_every=3)
    assert sft(run) == 0
    lines = (run / "journal.jsonl").read_text().splitlines(keepends=True)
    cut = next(k for k, line in enumerate(lines) if '"checkpoint.saved"' in line and '"step":6' in line)
    (run / "journal.jsonl").write_text("".join(lines[:cut]))
    assert sft(again(run)) == 0
    assert [(e["step"], e["final"]) for e in standing(run, "checkpoint.saved")] == [(3, False), (6, True)]
    assert standing(run, "run.started")[-1]["resumed_from"] == 6  # so that readers keep what stands at step 6
    assert [e["step"] for e in standing(run, "probe.scored")] == [0, 0, 3, 3, 6, 6]


def test_a_probe_point_that_was_stopped_over_is_made_up_for(make_run, sft):
    whole, parted = make_run(name="whole-20260101T000000-0001"), make_run(name="parted-20260101T000000-0002")
    assert sft(whole) == 0
    stop_after(3)
    assert sft(parted) == 143 and [e["step"] for e in standing(parted, "probe.scored")] == [0, 0]
    assert sft(again(parted)) == 0
    for kind in ("probe.scored", "flag.raised", "flag.changed"):
        one, two = (
            [{**e, "seq": 0, "t": 0, "attempt": 0, "seconds": 0} for e in standing(r, kind)] for r in (whole, parted)
        )
        assert one == two


def test_killed_while_saving_leaves_no_half_checkpoint(make_run, sft):
    run = make_run(save_every=3)
    code = (
        "import os, sys\nfrom seesaw_runner.checkpoints import saving\n"
        "real = saving.publish\n"
        "saving.publish = lambda folder, step: real(folder, step) if step < 6 else os.kill(os.getpid(), 9)\n"
        "from seesaw_runner.recipes import sft\nsft.main([sys.argv[1]])\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(run)], cwd=RUNNER, capture_output=True, timeout=120)
    assert done.returncode == -9
    assert [p.name for p in (run / "checkpoints").glob(".step-*")] and not (run / END).exists()
    assert sft(again(run)) == 0
    assert sorted(p.name for p in (run / "checkpoints").iterdir()) == ["step-000003", "step-000006"]
    assert standing(run, "run.started")[-1]["resumed_from"] == 3


def test_a_torn_final_checkpoint_is_trained_again(make_run, sft):
    run = make_run(save_every=3)
    assert sft(run) == 0
    weights = run / END / "model.safetensors"
    before = weights.read_bytes()
    weights.write_bytes(before[:-100])
    assert sft(again(run)) == 0 and weights.read_bytes() == before


# ---- disks


def test_a_full_disk_behind_a_library_is_a_full_disk(make_run, sft, monkeypatch):
    from seesaw_runner.training.stage_trainer import StageTrainer

    def full(*_):
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(StageTrainer, "_save_weights", full)
    run = make_run()
    assert sft(run) == 1 and outcome(run)["code"] == "disk-full"
    assert not list((run / "checkpoints").iterdir())  # the half checkpoint gives its room back
    assert sft(again(run)) == 1
    monkeypatch.undo()
    assert sft(again(run, 3)) == 0


def test_a_full_disk_while_a_trace_is_written(make_run, sft, monkeypatch):
    import sqlite3

    from seesaw_runner.scoring import trace

    def full(*_):
        raise sqlite3.OperationalError("database or disk is full")

    run = make_run()
    monkeypatch.setattr(trace, "summaries", full)
    assert sft(run) == 1 and outcome(run)["code"] == "disk-full" and not list(run.rglob("*.tmp"))


def test_the_cache_never_takes_down_a_run_nor_lies(make_run, sft, monkeypatch):
    from seesaw_runner.probing import reference_cache

    def nll(run):
        return [e["summary"]["nll"] for e in events(run, "probe.scored")]

    def name(k):
        return f"copy-20260101T000000-100{k}"

    def full(*_, **__):
        raise SafetensorError("I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(reference_cache, "save_file", full)
    first = make_run(name=name(0))
    assert sft(first) == 0
    cache = first.parent.parent / "cache"

    def entries():  # beside them lie the graphs for live scoring
        return list(cache.glob("scores-*"))

    assert not entries()
    monkeypatch.undo()
    assert sft(make_run(name=name(1))) == 0 and len(entries()) == 2  # the start's and the end's
    for damage in (
        lambda data: data[: len(data) // 2],
        lambda data: data[:-40] + b"\x00\x00\x80\x7f" * 10,
        lambda _: b"",
    ):
        for path in entries():
            path.write_bytes(damage(path.read_bytes()))
        run = make_run(name=name(2 + len(list(first.parent.glob("*-1*")))))
        assert sft(run) == 0 and nll(run) == nll(first)
    # Another template gives other tokens: nothing of the cache may be used, and the numbers are those of a fresh run.
    from seesaw_runner.probing.prober import Prober

    fresh = []
    monkeypatch.setattr(Prober, "_fresh", lambda self, real=Prober._fresh: fresh.append(1) or real(self))
    assert sft(make_run(name=name(8))) == 0 and not fresh
    changed = make_run(name=name(9), probes=35)
    assert sft(changed) == 0 and fresh


# ---- odd settings


def test_settings_larger_than_what_there_is(make_run, sft):
    """top-k beyond the vocabulary, a batch beyond the data, a probe point beyond the steps, answers beyond the
    context."""
    run = make_run(
        train=copy_rows(5, 1),
        args={"max_steps": 2, "per_device_train_batch_size": 16},
        probe={**SMALL, "every": 50, "eval_every": 100, "top_k": 1000, "max_new_tokens": 400},
    )
    assert sft(run) == 0
    assert sorted({e["step"] for e in events(run, "probe.scored")}) == [0, 2]
    trace = read_trace(run / "traces/step-000002/copy.id.trace")
    assert trace.meta["top_k"] == 320 and all(len(r.topk_ids) == 320 * len(r.ids) for r in trace.rows)


def test_probes_longer_than_the_context_are_skipped_and_said(make_run, sft):
    run = make_run(args={"max_length": 4000}, train=[*copy_rows(20, 1), chat("say it", "cat " * 300)])
    probes = json.loads((run / "run.json").read_text())["skills"][0]["probes"]["id"]
    with open(probes, "a", encoding="utf-8") as handle:
        handle.write(json.dumps(chat("say it", "cat sun " * 200)) + "\n")
    assert sft(run) == 0
    last = read_trace(run / "traces/step-000006/copy.id.trace").rows[-1]
    assert "128 of the model's context" in last.reason and not last.ids
    codes = {e["code"]: e["message"] for e in events(run, "warning")}
    assert "1 of 35 probes" in codes["probe-skipped"] and "1 of 21 training rows are cut to 128" in codes["row-cut"]


@pytest.mark.parametrize("name", ["per_device_train_batch_size", "gradient_accumulation_steps"])
def test_a_batch_of_nothing_is_refused(make_run, sft, name):
    run = make_run(args={name: 0})
    assert sft(run) == 1 and outcome(run)["code"] == "bad-argument" and name in outcome(run)["message"]


def test_a_buffer_without_a_usable_row_is_bad_data(make_run, sft, tmp_path):
    replay = replay_from(tmp_path)
    write_rows(tmp_path / "project" / "data" / "old.jsonl", [chat("word " * 200, "late")])
    run = make_run(replay=replay, args={"max_length": 32})
    assert sft(run) == 1 and outcome(run)["code"] == "bad-data" and "buffer" in outcome(run)["message"]


def test_no_rows_a_newer_run_file_and_a_missing_probe_file(make_run, sft):
    run = make_run(train=[])
    assert sft(run) == 1 and outcome(run)["code"] == "bad-data"
    run = make_run(name="newer-20260101T000000-0002", schema="2.0")
    assert sft(run) == 1 and outcome(run)["code"] == "preflight" and "Update the runner" in outcome(run)["message"]
    run = make_run(name="gone-20260101T000000-0003")
    spec = json.loads((run / "run.json").read_text())
    os.unlink(spec["skills"][0]["probes"]["ood"])
    assert sft(run) == 1 and outcome(run)["code"] == "bad-data" and "ood probes" in outcome(run)["message"]


def test_logits_that_are_no_function_of_the_last_state(make_run, sft, monkeypatch):
    from seesaw_runner.scoring.causal_lm import CausalLM

    plain, whole = make_run(name="plain-20260101T000000-0001"), make_run(name="whole-20260101T000000-0002")
    assert sft(plain) == 0
    monkeypatch.setattr(CausalLM, "_choose_path", lambda self, config: "whole")
    assert sft(whole) == 0 and any(e["code"] == "whole-logits" for e in events(whole, "warning"))
    one, two = ([e["summary"] for e in events(r, "probe.scored")] for r in (plain, whole))
    assert [s["nll"] for s in one] == pytest.approx([s["nll"] for s in two], abs=1e-3)
    assert {s["kl_start"] for s in two} == {None}


# ---- numbers


def test_the_short_selection_is_paired_with_the_same_rows(make_run, sft, monkeypatch):
    """Points between, where there is nothing to watch: 16 rows of 40, drawn by their hash and not by their place in the
    file; every number of theirs is the one that the whole traces give for these rows."""
    from seesaw_runner.training import probes

    monkeypatch.setattr(probes, "probes_are_dear", lambda **_: True)
    run = make_run(probes=40, probe={**SMALL, "eval_every": 3})
    assert sft(run) == 0
    start, middle = (read_trace(run / f"traces/step-00000{k}/copy.id.trace") for k in (0, 3))
    chosen = [i for i, r in enumerate(middle.rows) if r.reason is None]
    assert len(chosen) == 16 and chosen != list(range(16))
    summary = next(e["summary"] for e in events(run, "probe.scored") if e["step"] == 3)
    deltas = [middle.rows[i].nll - start.rows[i].nll for i in chosen]
    assert summary["delta_nll"] == pytest.approx(sum(deltas) / 16, abs=1e-4) and summary["skipped"] == 24
    for k, name in enumerate(middle.segments):
        both = [
            sum(-v for i in chosen for v, s in zip(t.rows[i].logprob, t.rows[i].segment, strict=True) if s == k)
            for t in (middle, start)
        ]
        assert summary["segments"][name]["delta_nll"] == pytest.approx((both[0] - both[1]) / 16, abs=1e-4)
    assert all(middle.rows[i].reference == start.rows[i].reference for i in chosen)
    assert [middle.rows[i].correct is not None for i in range(40)] == [i in chosen for i in range(40)]
    told = next(e for e in events(run, "eval.result") if e["step"] == 3)
    assert told["n"] == 16 and told["correct"] == sum(middle.rows[i].correct for i in chosen)


def test_kl_is_exact_under_lora_and_with_a_trained_head(make_run, sft, base_folder, tmp_path):
    """Against plain transformers: KL(start ‖ now) and KL(base ‖ now), where start and base are not the same."""
    from conftest import build_model, build_tokenizer
    from seesaw_runner.training.loading import load_model

    untied = tmp_path / "untied"
    build_model(seed=5, tie_word_embeddings=False).save_pretrained(untied)
    build_tokenizer().save_pretrained(untied)
    run = make_run(
        start={"checkpoint": str(untied), "label": "M1", "run": None, "step": None},
        adapter={"r": 4, "target_modules": "all-linear", "modules_to_save": ["lm_head"]},
    )
    assert sft(run) == 0
    cpu = torch.device("cpu")
    now, start, base = (load_model(str(p), torch.float32, cpu).eval() for p in (run / END, untied, base_folder))
    assert not torch.equal(now.lm_head.weight, start.lm_head.weight)
    from seesaw_runner.scoring.encode import Encoder
    from seesaw_runner.training.loading import load_tokenizer

    encoder = Encoder(load_tokenizer(str(untied)))
    trace = read_trace(run / "traces/step-000006/copy.id.trace")
    for value, row in list(zip(copy_rows(34, 2), trace.rows, strict=True))[:8]:
        encoded = encoder.encode(value)
        at = [k - 1 for k in encoded.scored]
        with torch.no_grad():
            q, s, b = (
                torch.log_softmax(m(input_ids=torch.tensor([encoded.ids])).logits[0], -1)[at]
                for m in (now, start, base)
            )
        for name, p in (("start", s), ("base", b)):
            assert torch.allclose(torch.tensor(row.kl[name]), (p.exp() * (p - q)).sum(-1), atol=1e-4)


def consumed(run, tokenizer, rows):
    """(step, hash of the replay row) of everything that went through the model, from `seen-*.jsonl`."""
    from collections import Counter

    from seesaw_runner.data.canonical import row_hashes
    from seesaw_runner.scoring.encode import Encoder

    encoder = Encoder(tokenizer)
    known = {tuple(encoder.encode(v, last_only=False).ids): row_hashes(v).full for v in rows}
    seen = Counter()
    total = 0
    for path in run.glob("seen-*.jsonl"):
        for line in path.read_text().splitlines():
            step, batch = json.loads(line)
            total += len(batch)
            seen.update((step, known[tuple(ids)]) for ids in batch if tuple(ids) in known)
    return seen, total


def drawn(run):
    from seesaw_runner.replay.ledger import ledger_lines, valid_draws

    return {(d["step"], h): n for d in valid_draws(ledger_lines(run / "ledger.jsonl")) for h, n in d["draws"]}


def test_the_ledger_is_what_was_trained_on_through_a_resume(make_run, sft, tmp_path, tokenizer, monkeypatch):
    from seesaw_runner.training.stage_trainer import StageTrainer

    real = StageTrainer.training_step

    def watched(self, model, inputs, *args, **kwargs):
        rows = [r[m.bool()].tolist() for r, m in zip(inputs["input_ids"], inputs["attention_mask"], strict=True)]
        with open(run / "seen-0.jsonl", "a") as file:
            file.write(json.dumps([self.state.global_step + 1, rows]) + "\n")
        return real(self, model, inputs, *args, **kwargs)

    monkeypatch.setattr(StageTrainer, "training_step", watched)
    run = make_run(replay=replay_from(tmp_path), args={"gradient_accumulation_steps": 2}, save_every=2)
    stop_after(4)
    assert sft(run) == 143
    assert sft(again(run)) == 0
    seen, total = consumed(run, tokenizer, [chat(f"old {k}", f"answer {k}") for k in range(20)])
    assert total == 6 * 8 and sum(seen.values()) == 12 and dict(seen) == drawn(run)
