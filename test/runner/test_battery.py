"""The battery's plan, rows and measures; its trainings are checked by the recorded runs (test_battery_again.py)."""

from __future__ import annotations

import itertools
import json
from collections import Counter

import pytest
import torch
from battery import rows as data
from battery.bases import SKILLS, start_skills
from battery.measure import Group, Meter, panel_numbers, weight_drift
from battery.plan import BANKS, LOOKS, runs_of


def prompts(rows) -> set[str]:
    return {row["messages"][0]["content"] for row in rows}


@pytest.mark.parametrize("skill", SKILLS)
def test_nobody_trains_on_what_is_measured(skill):
    held = data.held_out_rows(skill, 7)
    assert [len(held[k]) for k in ("panel", "bench", "oracle")] == [data.PANEL, data.BENCH, data.ORACLE]
    sets = [prompts(held[k]) for k in held]
    assert sum(map(len, sets)) == len(set.union(*sets)) == data.PANEL + data.BENCH + data.ORACLE
    for seed in (101, 1015):
        assert not prompts(data.train_rows(skill, seed)) & set.union(*sets)


def test_a_change_of_style_is_none_for_the_check():
    from battery.measure import check_of

    for skill in ("math", "search"):
        for row in data.styled(data.train_rows(skill, 3, 50)):
            assert row["messages"][1]["content"].startswith("ok; ")
            assert check_of(skill).passes(row["messages"][1]["content"], row)


def test_preferences_reject_a_wrong_answer():
    from battery.measure import check_of

    for row, source in zip(data.preferences("tool", 3, 60), data.train_rows("tool", 3, 60), strict=True):
        check = check_of("tool")
        assert check.passes(row["chosen"][0]["content"], source)
        assert not check.passes(row["rejected"][0]["content"], source)


def test_a_bank_follows_from_its_name_and_banks_share_nothing():
    banks = {name: runs_of(name) for name in BANKS}
    assert banks["A"] == runs_of("A")
    for one, other in itertools.combinations(banks.values(), 2):
        assert {run.base for run in one}.isdisjoint(run.base for run in other)
        assert {run.seed for run in one}.isdisjoint(run.seed for run in other)
    for runs in banks.values():
        assert len({run.id for run in runs}) == len({run.seed for run in runs}) == len(runs)
        intents = Counter(run.intent for run in runs)
        assert min(intents["forgetting"], intents["healthy"]) >= 60
        assert {"sft", "lora", "dpo", "grpo"} <= {run.kind for run in runs if run.intent == "forgetting"}
        assert {"continue", "improve", "replay", "style", "temperature", "copy"} <= {r.kind for r in runs}
        for run in runs:
            # A skill that the start lacks may be what is taught; it is never what may be lost.
            assert run.task not in SKILLS or run.intent == "healthy" or run.start.startswith(run.base)
            assert start_skills(run.start)
    assert set(BANKS) == {"A", "B", "C"} and LOOKS[-1] == banks["A"][0].steps


def small_model(tokenizer):
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(3)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=2,
            intermediate_size=48,
            max_position_embeddings=256,
            tie_word_embeddings=True,
            pad_token_id=tokenizer.pad_token_id,
            bos_token_id=tokenizer.bos_token_id,
            eos_token_id=tokenizer.eos_token_id,
            initializer_range=0.3,
        )
    ).eval()


@pytest.fixture(scope="module")
def panel(tmp_path_factory):
    from sample.tokenizer import build_tokenizer

    tokenizer = build_tokenizer(0)
    return tokenizer, Group("panel", ["math", "tool"], tokenizer, 7, tmp_path_factory.mktemp("panel"))


def test_margins_are_those_of_the_models_own_logits(panel):
    tokenizer, group = panel
    model = small_model(tokenizer)
    numbers = panel_numbers(group, Meter(tokenizer).scores(group, model))
    with torch.no_grad():
        for k, s in enumerate(group.sets):
            for i in (0, 17):
                row = group.rows[group.starts[k] + i]
                logp = model(torch.tensor([row.ids])).logits[0].float().log_softmax(-1)
                margins = []
                for position in row.scored:
                    gold = row.ids[position]
                    others = logp[position - 1].clone()
                    others[gold] = -torch.inf
                    margins.append(float(logp[position - 1, gold] - others.max()))
                assert numbers[s.skill]["margin"][i] == pytest.approx(min(margins), abs=2e-3)
                assert numbers[s.skill]["decision"][i] >= numbers[s.skill]["margin"][i]
    assert any(d > m for d, m in zip(numbers["math"]["decision"], numbers["math"]["margin"], strict=True))


def test_weight_drift_of_a_lora_is_that_of_the_merged_matrix(panel):
    from peft import LoraConfig, get_peft_model

    tokenizer, _ = panel
    model = small_model(tokenizer)
    start = {n: p.detach().clone() for n, p in model.named_parameters() if p.ndim == 2}
    tuned = get_peft_model(model, LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj"], task_type="CAUSAL_LM"))
    with torch.no_grad():
        for name, value in tuned.named_parameters():
            if "lora_B" in name:
                value.normal_(std=0.05)
    drift = weight_drift(start, tuned)
    merged = tuned.merge_and_unload()
    worst = max(
        float((p.detach() - start[n]).norm() / start[n].norm()) for n, p in merged.named_parameters() if n in start
    )
    assert drift == pytest.approx(worst, rel=1e-4) and drift > 0


def test_rows_are_the_same_everywhere():
    """Seeds decide the rows; a change here makes every recorded bank another one."""
    import hashlib

    text = json.dumps([data.held_out_rows(s, 7) for s in SKILLS] + [data.train_rows(s, 101, 20) for s in SKILLS])
    assert hashlib.sha256(text.encode()).hexdigest()[:12] == "a17eadc2a874"
