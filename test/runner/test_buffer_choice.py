"""Which rows a buffer takes: reward models, k-center, clusters, quotas, and what is told about each."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
import torch
from conftest import as_model, build_model, build_tokenizer, chat, copy_rows, events, outcome, write_rows
from seesaw_runner.replay import coverage, features
from seesaw_runner.replay.buffer import Buffer, ReplayError, build_buffer
from seesaw_runner.replay.reward_model import FILE, RewardModel
from seesaw_runner.run_folder import StageError

TOPICS = {
    "sum": "add number total plus count digit result",
    "fish": "river salmon trout water swim pond lake",
    "code": "loop function return variable class compile",
}


def topic_rows(counts: dict[str, int]) -> list[dict]:
    source, rows = random.Random(5), []
    for topic, count in counts.items():
        words = TOPICS[topic].split()
        rows += [chat(" ".join(source.choices(words, k=8)), f"{topic} {k}", topic=topic) for k in range(count)]
    return rows


def spec(tmp_path, values: list[dict], *, stage: str = "old", **more) -> dict:
    data = write_rows(tmp_path / f"{stage}.jsonl", values)
    origin = {"stage": stage, "data": str(data), "skill": None}
    return {"buffer": "main", "ratio": 0.1, "rows": 9, "from": [origin], "quality": None, "diversity": None, **more}


def build(tmp_path, replay: dict, seed: int = 0, **more) -> Buffer:
    return build_buffer(replay, skills=[], seed=seed, root=tmp_path, trusted=False, **more)


def topics(buffer: Buffer, tmp_path) -> dict[str, int]:
    found = [value["topic"] for value in buffer.values(tmp_path)]
    return {name: found.count(name) for name in sorted(set(found))}


# ---- coverage


def test_k_center_always_takes_the_row_that_is_farthest_from_all_taken_ones():
    source = np.random.default_rng(1)
    table = source.normal(size=(60, 5)).astype(np.float32)
    table /= np.linalg.norm(table, axis=1, keepdims=True)
    chosen = coverage.k_center(table, 7, random.Random(3))
    first = random.Random(3).randrange(60)
    away = 1 - table @ table.T
    order = [first]
    while len(order) < 7:
        left = [i for i in range(60) if i not in order]
        order.append(max(left, key=lambda i: (away[i, order].min(), -i)))
    assert chosen == sorted(order)
    told = coverage.left_out(table, chosen)
    nearest = [away[i, chosen].min() for i in range(60) if i not in chosen]
    assert told == {"mean": pytest.approx(np.mean(nearest), abs=1e-5), "max": pytest.approx(max(nearest), abs=1e-5)}
    assert coverage.k_center(table, 60, random.Random(0)) == list(range(60)) and not coverage.k_center(
        table, 0, random.Random(0)
    )
    assert coverage.left_out(table, range(60)) == {"mean": 0.0, "max": 0.0}


def test_k_center_finds_the_rare_rows_that_chance_misses(tmp_path):
    replay = spec(tmp_path, topic_rows({"sum": 200, "fish": 2, "code": 2}), rows=6, diversity={"minhash": 0.9})
    by_chance = build(tmp_path, replay)
    assert topics(by_chance, tmp_path) == {"sum": 6} and by_chance.coverage == []
    replay["diversity"] = {"minhash": 0.9, "k_center": {"features": "tfidf"}}
    covered = build(tmp_path, replay)
    assert topics(covered, tmp_path).keys() == {"sum", "fish", "code"} and len(covered.rows) == 6
    (told,) = covered.coverage
    assert told["max"] < told["random"]["max"] == 1.0 and (told["method"], told["compared"]) == ("k_center", 204)
    assert covered == build(tmp_path, replay) and covered.rows != build(tmp_path, replay, seed=1).rows
    covered.save(tmp_path / "buffer.json")
    assert Buffer.load(tmp_path / "buffer.json") == covered
    older = json.loads((tmp_path / "buffer.json").read_text())
    del older["coverage"]
    (tmp_path / "buffer.json").write_text(json.dumps(older))
    assert Buffer.load(tmp_path / "buffer.json") == Buffer(**{**vars(covered), "coverage": []})


def test_clusters_have_equal_shares_and_the_larger_ones_what_does_not_divide(tmp_path):
    rows = topic_rows({"sum": 40, "fish": 30, "code": 20})
    replay = spec(tmp_path, rows, rows=10, diversity={"clusters": {"count": 3, "features": "tfidf"}})
    buffer = build(tmp_path, replay)
    assert topics(buffer, tmp_path) == {"sum": 4, "fish": 3, "code": 3} and buffer.coverage[0]["clusters"] == 3
    assert topics(build(tmp_path, {**replay, "rows": 66}), tmp_path) == {"sum": 23, "fish": 23, "code": 20}
    assert buffer == build(tmp_path, replay)
    drawn = [build(tmp_path, replay, seed=seed).rows for seed in range(3)]
    assert drawn[0] != drawn[1] != drawn[2], "the seed chooses within a cluster"


def test_a_buffer_too_large_to_compare_is_thinned_out_first(tmp_path, monkeypatch):
    replay = spec(tmp_path, topic_rows({"sum": 50}), rows=20, diversity={"k_center": {"features": "tfidf"}})
    monkeypatch.setattr(features, "MOST_ROWS", 12)
    buffer = build(tmp_path, replay)
    assert buffer.coverage[0]["compared"] == 12 and len(buffer.rows) == 20
    assert features.most_rows("hidden", 1 << 26) == 4 and features.most_rows("hidden", 8) == 12


def test_quotas_replace_even_shares_and_what_a_stage_lacks_goes_to_no_other(tmp_path):
    replay = spec(tmp_path, topic_rows({"sum": 40}), stage="math", rows=60, quotas={"math": 5, "search": 50})
    replay["from"] += spec(tmp_path, topic_rows({"fish": 20}), stage="search")["from"]
    buffer = build(tmp_path, replay)
    assert [(s["stage"], s["taken"], s["quota"]) for s in buffer.sources] == [("math", 5, 5), ("search", 20, 50)]
    assert topics(buffer, tmp_path) == {"sum": 5, "fish": 20}


def test_rows_without_words_and_a_model_without_numbers_are_said(tmp_path):
    with pytest.raises(ReplayError, match="needs the stage's start model"):
        build(tmp_path, spec(tmp_path, topic_rows({"sum": 9}), diversity={"k_center": {"features": "hidden"}}))
    with pytest.raises(ReplayError, match="are no numbers"):
        features.hidden(np.full((3, 2), np.nan, np.float32))


# ---- reward models


@pytest.fixture(scope="module")
def rater_folder(tmp_path_factory):
    """A random reward model with a tokenizer."""
    return save_rater(tmp_path_factory.mktemp("rater") / "rm")


def save_rater(folder, poison: bool = False, **config):
    from transformers import LlamaForSequenceClassification

    torch.manual_seed(7)
    model = LlamaForSequenceClassification(type(build_model().config)(**{**build_model().config.to_dict(), **config}))
    if poison:
        with torch.no_grad():
            model.score.weight.fill_(float("nan"))
    model.save_pretrained(folder)
    build_tokenizer().save_pretrained(folder)
    return folder


def rater_of(folder, tmp_path, name: str = "rm") -> RewardModel:
    return RewardModel(
        folder,
        name=name,
        identity="h" * 64,
        scores=tmp_path / FILE,
        device=torch.device("cpu"),
        dtype=torch.float32,
    )


@pytest.fixture(scope="module")
def one_label(tmp_path_factory):
    return save_rater(tmp_path_factory.mktemp("one") / "rm", num_labels=1)


def test_a_reward_model_scores_as_it_does_alone_and_its_scores_are_kept(tmp_path, one_label, tokenizer):
    from seesaw_runner.scoring.encode import Encoder
    from transformers import LlamaForSequenceClassification

    rows = copy_rows(40, 3)
    model = LlamaForSequenceClassification.from_pretrained(one_label).eval()
    encoder = Encoder(tokenizer)
    with torch.no_grad():
        ids = [encoder.encode(row, last_only=False).ids for row in rows]
        alone = [float(model(input_ids=torch.tensor([one])).logits[0, 0]) for one in ids]
    middle = sorted(alone)[20]
    replay = spec(tmp_path, rows, rows=100, quality={"reward_model": "rm", "min": middle})
    good = build(tmp_path, replay, rater=rater_of(one_label, tmp_path))
    expected = {k + 1 for k, score in enumerate(alone) if score >= middle}
    assert abs(len(good.rows) - 20) <= 1 and {row.line for row in good.rows} ^ expected <= {alone.index(middle) + 1}
    assert good.dropped["quality"] == 40 - good.sources[0]["kept"] - good.dropped["duplicate"]
    kept = [json.loads(line) for line in (tmp_path / FILE).read_text().splitlines()]
    assert sorted(line["score"] for line in kept) == pytest.approx(sorted(alone), abs=1e-5)

    with open(tmp_path / FILE, "ab") as file:
        file.write(b'{"v": 1, "model"')  # killed while writing
    again = rater_of("/nowhere", tmp_path)  # no model is needed any more
    assert build(tmp_path, replay, rater=again).rows == good.rows
    write_rows(tmp_path / "old.jsonl", [*rows, chat("say a new one", "a new one")])
    build(tmp_path, replay, rater=rater_of(one_label, tmp_path))
    assert len((tmp_path / FILE).read_text().splitlines()) == len(kept) + 2, "the torn line, and the new row's"


def test_a_model_that_cannot_say_where_a_padded_row_ends_takes_one_at_a_time(tmp_path, one_label):
    rows = copy_rows(6, 3)
    padded = rater_of(one_label, tmp_path)(rows, ["x"] * 6)
    folder = save_rater(tmp_path / "rm", num_labels=1, pad_token_id=None)
    (tmp_path / FILE).unlink()
    assert rater_of(folder, tmp_path)(rows, ["x"] * 6) == pytest.approx(padded, abs=1e-5)


def test_what_is_no_reward_model_is_said_in_a_sentence(tmp_path, rater_folder, one_label, base_folder):
    row = [chat("say red", "red")]
    with pytest.raises(StageError, match=r"has no score\.weight: it is no reward model"):
        rater_of(base_folder, tmp_path)(row, ["a:1"])
    with pytest.raises(StageError, match="gives 2 numbers for a row and not one"):
        rater_of(rater_folder, tmp_path)(row, ["a:1"])
    with pytest.raises(ReplayError, match="the reward model rm gives nan for a:1"):
        rater_of(save_rater(tmp_path / "nan", poison=True, num_labels=1), tmp_path)(row, ["a:1"])
    assert not (tmp_path / FILE).exists()
    replay = spec(tmp_path, copy_rows(5, 1), quality={"reward_model": "rm", "min": 1e9})
    with pytest.raises(ReplayError, match=r"a score of at least 1000000000.0 by the reward model rm, the best has"):
        build(tmp_path, replay, rater=rater_of(one_label, tmp_path))
    assert rater_of(one_label, tmp_path)([{"messages": [{"role": "user", "content": "x"}]}], ["a:1"]) == [None]


# ---- in a run


def test_a_run_chooses_by_hidden_states_and_a_reward_model_and_resumes_without_scoring_again(
    make_run, recipe, tmp_path, one_label, monkeypatch
):
    old = write_rows(tmp_path / "project" / "data" / "old.jsonl", copy_rows(30, 5))
    replay = {
        "buffer": "main",
        "ratio": 1,
        "rows": 5,
        "quotas": {"earlier": 40},
        "quality": {"reward_model": "./rm", "min": -100.0},
        "diversity": {"k_center": {"features": "hidden"}},
        "from": [{"stage": "earlier", "data": str(old), "skill": None}],
    }
    run = make_run(
        recipe="replay",
        data=None,
        replay=replay,
        options={"buffer": "main"},
        models={"./rm": as_model(one_label, "./rm")},
        skills=[],
    )
    assert recipe("replay", run) == 0
    short = next(e for e in events(run, "warning") if e["code"] == "replay-short")
    assert "not the 40 of its quota" in short["message"]
    first = json.loads((run / "buffer.json").read_text())
    assert first["coverage"][0]["features"] == "hidden" and len((run / FILE).read_text().splitlines()) >= 25

    (run / "buffer.json").unlink()  # as if it had been stopped before: the next attempt has the scores
    (run / "attempt-0002").mkdir()
    monkeypatch.setattr(RewardModel, "_load", lambda self: pytest.fail("scored again"))
    assert recipe("replay", run) == 0
    assert json.loads((run / "buffer.json").read_text()) == first


def test_a_reward_model_that_run_json_does_not_have_is_named(make_run, recipe, tmp_path):
    old = write_rows(tmp_path / "project" / "data" / "old.jsonl", copy_rows(5, 5))
    replay = {
        "buffer": "main",
        "ratio": 1,
        "rows": 5,
        "quality": {"reward_model": "rm", "min": 0},
        "diversity": None,
        "from": [{"stage": "earlier", "data": str(old), "skill": None}],
    }
    run = make_run(recipe="replay", data=None, replay=replay, options={"buffer": "main"}, skills=[])
    assert recipe("replay", run) == 1 and "names the reward model 'rm'" in outcome(run)["message"]
