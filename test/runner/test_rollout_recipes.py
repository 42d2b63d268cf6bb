"""self-distill, oracle-sft, experts, replay, balanced sft on the tiny model: what is learned, from whom, how often."""

import json
from collections import Counter

import pytest
import torch
from conftest import WORDS, as_model, chat, copy_rows, events, outcome, write_rows
from safetensors.torch import load_file
from seesaw_runner.training.plan import group_shares, make_plan

ROLLOUT = {"max_new_tokens": 10, "temperature": 0.7, "batch_size": 16}


def written(run):
    return [json.loads(line) for line in (run / "relabelled.jsonl").read_text().splitlines()]


def answers(rows):
    return [row["messages"][-1]["content"] for row in rows]


def weights(run, step=6):
    return load_file(run / "checkpoints" / f"step-{step:06d}" / "model.safetensors")


# ---- self-distill


def test_self_distill_learns_right_answers_of_the_labeller(make_run, recipe, taught_folder, base_folder):
    rows = [chat(row["messages"][0]["content"], "WRONG ON PURPOSE", id=row["id"]) for row in copy_rows(24, 1)]
    check = {"kind": "regex", "pattern": "^[a-z ]+$"}
    run = make_run(
        train=rows,
        recipe="self-distill",
        options={"labeller": "teacher", "check": check, "samples": 2, "keep": "all", **ROLLOUT},
        models={"teacher": as_model(taught_folder)},
    )
    assert recipe("self-distill", run) == 0
    learned = written(run)
    assert "WRONG ON PURPOSE" not in answers(learned)
    spoken = [word in WORDS for text in answers(learned) for word in text.split()]
    assert sum(spoken) > 0.9 * len(spoken)  # the labeller has learned the words, the untrained start model has none
    assert {row["relabelled"]["model"] for row in learned} == {"M1"} and learned[0]["id"] == "1-0"
    told = next(e for e in events(run, "metric") if "rollout/passed" in e["values"])["values"]
    assert told["rollout/answers"] == 48 and told["rollout/kept"] == len(learned) <= told["rollout/passed"]
    base = load_file(base_folder / "model.safetensors")
    assert any(not torch.equal(tensor, base[name]) for name, tensor in weights(run).items())


def test_a_later_attempt_learns_the_same_answers(make_run, recipe, taught_folder):
    run = make_run(
        recipe="self-distill",
        options={"labeller": "t", "check": False, **ROLLOUT},
        models={"t": as_model(taught_folder)},
    )
    assert recipe("self-distill", run) == 0
    before, first = (run / "relabelled.jsonl").read_bytes(), weights(run)
    for folder in (run / "checkpoints").iterdir():
        for file in sorted(folder.rglob("*"), reverse=True):
            file.rmdir() if file.is_dir() else file.unlink()
        folder.rmdir()
    (run / "attempt-0002").mkdir()
    assert recipe("self-distill", run) == 0
    assert (run / "relabelled.jsonl").read_bytes() == before
    assert all(torch.equal(first[name], tensor) for name, tensor in weights(run).items())


def test_nothing_good_enough_is_an_error_that_says_why(make_run, recipe):
    run = make_run(recipe="self-distill", options={"check": {"kind": "regex", "pattern": "never this"}, **ROLLOUT})
    assert recipe("self-distill", run) == 1
    said = outcome(run)
    assert said["code"] == "bad-data" and said["message"].startswith("No answer is good enough to learn from. 0 of 48")
    assert not (run / "relabelled.jsonl").exists() and not list(run.glob("*.tmp"))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"sample": 2}, "no option sample. Did you mean samples?"),
        ({"samples": 0}, "samples of the recipe self-distill is 0, but must be at least 1"),
        ({"keep": "best"}, "keep of the recipe self-distill is 'best'; it can be first, all, shortest"),
        ({"labeller": "nobody"}, "labeller of the recipe self-distill names 'nobody'"),
        ({"check": "nothing"}, "There is no skill nothing; the skills are copy."),
        ({"temperature": True}, "temperature of the recipe self-distill must be a number, but is True"),
    ],
)
def test_options_that_cannot_be_followed(make_run, recipe, options, said):
    run = make_run(recipe="self-distill", options={**ROLLOUT, **options})
    assert recipe("self-distill", run) == 1
    assert outcome(run)["code"] == "bad-argument" and said in outcome(run)["message"]


# ---- oracle-sft


def two_domains(n=24):
    rows = [{**row, "data_source": "copy" if k % 4 else "shout"} for k, row in enumerate(copy_rows(n, 1))]
    skills = lambda spec: [*spec, {**spec[0], "id": "shout", "own_stage": None}]  # noqa: E731
    return rows, skills


