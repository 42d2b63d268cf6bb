"""Scores against plain transformers, and against themselves in other batches and chunks."""

import math

import pytest
import torch
from conftest import build_model
from seesaw_runner.scoring.causal_lm import CausalLM, unwrap
from seesaw_runner.scoring.scorer import Scorer, kl_divergence, reduce_chunk, row_starts


def plain(model, row):
    """Log-softmax of the model's own logits in front of each scored token, one row, no batching."""
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([row.ids])).logits[0].float()
    return torch.log_softmax(logits, -1)[[p - 1 for p in row.scored]]


def logprobs(model, reference):
    """What a reference says now, whole."""
    return torch.cat([logp for _, logp in Scorer(model)._logprobs(reference.hidden, reference.head)]).clone()


def test_equals_plain_transformers(model, encoded):
    scores = Scorer(model, top_k=5).score(encoded)
    assert Scorer(model).lm.path == "head"
    for i, row in enumerate(encoded):
        logp, cut = plain(model, row), scores.row(i)
        ids = torch.tensor([row.ids[p] for p in row.scored])
        own = logp.gather(1, ids[:, None])[:, 0]
        assert torch.allclose(scores.logprob[cut], own, atol=1e-4)
        assert torch.allclose(scores.entropy[cut], -(logp.exp() * logp).sum(-1), atol=1e-4)
        above = [(logp > own[:, None] + d).sum(-1) for d in (1e-4, -1e-4)]  # two tokens may tie to rounding
        assert bool((above[0] <= scores.rank[cut]).all() and (scores.rank[cut] < above[1] + 1).all())
        assert torch.allclose(scores.topk_logprob[cut], logp.topk(5).values, atol=1e-4)
        assert torch.allclose(logp.gather(1, scores.topk_ids[cut].long()), logp.topk(5).values, atol=1e-4)


def test_chunks_and_batches_change_nothing(model, encoded):
    base = Scorer(model, batch_size=64, chunk_elements=1 << 24).score(encoded)
    for other in (
        Scorer(model, chunk_elements=320 * 3, chunk_tokens=1),
        Scorer(model, part_elements=320 * 5),
        Scorer(model, batch_size=1),
        Scorer(model, batch_size=7),
    ):
        again = other.score(encoded)
        assert torch.allclose(base.logprob, again.logprob, atol=1e-5)
        assert int((base.rank - again.rank).abs().max()) <= 1
    same_batches = Scorer(model, chunk_elements=320 * 3, chunk_tokens=1).score(encoded)
    assert torch.allclose(base.logprob, same_batches.logprob, atol=1e-6) and torch.allclose(
        base.entropy, same_batches.entropy, atol=1e-6
    )
    backwards = Scorer(model).again(encoded, batch_size=3, padding=7)
    assert torch.allclose(base.logprob, backwards.logprob, atol=1e-5)
    assert torch.allclose(base.topk_logprob, backwards.topk_logprob, atol=1e-5)


def test_kl_is_exact_and_zero_against_itself(model, encoded):
    start = Scorer(model).reference(encoded)
    other = build_model(seed=9)
    scores = Scorer(other, chunk_elements=320 * 11, chunk_tokens=1).score(encoded, {"start": start})
    for i in (0, 7, 39):
        p, q = plain(model, encoded[i]), plain(other, encoded[i])
        assert torch.allclose(scores.kl["start"][scores.row(i)], (p.exp() * (p - q)).sum(-1), rtol=1e-4, atol=1e-5)
    # In other parts, and a second time from what was kept.
    for parted in (Scorer(other, part_elements=320 * 3), Scorer(other), Scorer(other)):
        assert torch.allclose(parted.score(encoded, {"start": start}).kl["start"], scores.kl["start"], atol=1e-5)
    assert float(Scorer(model).score(encoded, {"start": start}).kl["start"].max()) <= 1e-6


def test_reference_is_frozen_when_the_tied_head_trains(model, encoded):
    start = Scorer(model).reference(encoded)
    before = logprobs(model, start)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.05 * torch.randn_like(p))
    assert torch.equal(before, logprobs(model, start))
    assert float(Scorer(model).score(encoded, {"start": start}).kl["start"].mean()) > 1e-3


