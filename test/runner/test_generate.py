"""Greedy generation equals Hugging Face's, and the shortcut from teacher forcing equals generating everything."""

import pytest
import torch
from seesaw_runner.probing.evaluate import Evaluator, known_prefix
from seesaw_runner.scoring.causal_lm import CausalLM
from seesaw_runner.scoring.generate import end_ids, generate
from seesaw_runner.scoring.scorer import Scorer


def by_transformers(model, prompt, n):
    out = model.generate(
        torch.tensor([prompt]),
        attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
        do_sample=False,
        max_new_tokens=n,
    )
    new = out[0, len(prompt) :].tolist()
    return (new[: new.index(4)], "stop") if 4 in new else (new, "length")


@pytest.mark.parametrize("batch_size", [3, 256])
def test_equals_transformers(model, tokenizer, encoded, batch_size):
    prompts = [r.prompt_ids for r in encoded]
    found = generate(model, prompts, max_new_tokens=12, ends=end_ids(model, tokenizer), batch_size=batch_size)
    for prompt, got in zip(prompts, found, strict=True):
        assert (got.ids, got.finish) == by_transformers(model, prompt, 12)


def test_early_stop_and_compaction(model, tokenizer, encoded):
    """With ends that come early in some rows, the others go on unchanged."""
    prompts = [r.prompt_ids for r in encoded]
    free = generate(model, prompts, max_new_tokens=10, ends=set())
    ends = {free[0].ids[2], free[5].ids[4], free[9].ids[6]}
    for got, all_ids in zip(generate(model, prompts, max_new_tokens=10, ends=ends), free, strict=True):
        cut = next((k for k, i in enumerate(all_ids.ids) if i in ends), None)
        assert got.ids == all_ids.ids[:cut] and got.finish == ("length" if cut is None else "stop")


def test_limits_per_prompt_and_empty_prompt(model):
    found = generate(model, [[1, 2], [1, 2, 9]], max_new_tokens=[0, 3], ends=set())
    assert found[0].ids == [] and len(found[1].ids) == 3
    with pytest.raises(ValueError, match="no token"):
        generate(model, [[]], max_new_tokens=3, ends=set())


def test_shortcut_changes_nothing(model, tokenizer, encoded):
    # Teach the model half of the rows, so that full matches, partial matches and misses all occur.
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    for _ in range(40):
        for row in encoded[:20]:
            labels = torch.tensor([[i if k in row.scored else -100 for k, i in enumerate(row.ids)]])
            model(input_ids=torch.tensor([row.ids]), labels=labels).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    evaluator = Evaluator(tokenizer, max_new_tokens=9, ends=end_ids(model, tokenizer))
    lm, scores = CausalLM(model), Scorer(model).score(encoded)
    short, long = evaluator.texts(lm, encoded, scores), evaluator.texts(lm, encoded, None)
    assert short == long
    assert {finish for _, finish in short} == {"stop", "length"} or all(f == "stop" for _, f in short)
    assert sum(text == row.reference for (text, _), row in zip(short, encoded, strict=True)) >= 10


def test_known_prefix_stops_at_a_miss_or_a_close_call(encoded):
    row = encoded[0]
    n = len(row.scored)
    reference = [row.ids[p] for p in row.scored]
    assert known_prefix(row, [0] * n, reference, [1.0] * n, 1e-3) == (reference, True)
    assert known_prefix(row, [0, 2] + [0] * n, [reference[0], 99], [1.0] * n, 1e-3) == ([reference[0], 99], False)
    assert known_prefix(row, [0] * n, reference, [1.0, 1e-6] + [1.0] * n, 1e-3) == (reference[:1], False)