def test_oracles_answer_their_own_domain_and_batches_are_balanced(make_run, recipe, taught_folder, base_folder):
    rows, skills = two_domains()
    run = make_run(
        train=rows, recipe="oracle-sft", models={"a": as_model(taught_folder, "A"), "b": as_model(taught_folder, "B")}
    )
    spec = json.loads((run / "run.json").read_text())
    spec |= {
        "skills": skills(spec["skills"]),
        "options": {"oracles": {"copy": "a", "shout": "b"}, **ROLLOUT, "temperature": 0},
    }
    (run / "run.json").write_text(json.dumps(spec))
    assert recipe("oracle-sft", run) == 0
    learned = written(run)
    assert {(row["data_source"], row["relabelled"]["model"]) for row in learned} == {("copy", "A"), ("shout", "B")}
    gold = {row["messages"][0]["content"]: row["messages"][1]["content"] for row in rows}
    assert all(
        row["messages"][1]["content"] == gold[row["messages"][0]["content"]] for row in learned
    )  # checked: right
    shares = [e["message"] for e in events(run, "warning") if e["code"] == "balance"]
    assert len(shares) == 2 and all(" 12 draws" in text for text in shares)  # 6 steps × 4 rows, half each


def test_an_oracle_with_another_vocabulary_is_refused_before_anything_loads(make_run, recipe, taught_folder, tmp_path):
    import shutil

    other = tmp_path / "other"
    shutil.copytree(taught_folder, other)
    tokenizer = json.loads((other / "tokenizer.json").read_text())
    tokenizer["model"]["merges"] = tokenizer["model"]["merges"][:-1]
    (other / "tokenizer.json").write_text(json.dumps(tokenizer))
    rows, _ = two_domains()
    run = make_run(train=rows, recipe="oracle-sft", options={"oracles": {"copy": "o"}}, models={"o": as_model(other)})
    assert recipe("oracle-sft", run) == 1
    assert "The oracle of copy has another tokenizer" in outcome(run)["message"]


# ---- experts


def test_an_expert_moves_nothing_but_its_adapter(make_run, recipe, base_folder):
    run = make_run(
        recipe="experts",
        adapter={"r": 2, "lora_alpha": 4, "target_modules": "all-linear"},
        args={"learning_rate": 0.01},
    )
    before = (base_folder / "model.safetensors").read_bytes()
    assert recipe("experts", run) == 0
    folder = run / "checkpoints" / "step-000006"
    adapter = load_file(folder / "adapter_model.safetensors")
    assert not (folder / "model.safetensors").exists() and (base_folder / "model.safetensors").read_bytes() == before
    assert all(name.endswith(("lora_A.weight", "lora_B.weight")) for name in adapter)
    assert all(bool(tensor.abs().sum() > 0) for name, tensor in adapter.items() if "lora_B" in name)
    started = events(run, "run.started")[0]
    assert started["trainable"] == sum(tensor.numel() for tensor in adapter.values()) < started["parameters"]


def test_an_expert_without_an_adapter_is_refused(make_run, recipe):
    run = make_run(recipe="experts")
    assert recipe("experts", run) == 1 and "An expert is an adapter" in outcome(run)["message"]


# ---- replay


def test_a_replay_round_draws_from_the_buffer_alone(make_run, recipe, tmp_path):
    old = write_rows(tmp_path / "project" / "data" / "old.jsonl", copy_rows(20, 5))
    replay = {
        "buffer": "main",
        "ratio": 1,
        "rows": 8,
        "quality": None,
        "diversity": None,
        "from": [{"stage": "earlier", "data": str(old), "skill": None}],
    }
    run = make_run(recipe="replay", data=None, replay=replay, options={"buffer": "main"})
    assert recipe("replay", run) == 0
    drawn = events(run, "ledger.drawn")[-1]
    assert (drawn["rows"], drawn["distinct"]) == (24, 8)  # 6 steps of 4: three passes over 8 rows
    assert events(run, "run.started")[0]["rows"] == 0


# ---- balanced batches


def test_every_group_has_an_equal_share_of_every_batch(make_run, sft):
    groups = ["big"] * 90 + ["mid"] * 9 + ["one"]
    plan = make_plan(lengths=[k % 7 + 1 for k in range(100)], own=100, steps=50, batch=8, groups=groups, seed=4)
    counts = group_shares(plan, groups)
    assert sorted(draws for _, draws in counts.values()) == [133, 133, 134]  # 400 rows in three
    for step in range(1, 51):
        in_batch = [groups[i] for i in plan.rows_of(step)]
        assert all(in_batch.count(name) in (2, 3) for name in counts)
    draws = Counter(i for i in plan.order if groups[i] == "big")
    assert len(draws) == 90 and set(draws.values()) == {1, 2}  # no row a third time before all had their second


def test_balance_is_told_and_a_row_without_the_field_is_left_out(make_run, sft):
    rows = [{**row, "data_source": "a" if k < 30 else "b"} for k, row in enumerate(copy_rows(40, 1))] + copy_rows(2, 2)
    run = make_run(train=rows, options={"balance": "data_source"})
    assert sft(run) == 0
    told = {e["message"] for e in events(run, "warning") if e["code"] == "balance"}
    assert told == {
        "a: 30 rows, 12 draws, 0.40 passes; 60% of it is never seen.",
        "b: 10 rows, 12 draws, 1.20 passes; every row is seen.",
    }
    skipped = next(e for e in events(run, "warning") if e["code"] == "row-skipped")
    assert skipped["message"].startswith(
        "2 training rows are left out. Line 41: The row has no text in the field data_source"
    )