def test_peft_and_ddp_wrappers_are_taken_off(model, encoded):
    from peft import LoraConfig, get_peft_model

    expected = Scorer(model).score(encoded).logprob
    wrapped = get_peft_model(model, LoraConfig(r=2, target_modules="all-linear", task_type="CAUSAL_LM"))
    assert unwrap(wrapped) is model
    assert torch.allclose(Scorer(wrapped).score(encoded).logprob, expected, atol=1e-6)
    wrapped.train()
    Scorer(wrapped).score(encoded)
    assert wrapped.training


@pytest.mark.parametrize("kind", ["gemma2", "cohere", "gpt2", "opt"])
def test_other_architectures(kind, encoded):
    """Soft capping, logit scaling, absolute positions: the path is found by comparing with the model's own logits."""
    import transformers as t

    common = {"vocab_size": 320, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 4}
    small = {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "intermediate_size": 64,
    }
    torch.manual_seed(0)
    built = {
        "gemma2": lambda: t.Gemma2ForCausalLM(
            t.Gemma2Config(**common, **small, head_dim=16, final_logit_softcapping=5.0, initializer_range=0.3)
        ),
        "cohere": lambda: t.CohereForCausalLM(
            t.CohereConfig(**common, **small, logit_scale=0.25, initializer_range=0.3)
        ),
        "gpt2": lambda: t.GPT2LMHeadModel(t.GPT2Config(**common, n_embd=32, n_layer=2, n_head=2, n_positions=128)),
        "opt": lambda: t.OPTForCausalLM(
            t.OPTConfig(
                **common,
                hidden_size=32,
                num_hidden_layers=2,
                num_attention_heads=2,
                ffn_dim=64,
                max_position_embeddings=128,
                word_embed_proj_dim=32,
            )
        ),
    }[kind]().eval()
    scorer = Scorer(built, batch_size=5)
    assert scorer.lm.path == ("head" if kind in ("gpt2", "opt") else "scaled")
    scores = scorer.score(encoded)
    for i in (0, 11, 39):
        ids = torch.tensor([encoded[i].ids[p] for p in encoded[i].scored])
        assert torch.allclose(
            scores.logprob[scores.row(i)], plain(built, encoded[i]).gather(1, ids[:, None])[:, 0], atol=1e-4
        )


def test_whole_path_gives_the_same_without_kl(model, encoded):
    scorer = Scorer(model)
    expected = scorer.score(encoded)
    scorer.lm.path = "whole"
    scores = scorer.score(encoded, {"start": None})
    assert torch.allclose(scores.logprob, expected.logprob, atol=1e-5) and scores.kl == {}


def test_padded_vocabulary_gets_no_probability(model, encoded):
    scores = Scorer(model, vocabulary=316).score(encoded)
    assert int(scores.topk_ids.max()) < 316


def test_impossible_tokens():
    """Cases L05: entropy and KL at probability 0 are numbers, infinite KL is infinite, never NaN."""
    a = torch.log_softmax(torch.tensor([[1.0, 0.5, -math.inf]]), -1)
    b = torch.log_softmax(torch.tensor([[1.0, -math.inf, 0.5]]), -1)
    part = reduce_chunk(a, torch.tensor([2]), 2)
    p = a.exp()[0, :2].double()
    assert (
        float(part["entropy"]) == pytest.approx(float(-(p * p.log()).sum()), abs=1e-6)
        and float(part["logprob"]) == -math.inf
    )
    assert float(kl_divergence(a.exp(), a, a)) == 0.0 and float(kl_divergence(a.exp(), a, b)) == math.inf


def test_right_padding_needs_no_mask_and_training_mode_returns(model, encoded):
    lm = CausalLM(model)
    assert lm.pass_mask is False
    model.train()
    with lm.evaluating():
        assert not model.training
    assert model.training and row_starts(encoded)[-1] == sum(len(r.scored) for r in encoded)
