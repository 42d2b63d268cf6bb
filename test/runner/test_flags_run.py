"""Early warnings in a real training: what the runner decides, what traces give again, what a flag does to its run."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import RUNNER, chat, copy_rows, events, outcome, write_rows
from safetensors.torch import load_file
from seesaw_runner import agent
from seesaw_runner.flags.detectors import DETECTORS
from seesaw_runner.flags.panel import Noise, SeriesStart
from seesaw_runner.flags.verdict import LookScores, Setup
from seesaw_runner.journal import read_events, standing_events
from seesaw_runner.probing.token_scores import RowTokens, from_trace
from seesaw_runner.scoring.trace import read_trace

STEPS = 8
PROBE = {"every": [2, 4, 6, 8], "eval_every": None, "top_k": 4, "max_new_tokens": 8, "batch_size": 16, "kl": ["start"]}


def probe_rows(n, seed):
    """Short ones, which the taught model can copy."""
    return [row for row in copy_rows(8 * n, seed) if len(answer_of(row).split()) < 3][:n]


def answer_of(row):
    return row["messages"][1]["content"]


def chat_prompt(row):
    return row["messages"][0]["content"]


@pytest.fixture
def forgetting(make_run, taught_folder):
    """forgetting(name, flags, …) → a run that starts from a model that can copy and teaches it one answer to all."""

    def make(name="lose-20260101T000000-0001", flags=None, skill=None, probes=64, **changes):
        rows = [chat(f"tell {answer_of(row)}", "moon moon moon moon") for row in copy_rows(64, 5)]
        given = {
            "train": rows,
            "start": {"checkpoint": str(taught_folder), "label": "M1", "run": None, "step": None},
            "args": {"max_steps": STEPS, "learning_rate": 3e-3, "lr_scheduler_type": "constant"},
            "probe": PROBE,
            "flags": {"alpha": 0.1, "tolerance": 2, "detector": "soft", "tolerance_nats": 0.2, **(flags or {})},
        }
        run = make_run(name=name, **{**given, **changes})
        spec = json.loads((run / "run.json").read_text())
        for split, seed in (("id", 2), ("ood", 3)):
            write_rows(Path(spec["skills"][0]["probes"][split]), probe_rows(probes, seed))
        spec["skills"][0] |= skill or {}
        (run / "run.json").write_text(json.dumps(spec))
        return run

    return make


def again(run):
    number = len(list(run.glob("attempt-*"))) + 1
    (run / f"attempt-{number:04d}").mkdir()
    return run


def flags_of(run):
    """What stands of the flags, without what differs between attempts."""
    standing = standing_events(read_events(run / "journal.jsonl"))
    drop = ("seq", "t", "attempt", "type")
    return [{k: v for k, v in e.items() if k not in drop} for e in standing if e["type"].startswith("flag.")]


def recomputed(run, series, detector, setup):
    """Verdicts at every look, from the traces alone."""
    steps = sorted({e["step"] for e in events(run, "probe.scored")})
    traces = {k: read_trace(run / f"traces/step-{k:06d}/{series}.trace") for k in steps}
    rows = [i for i in range(len(traces[0].rows)) if all(t.rows[i].ids for t in traces.values())]
    tokens = [RowTokens(traces[0].rows[i].ids, []) for i in rows]
    scores = {k: from_trace([t.rows[i] for i in rows], tokens, "all") for k, t in traces.items()}
    noise = traces[0].meta["noise"]
    skill, split = series.split(".")
    seed = json.loads((run / "run.json").read_text())["seed"]
    right = [bool(traces[0].rows[i].correct) for i in rows]
    start = SeriesStart(
        skill, split, scores[0].nll, scores[0].margins, right, Noise(noise["nll_q99"], noise["margin_sd"]), seed
    )
    opened = DETECTORS[detector](start, setup)
    last = steps[-1]
    return {k: opened.look(LookScores(k, k / last, scores[k].nll, scores[k].margins)) for k in steps[1:]}


@pytest.mark.parametrize("detector", DETECTORS)
def test_flags_are_what_the_traces_give_again(forgetting, sft, detector):
    run = forgetting(flags={"detector": detector})
    assert sft(run) == 0
    flags = flags_of(run)
    raised = [f for f in flags if f["state"] == "drifting" and "test" not in f]
    assert {f["id"] for f in raised} == {"copy.id", "copy.ood"} and any(f["state"] == "confirmed" for f in flags)
    for flag in raised:
        verdict = recomputed(run, flag["id"], detector, Setup(0.1, 2, 4))[flag["step"]]
        assert verdict.alarm and verdict.unit == flag["unit"] and flag["detector"] == detector
        told = {"value": verdict.estimate, "lower": verdict.low, "high": verdict.high, "spent": verdict.spent}
        assert {k: flag[k] for k in told} == pytest.approx(told, rel=1e-9, abs=1e-9)
        assert flag["n"] == 64 and flag["weak"] is False and 0 < flag["smallest_drop"] < 40
        points = flag["points"]
        assert points["low"] < points["estimate"] < points["high"] and points["estimate"] > 2
        assert 1 <= len(flag["moved"]) <= 5 and flag.get("margin") == (None if detector == "nll" else "all")
    # The tokens that it names are the ones that fell.
    flag = raised[0]
    start, now = (read_trace(run / f"traces/step-{k:06d}/{flag['id']}.trace") for k in (0, flag["step"]))
    for moved in flag["moved"]:
        one, two = start.rows[moved["row"]], now.rows[moved["row"]]
        assert moved["line"] == one.line and moved["change"] < 0 and moved["tokens"]
        fell = np.array(one.logprob) - np.array(two.logprob)
        assert set(moved["tokens"]) == set(np.argsort(-fell)[: len(moved["tokens"])].tolist())


def test_traces_hold_the_floor_of_the_scoring_noise(forgetting, sft):
    run = forgetting(probe={**PROBE, "top_k": 1})
    assert sft(run) == 0
    for split in ("id", "ood"):
        trace = read_trace(run / f"traces/step-000000/copy.{split}.trace")
        noise = trace.meta["noise"]
        assert noise.keys() == {"nll_q99", "token_q99", "margin_sd", "decision_sd"}
        assert 0 < noise["token_q99"] <= noise["nll_q99"] < 1e-3 and 0 < noise["margin_sd"] < 1e-3
        # A margin needs two alternatives, whatever the stage says.
        assert trace.meta["top_k"] == 2 and len(trace.rows[0].topk_ids) == 2 * len(trace.rows[0].ids)


def test_weights_that_do_not_move_never_alarm(forgetting, sft):
    run = forgetting(args={"max_steps": STEPS, "learning_rate": 0.0})
    assert sft(run) == 0
    assert flags_of(run) == []
    for detector in DETECTORS:
        for series in ("copy.id", "copy.ood"):
            found = recomputed(run, series, detector, Setup(0.1, 2, 4))
            assert len(found) == 4 and not any(v.alarm for v in found.values()), (detector, series)


def test_a_pause_saves_and_goes_on_as_if_it_had_not_been(forgetting, sft):
    whole = forgetting("whole-20260101T000000-0001")
    assert sft(whole) == 0
    run = forgetting("lose-20260101T000000-0002", skill={"on_flag": "pause"})
    halted = []
    while (code := sft(run)) != 0:
        said = outcome(run, len(halted) + 1)
        assert code == 143 and said["code"] == "paused" and "Run the stage again" in said["message"]
        assert agent.classify({"code": code, "signal": None, "reason": "exit", "outcome": said}) == {
            "kind": "paused",
            "flag": said["flag"],
            "step": said["step"],
        }
        assert (run / f"checkpoints/step-{said['step']:06d}/seesaw.json").exists()
        halted.append((said["flag"], said["step"]))
        assert len(halted) <= 2, halted
        again(run)
    assert halted and halted[0][1] < STEPS  # in the middle of the training
    confirmed = [(f["id"], f["step"]) for f in flags_of(whole) if f["state"] == "confirmed"]
    assert set(halted) <= set(confirmed) and [e["resumed_from"] for e in events(run, "run.started")][1] == halted[0][1]
    end = f"checkpoints/step-{STEPS:06d}/model.safetensors"
    one, two = load_file(whole / end), load_file(run / end)
    assert all(torch.equal(one[k], two[k]) for k in one)
    assert flags_of(run) == flags_of(whole)


def test_a_flag_that_could_not_halt_halts_the_next_attempt(forgetting, sft, monkeypatch):
    """Killed after the flag was journalled and before the pause came about: nobody has seen it yet."""
    from seesaw_runner.training import session
    from test_sft import stop_after

    run = forgetting(skill={"on_flag": "pause"})
    with monkeypatch.context() as patch:
        patch.setattr(session, "flags_may_halt", lambda _: False)
        patch.setattr(session, "halt_of", lambda _: None)
        stop_after(5)
        assert sft(run) == 143 and outcome(run)["code"] == "cancelled"
    flag = next(f for f in reversed(flags_of(run)) if f["state"] == "confirmed")
    assert sft(again(run)) == 143 and outcome(run, 2)["code"] == "paused" and outcome(run, 2)["step"] <= flag["step"]
    assert events(run, "checkpoint.saved")[-1]["step"] == 6  # after the first step that it made
    while sft(again(run)) != 0:  # what is confirmed later may halt it again
        assert outcome(run, len(list(run.glob("attempt-*"))))["step"] > 5


def test_a_pause_at_the_last_step_holds_the_chain(forgetting, sft):
    run = forgetting(skill={"on_flag": "pause"}, probe={**PROBE, "every": [STEPS]})
    assert sft(run) == 143 and outcome(run)["step"] == STEPS
    assert events(run, "checkpoint.saved")[-1]["final"] is True
    before = flags_of(run)
    assert sft(again(run)) == 0 and flags_of(run) == before  # the same weights are no further look


def test_a_stop_is_a_failure_with_a_checkpoint(forgetting, sft):
    run = forgetting(flags={"on_flag": "stop"})
    assert sft(run) == 1
    said = outcome(run)
    assert said["code"] == "flag-stop" and said["message"].startswith("The loss of copy.")
    ended = agent.classify({"code": 1, "signal": None, "reason": "exit", "outcome": said})
    assert ended["kind"] == "failed" and ended["code"] == "flag-stop"
    saved = events(run, "checkpoint.saved")[-1]
    assert (run / saved["path"] / "resume").is_dir() and saved["step"] < STEPS


def test_flags_inform_by_default(forgetting, sft):
    run = forgetting(skill={"on_flag": "inform"}, flags={"on_flag": "stop"})
    assert sft(run) == 0 and any(f["state"] == "confirmed" for f in flags_of(run))


def test_a_killed_training_sees_what_an_uninterrupted_one_sees(forgetting, sft):
    """Spending, states and calm looks of the looks before the resume are read back from the traces."""
    from test_sft import stop_after

    whole, parted = forgetting("whole-20260101T000000-0001"), forgetting("part-20260101T000000-0002")
    assert sft(whole) == 0
    stop_after(5)
    assert sft(parted) == 143
    assert sft(again(parted)) == 0
    assert flags_of(parted) == flags_of(whole)


# ---- panels


def test_probes_that_are_trained_on_raise_no_flags(forgetting, sft):
    """All `id` probes of two words are in the training data, with another answer; of `ood` a few have the same text."""
    trained = [chat(f"say {text}", "moon") for text in {answer_of(r) for r in probe_rows(64, 2)} if " " in text]
    run = forgetting(train=trained)
    assert sft(run) == 0
    told = [e for e in events(run, "warning") if e["code"] == "probe-in-training"]
    assert [e["where"].split("/")[-1].split(":")[0] for e in told] == ["id.jsonl", "ood.jsonl"]
    place, trained_at = told[0]["message"].split(": ")[1].split(";")[0].split(" is ")
    line, other = int(place.split(":")[1]), int(trained_at.rpartition(":")[2])
    assert chat_prompt(probe_rows(64, 2)[line - 1]) == chat_prompt(trained[other - 1])  # both places are right
    said = {chat_prompt(row) for row in trained}
    left = [sum(chat_prompt(r) not in said for r in probe_rows(64, seed)) for seed in (2, 3)]
    dropped = [e["message"].split()[0] for e in told]
    assert dropped == [str(64 - n) for n in left] and 32 <= left[0] < 64
    flags = {f["id"]: f for f in flags_of(run)}
    assert flags["copy.id"]["n"] == left[0] and flags["copy.id"]["weak"] is True and flags["copy.ood"]["n"] == left[1]
    # Scored and shown all the same where every row is.
    assert all(row.reason is None for row in read_trace(run / f"traces/step-{STEPS:06d}/copy.id.trace").rows)


def test_too_few_rows_that_are_not_trained_on_raise_none(forgetting, sft):
    run = forgetting(train=[chat(f"say {answer_of(r)}", "moon") for r in probe_rows(64, 2)[:50]])
    assert sft(run) == 0
    flag = next(f for f in flags_of(run) if f["id"] == "copy.id")
    assert flag["state"] == "not-measurable" and "also occur in this run's training or replay data" in flag["reason"]


def test_replayed_probes_are_found_in_the_buffer(forgetting, tokenizer):
    """A buffer leaves out what equals a probe when it is built; one of an older run may not have."""
    from seesaw_runner.data.canonical import row_hashes
    from seesaw_runner.journal import Journal
    from seesaw_runner.probing.membership import trained_rows
    from seesaw_runner.probing.probe_set import load_probe_sets
    from seesaw_runner.scoring.encode import Encoder

    run = forgetting()
    spec = json.loads((run / "run.json").read_text())
    hashes = row_hashes(probe_rows(64, 3)[7])
    row = {"hash": "0", "prompt_hash": hashes.prompt, "source": "data/old.jsonl", "line": 3}
    (run / "buffer.json").write_text(json.dumps({"rows": [row]}))
    with Journal(run / "journal.jsonl", 1) as journal:
        sets = load_probe_sets(spec, Encoder(tokenizer), lambda **_: None)
        found = trained_rows(sets, spec, run, journal)
    same = [k for k, r in enumerate(probe_rows(64, 3)) if chat_prompt(r) == chat_prompt(probe_rows(64, 3)[7])]
    assert sorted(found[1]) == same and 7 in same
    assert "data/old.jsonl:3 (replayed)" in events(run, "warning")[-1]["message"]


def test_rows_of_a_group_count_once(forgetting, sft):
    run = forgetting()
    spec = json.loads((run / "run.json").read_text())
    rows = [{**row, "group": f"g{k // 2}"} for k, row in enumerate(probe_rows(80, 2))]
    write_rows(Path(spec["skills"][0]["probes"]["id"]), rows)
    assert sft(run) == 0
    flags = {f["id"]: f for f in flags_of(run) if f["state"] != "not-measurable"}
    assert flags["copy.id"]["n"] == 40 and flags["copy.id"]["weak"] is True
    test = next(f["test"] for f in flags_of(run) if f["id"] == "copy.id" and "test" in f)
    assert test["n"] == 40 and test["lost"] + test["gained"] <= 40


def test_points_between_the_ends_of_a_short_stage_watch_64_rows(forgetting, sft, monkeypatch):
    from seesaw_runner.training import probes

    monkeypatch.setattr(probes, "probes_are_dear", lambda **_: True)
    run = forgetting(probes=80)
    assert sft(run) == 0
    middle, end = (read_trace(run / f"traces/step-00000{k}/copy.id.trace") for k in (4, 8))
    chosen = [i for i, r in enumerate(middle.rows) if r.reason is None]
    assert len(chosen) == 64 and all(r.reason is None for r in end.rows)
    assert {f["n"] for f in flags_of(run)} == {64}  # the same rows at every look, at the end too


# ---- other recipes and processes


def test_two_processes_halt_together(forgetting):
    run = forgetting(flags={"on_flag": "pause"}, launch={"kind": "torchrun", "processes": 2})
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [sys.executable, *launcher, "-m", "seesaw_runner.recipes.sft", str(run)],
        cwd=RUNNER,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    said = outcome(run)
    assert done.returncode != 0 and said["code"] == "paused" and said["step"] < STEPS, done.stdout + done.stderr
    random = (run / f"checkpoints/step-{said['step']:06d}/resume").glob("random-*")
    assert len(list(random)) == 2  # both saved


def test_the_gate_is_not_only_for_sft(forgetting, recipe):
    """A recipe with another trainer, whose callbacks come from the same `fit`."""
    pairs = [
        {
            "prompt": [{"role": "user", "content": f"say {answer_of(row)}x"}],
            "chosen": [{"role": "assistant", "content": "moon moon"}],
            "rejected": [{"role": "assistant", "content": answer_of(row)}],
        }
        for row in copy_rows(64, 5)
    ]
    run = forgetting(recipe="dpo", train=pairs, skill={"on_flag": "pause"}, args={"max_steps": STEPS, "beta": 0.05})
    assert recipe("dpo", run) == 143 and outcome(run)["code"] == "paused"


def test_a_command_is_paused_and_goes_on(forgetting, recipe, monkeypatch):
    """The script's weights walk at random, so whatever the model could is gone by the first checkpoint."""
    monkeypatch.setattr(os, "nice", lambda _: 0)
    script = Path(__file__).parent / "fakes" / "hf_script.py"
    words = ["{python}", str(script), "--model", "{start}", "--out", "{output}", "--train", "--steps", "8"]
    words += ["--save", "4", "--pause", "1", "--resume", "{resume}"]
    run = forgetting(recipe="command", data=None, trusted=True, options={"run": words}, skill={"on_flag": "pause"})
    spec = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**spec, "args": {}}))
    assert recipe("command", run) == 143
    said = outcome(run)
    assert said["code"] == "paused" and said["step"] == 4 and said["flag"].startswith("copy.")
    assert {e["step"] for e in events(run, "checkpoint.saved")} == {4}  # stopped, not run to its end
    halted = [(said["flag"], said["step"])]
    while recipe("command", again(run)) != 0:  # the other split's flag may pause it too, the same one never again
        said = outcome(run, len(halted) + 1)
        halted.append((said["flag"], said["step"]))
        assert said["code"] == "paused" and len(set(halted)) == len(halted) <= 2
    assert events(run, "run.started")[1]["resumed_from"] == 4 and events(run, "checkpoint.saved")[-1]["step"] == 8
    confirmed = [(f["id"], f["step"]) for f in flags_of(run) if f["state"] == "confirmed"]
    assert len(set(confirmed)) == len(confirmed) and set(halted) <= set(confirmed)  # each is said once
