"""The router on the tiny model: two experts that answer two kinds of prompts, rules right and wrong, a policy that
learns who is right, and what the run leaves behind.
"""

import json
import random
import shutil

import numpy as np
import pytest
import torch
from conftest import WORDS, as_model, chat, events, outcome, write_rows
from safetensors.torch import load_file, save_file

SKILLS = {"red": "red", "cat": "fish cat"}  # skill → what it always answers
ASKED = {
    "red": {"id": "paint the {}", "ood": "paint a {} now", "paraphrase": "make this {} bright"},
    "cat": {"id": "feed the {}", "ood": "feed a {} now", "paraphrase": "give this {} food"},
}
POLICY = {"algorithm": "reinforce", "pulls": 640}


def rows_of(skill, kind, n, seed, **fields):
    r = random.Random(f"{skill}{kind}{seed}")
    return [
        chat(ASKED[skill][kind].format(" ".join(r.sample(WORDS, 2))), SKILLS[skill], id=f"{skill}-{kind}-{k}", **fields)
        for k in range(n)
    ]


def train_expert(base_folder, folder, answer, rank):
    """A LoRA that answers every prompt with one text; the other skill's too."""
    from peft import LoraConfig, get_peft_model
    from seesaw_runner.scoring.encode import Encoder
    from seesaw_runner.training.loading import load_model, load_tokenizer

    torch.manual_seed(0)
    tokenizer = load_tokenizer(str(base_folder))
    config = LoraConfig(task_type="CAUSAL_LM", r=rank, lora_alpha=2 * rank, target_modules="all-linear")
    model = get_peft_model(load_model(str(base_folder), torch.float32, torch.device("cpu")), config).train()
    asked = [row for kind in SKILLS for row in rows_of(kind, "id", 32, 5)]
    rows = Encoder(tokenizer).encode_all([chat(row["messages"][0]["content"], answer) for row in asked])
    optimizer = torch.optim.AdamW(model.parameters(), 0.03)
    width = max(len(row.ids) for row in rows)
    ids, labels = torch.zeros((len(rows), width), dtype=torch.long), torch.full((len(rows), width), -100)
    for k, row in enumerate(rows):
        ids[k, : len(row.ids)] = torch.tensor(row.ids)
        labels[k, row.scored] = torch.tensor([row.ids[i] for i in row.scored])
    for _ in range(30):
        model(input_ids=ids, labels=labels).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def experts(tmp_path_factory, base_folder):
    root = tmp_path_factory.mktemp("experts")
    return {s: train_expert(base_folder, root / s, SKILLS[s], 2 + 2 * k) for k, s in enumerate(SKILLS)}


@pytest.fixture
def make_router(make_run, experts, tmp_path):
    """make_router(**options) → a run folder. train: rows; fields(skill, split): further fields of a probe row."""

    def make(
        name="router-20260101T000000-0001", train=None, probes=32, fields=None, models=None, changes=None, **options
    ):
        data = tmp_path / "project" / "data"
        fields = fields or (lambda skill, split: {})
        skills = [
            {
                "id": skill,
                "probes": {
                    split: str(
                        write_rows(
                            data / f"{skill}.{split}.jsonl", rows_of(skill, split, probes, 2, **fields(skill, split))
                        )
                    )
                    for split in ("id", "ood")
                },
                "check": {"kind": "text"},
                "own_stage": None,
            }
            for skill in SKILLS
        ]
        if train is None:
            train = [row for skill in SKILLS for row in rows_of(skill, "id", 24, 1, data_source=skill)]
        run = make_run(
            name,
            train=train,
            recipe="router",
            stage="router",
            skills=skills,
            options={"experts": {s: f"{s}-stage" for s in SKILLS}, "max_new_tokens": 8, "policy": POLICY, **options},
            models={f"{s}-stage": as_model(folder, s.upper()) for s, folder in experts.items()} | (models or {}),
            **(changes or {}),
        )
        spec = json.loads((run / "run.json").read_text())
        spec["args"] = {"use_cpu": True}
        (run / "run.json").write_text(json.dumps(spec))
        return run

    return make


def report(run):
    return json.loads((run / "router-report.json").read_text())


def told(run, code="router"):
    return [e["message"] for e in events(run, "warning") if e["code"] == code]


def last_checkpoint(run):
    return sorted((run / "checkpoints").glob("step-*"))[-1]


# ---- the whole recipe


def test_the_rule_is_kept_and_the_routed_system_is_scored_like_a_checkpoint(
    make_router, recipe, experts, base_folder, tmp_path
):
    before = {p: p.read_bytes() for f in (base_folder, *experts.values()) for p in f.glob("*.safetensors")}
    paraphrases = {s: str(write_rows(tmp_path / f"{s}.jsonl", rows_of(s, "paraphrase", 12, 3))) for s in SKILLS}
    run = make_router(paraphrases=paraphrases)
    assert recipe("router", run) == 0
    assert all(p.read_bytes() == data for p, data in before.items())
    found = report(run)
    assert found["v"] == 1 and found["chosen"] == "rule" and found["rule"]["kind"] == "tfidf"
    assert found["policy"]["kind"] == "reinforce" and found["margin"] == 5 and found["difference"]["n"] == 128 + 24
    assert set(found["rule"]["accuracy"]) == {"id", "ood", "paraphrase"}
    assert found["rule"]["accuracy"]["id"]["estimate"] > 0.95 and found["rule"]["routing"]["id"]["estimate"] == 1
    assert found["confusion"]["skills"] == ["red", "cat"] and found["confusion"]["picked"] == ["red", "cat", "base"]
    assert [sum(row) for row in found["confusion"]["counts"]] == [76, 76]
    assert len(found["willingness"]) == 6 and found["willingness"][0]["estimate"] > 0.5
    assert "The rule router (tfidf) is kept" in found["reason"] and found["reason"] in told(run)
    # In the chain it is a checkpoint like any other: scored, checked, saved, hashed.
    steps = events(run, "run.started")[0]["total_steps"]
    assert steps == 20  # 640 pulls, 32 an update
    saved = events(run, "checkpoint.saved")[0]
    assert saved["step"] == steps and saved["final"] and saved["kind"] == "adapter"
    scored = {(e["step"], e["skill"], e["split"]): e["summary"]["nll"] for e in events(run, "probe.scored")}
    assert all(scored[steps, s, k] < scored[0, s, k] - 3 for s in SKILLS for k in ("id", "ood"))
    right = {(e["step"], e["skill"], e["split"]): e["correct"] for e in events(run, "eval.result")}
    by_set = {(s["skill"], s["split"]): s["rule"]["accuracy"]["count"] for s in found["sets"]}
    assert all(right[steps, s, k] == by_set[s, k] for s in SKILLS for k in ("id", "ood"))
    told_metrics = [e["values"] for e in events(run, "metric")]
    rewards = [v["reward"] for v in told_metrics if "reward" in v]
    assert len(rewards) == 20 and np.mean(rewards[-5:]) > np.mean(rewards[:5]) + 0.2
    entropies = [v["entropy"] for v in told_metrics if "entropy" in v]
    assert entropies[0] == pytest.approx(np.log(3)) and entropies[-1] < entropies[0]
    routes = [json.loads(line) for line in (run / "router-routes.jsonl").read_text().splitlines()]
    assert len(routes) == 152 and {r["split"] for r in routes} == {"id", "ood", "paraphrase"}
    assert sum(r["right"] for r in routes) == found["rule"]["accuracy_all"]["count"]


def test_every_probe_is_scored_as_under_its_own_expert(make_router, recipe, experts, tokenizer):
    from seesaw_runner.scoring.encode import Encoder
    from seesaw_runner.scoring.scorer import Scorer
    from seesaw_runner.scoring.trace import read_trace
    from seesaw_runner.training.loading import load_model

    run = make_router(rule="tag", policy={"algorithm": "none"}, probes=34)
    assert recipe("router", run) == 0
    for skill, folder in experts.items():
        trace = read_trace(run / "traces" / "step-000001" / f"{skill}.ood.trace").rows
        rows = Encoder(tokenizer).encode_all(rows_of(skill, "ood", 34, 2))
        scorer = Scorer(load_model(str(folder), torch.float32, torch.device("cpu")))
        alone = scorer.score(rows).sums(scorer.score(rows).logprob)
        assert [-row.nll for row in trace] == pytest.approx(alone, abs=1e-3)
    assert told(run)[0].startswith("136 of 136 probes have no data_source")


def wrong_tag(skill, split="id"):
    return {"data_source": "cat" if skill == "red" else "red"}


def test_a_policy_that_learns_who_is_right_replaces_tags_that_are_wrong(make_router, recipe):
    """The tags are swapped, so the rule is wrong by design; the check of the answers is what the policy learns from."""
    rows = [row for s in SKILLS for row in rows_of(s, "id", 24, 1, **wrong_tag(s))]
    run = make_router(rule="tag", train=rows, fields=wrong_tag, policy={"algorithm": "grpo", "pulls": 640})
    assert recipe("router", run) == 0, outcome(run)
    found = report(run)
    assert found["chosen"] == "policy" and found["rule"]["accuracy_all"]["estimate"] == 0
    assert found["difference"]["estimate"] > 60 and found["difference"]["low"] > 50
    assert found["difference"]["gained"] - found["difference"]["lost"] == found["policy"]["accuracy_all"]["count"]
    assert told(run)[-1].startswith("The trained policy (grpo) replaces the rule router (tag): ")
    assert all("zero_variance_groups" in e["values"] for e in events(run, "metric") if "reward" in e["values"])
    about = json.loads((last_checkpoint(run) / "router.json").read_text())
    assert about["chosen"] == "policy" and set(about["routers"]) == {"rule", "policy"}
    # With a margin that nobody can reach the same policy stays out.
    again = make_router("router-20260101T000000-0002", rule="tag", train=rows, fields=wrong_tag, margin=100.5)
    assert recipe("router", again) == 0
    assert report(again)["chosen"] == "rule" and "is kept" in told(again)[-1]


# ---- a second attempt


def test_a_second_attempt_asks_nobody_again_and_gives_the_same_router(make_router, recipe, monkeypatch):
    from seesaw_runner.checkpoints.saving import weights_hash
    from seesaw_runner.routing import mixture

    asked = []
    answers = mixture.Mixture.answers
    monkeypatch.setattr(mixture.Mixture, "answers", lambda *a, **k: asked.append(len(a[1])) or answers(*a, **k))
    run = make_router()
    assert recipe("router", run) == 0
    once, first = sum(asked), weights_hash(last_checkpoint(run))
    assert once == 3 * 48 + 2 * 128  # the base's answers to the probes are those of the start
    before, seen = report(run), len(events(run, "probe.scored"))
    shutil.rmtree(last_checkpoint(run))
    lines = (run / "router-answers.jsonl").read_text().splitlines(keepends=True)
    (run / "router-answers.jsonl").write_text("".join(lines[:-20]) + lines[-20][:9])  # killed while writing
    (run / "attempt-0002").mkdir()
    asked.clear()
    assert recipe("router", run) == 0
    assert 20 <= sum(asked) <= 32 and weights_hash(last_checkpoint(run)) == first and report(run) == before
    # The whole stage is there: nothing is generated, saved or scored again.
    (run / "attempt-0003").mkdir()
    asked.clear()
    assert recipe("router", run) == 0
    assert not asked and events(run, "run.started")[-1]["resumed_from"] == 20
    assert len(events(run, "checkpoint.saved")) == 2
    scored = [e for e in events(run, "probe.scored") if e["step"] == 20]
    assert len(scored) == 2 * seen / 2
    # Saved, but killed before the last probe point: only that is made up for.
    journal = [line for line in (run / "journal.jsonl").read_text().splitlines() if '"step":20,"skill"' not in line]
    (run / "journal.jsonl").write_text("".join(f"{line}\n" for line in journal))
    (run / "attempt-0004").mkdir()
    assert recipe("router", run) == 0 and not asked and len(events(run, "checkpoint.saved")) == 2
    again = [e for e in events(run, "probe.scored") if e["step"] == 20]
    assert [e["summary"] for e in again] == [e["summary"] for e in scored[:4]]


def test_a_stop_keeps_the_answers(make_router, recipe, monkeypatch):
    from seesaw_runner.routing import answers
    from seesaw_runner.training.callbacks import StopWatch

    run, keep = make_router(), answers.Answers._keep
    watches = []
    install = StopWatch.install
    monkeypatch.setattr(StopWatch, "install", lambda self: watches.append(self) or install(self))
    monkeypatch.setattr(answers.Answers, "_keep", lambda self, *a: (keep(self, *a), setattr(watches[-1], "signal", 15)))
    assert recipe("router", run) == 143 and outcome(run)["code"] == "cancelled"
    monkeypatch.setattr(answers.Answers, "_keep", keep)
    kept = (run / "router-answers.jsonl").read_text()
    (run / "attempt-0002").mkdir()
    assert recipe("router", run) == 0
    assert len(kept) > 0 and (run / "router-answers.jsonl").read_text().startswith(kept)


# ---- options


def test_every_option_takes_effect(make_router, recipe, tokenizer):
    found = {}
    tags = {"fields": lambda skill, split: {"data_source": skill}}
    for k, (name, options) in enumerate(
        {
            "keywords": {"rule": "keywords", "keywords": {"red": ["paint"], "cat": ["nothing"]}},
            "fallback": {"rule": "keywords", "keywords": {"red": ["paint"], "cat": ["nothing"]}, "fallback": "cat"},
            "hidden": {"policy": {"features": "hidden", "pulls": 320, "learning_rate": 0.3}},
            "short": {
                "max_new_tokens": len(tokenizer.encode("red", add_special_tokens=False)),
                "policy": {"algorithm": "reinforce", "pulls": 32},
            },
            "field": {"domain_field": "topic", "rule": "tag", **tags},
        }.items()
    ):
        options = {"policy": {"algorithm": "none"}, **options}
        train = [
            r
            for s in SKILLS
            for r in rows_of(s, "id", 24, 1, **({"topic": s} if name == "field" else {"data_source": s}))
        ]
        run = make_router(f"router-20260101T000000-{k:04x}", train=train, **options)
        assert recipe("router", run) == 0, (name, outcome(run))
        found[name] = report(run), events(run, "metric")
    assert found["keywords"][0]["confusion"]["counts"] == [[64, 0, 0], [0, 0, 64]]
    assert found["keywords"][0]["rule"]["base_share"]["estimate"] == 0.5 and found["keywords"][0]["policy"] is None
    assert found["fallback"][0]["confusion"] == {
        "skills": ["red", "cat"],
        "picked": ["red", "cat"],
        "counts": [[64, 0], [0, 64]],
    }
    hidden = found["hidden"][0]["policy"]
    assert hidden["features"] == "hidden" and hidden["accuracy"]["id"]["estimate"] > 0.9 and hidden["pulls"] == 320
    table = {k: v for e in found["short"][1] for k, v in e["values"].items() if k.startswith("table/")}
    assert table == {"table/red": 0.5, "table/cat": 0.0, "table/base": 0.0}  # `fish cat` is cut, `red` is not
    assert found["field"][0]["rule"]["routing_all"]["estimate"] == 1.0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"experts": {}}, "experts of the recipe router is missing"),
        ({"experts": {"red": "nobody"}}, "names 'nobody'"),
        ({"experts": {"blue": "red-stage"}}, "There is no skill blue"),
        ({"rule": "tfdif"}, "Did you mean tfidf?"),
        ({"rule": "keywords"}, "needs words for each skill"),
        ({"keywords": {"red": ["x"]}}, "is only of the rule keywords"),
        ({"rule": "keywords", "keywords": {"blue": ["x"]}}, "keywords.blue of the recipe router is of no expert"),
        ({"fallback": "blue"}, "fallback of the recipe router is 'blue'"),
        ({"policy": {"algorithm": "ppo"}}, "policy.algorithm of the recipe router is 'ppo'"),
        ({"policy": {"algorithm": "none", "pulls": 5}}, "has no effect, since no policy is trained"),
        ({"policy": {"epochs": 5}}, "policy.epochs of the recipe router does not exist"),
        ({"policy": {"learning_rate": 0}}, "must be more than 0"),
        ({"paraphrases": {"red": "/nowhere.jsonl"}}, "must be a file"),
        ({"margn": 1}, "Did you mean margin?"),
        ({"train": rows_of("red", "id", 8, 1, data_source="red")}, "names the skill cat, but no row of"),
        ({"changes": {"save_every": 5}}, "`save_every` cannot be set for a router"),
        ({"changes": {"adapter": {"r": 2}}}, "its experts are trained already"),
    ],
)
def test_options_that_cannot_be_followed(make_router, recipe, options, said):
    run = make_router(**options)
    assert recipe("router", run) == 1 and said in outcome(run)["message"]


def test_equal_rewards_teach_nothing_and_this_is_said(make_router, recipe):
    """No expert can answer these, and their answers are told apart from nothing; the rule stays, with its figures."""
    train = [row for s in SKILLS for row in rows_of(s, "id", 8, 1, data_source=s)]
    for row in train:
        row["messages"][1]["content"] = "what nobody says"
    run = make_router(train=train)
    assert recipe("router", run) == 0
    assert report(run)["policy"] is None and report(run)["chosen"] == "rule" and report(run)["difference"] is None
    assert told(run)[0].startswith("All rewards of a prompt are equal, whoever answers it (no expert right")
    assert told(run)[-1] == "The rule router (tfidf) is used: no choice of expert made a difference."


def test_an_expert_that_says_nothing_earns_nothing(make_router, recipe, base_folder, tmp_path):
    """Whatever the check thinks of an empty text."""
    silent = train_expert(base_folder, tmp_path / "silent", "", 2)
    run = make_router(models={"cat-stage": as_model(silent)}, rule="tag")
    spec = json.loads((run / "run.json").read_text())
    for skill in spec["skills"]:
        skill["check"] = {"kind": "regex", "pattern": "^(red|fish cat)?$"}
    (run / "run.json").write_text(json.dumps(spec))
    assert recipe("router", run) == 0
    assert told(run, "no-answers") == ["cat gives an empty answer to 48 of 48 training prompts; each counts as wrong."]
    assert report(run)["chosen"] == "policy"  # which sends every prompt to the one that speaks
    assert [row[0] for row in report(run)["confusion"]["counts"]] == [64, 64]


# ---- experts that cannot be used


def change(folder, tmp_path, **config):
    copied = tmp_path / "changed"
    shutil.copytree(folder, copied)
    about = json.loads((copied / "adapter_config.json").read_text())
    (copied / "adapter_config.json").write_text(json.dumps({**about, **config}))
    return copied


def another_base(experts, base_folder, tmp_path):
    from conftest import build_model

    build_model(seed=9).save_pretrained(tmp_path / "m9")
    return change(experts["cat"], tmp_path, base_model_name_or_path=str(tmp_path / "m9"))


def other_tokens(experts, base_folder, tmp_path):
    folder = change(experts["cat"], tmp_path)
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["model"]["merges"] = tokenizer["model"]["merges"][:-1]
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    return folder


def other_shapes(experts, base_folder, tmp_path):
    folder = change(experts["cat"], tmp_path)
    tensors = load_file(folder / "adapter_model.safetensors")
    name = next(n for n in tensors if "lora_A" in n)
    save_file({**tensors, name: torch.zeros(4, 30)}, folder / "adapter_model.safetensors")
    return folder


def not_a_number(experts, base_folder, tmp_path):
    folder = change(experts["cat"], tmp_path)
    tensors = load_file(folder / "adapter_model.safetensors")
    name = next(n for n in tensors if "lora_B" in n)
    save_file({**tensors, name: tensors[name] * float("nan")}, folder / "adapter_model.safetensors")
    return folder


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda e, base, tmp: base, "The expert of cat (CAT) is a full checkpoint, not an adapter"),
        (another_base, "which has other weights. Experts of one router stand on one base"),
        (other_tokens, "The expert of cat (CAT) has another tokenizer"),
        (other_shapes, "does not fit the base: its model.layers."),
        (not_a_number, "holds NaN or infinite numbers"),
        (lambda e, base, tmp: change(e["cat"], tmp, use_dora=True), "cannot be switched by prompt: it uses DoRA"),
        (
            lambda e, base, tmp: change(e["cat"], tmp, base_model_name_or_path="gone"),
            "which is no folder on this machine",
        ),
        (lambda e, base, tmp: tmp / "nothing", "cannot be read: the checkpoint folder cannot be read"),
    ],
)
def test_experts_that_cannot_be_used(make_router, recipe, experts, base_folder, tmp_path, make, said):
    folder = make(experts, base_folder, tmp_path)
    run = make_router(models={"cat-stage": as_model(folder, "CAT")})
    assert recipe("router", run) == 1 and said in outcome(run)["message"]


def test_an_expert_that_the_base_contains_would_count_twice(make_router, recipe, experts):
    start = {"checkpoint": str(experts["cat"]), "label": "M1", "run": None, "step": None}
    run = make_router(changes={"start": start})
    assert recipe("router", run) == 1
    said = outcome(run)["message"]
    assert "The expert of cat (CAT) is already contained in the model that the stage starts from" in said


# ---- soft


def test_soft_weights_are_the_exact_weighted_sum_of_the_experts(experts, base_folder, tokenizer):
    """Row by row in one batch, and over a whole generation, as if Σ wₖ·ΔWₖ had been merged for each row alone."""
    from seesaw_runner.routing.experts import read_experts
    from seesaw_runner.routing.mixture import Mixture
    from seesaw_runner.scoring.encode import Encoder
    from seesaw_runner.scoring.generate import end_ids, generate
    from seesaw_runner.training.loading import load_model
    from seesaw_runner.weights.source import WeightSource

    load = lambda: load_model(str(base_folder), torch.float32, torch.device("cpu")).eval()  # noqa: E731
    mixture = Mixture(load(), read_experts(experts, {s: s for s in SKILLS}, base_folder), torch.device("cpu"))
    weights = np.array([[0.5, 0.5, 0.0], [0.25, 0.35, 0.4], [0.9, 0.1, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    prompts = [Encoder(tokenizer).prompt(row).prompt_ids for row in rows_of("red", "id", 5, 8)]
    width = max(map(len, prompts))
    ids = torch.tensor([p + [0] * (width - len(p)) for p in prompts])
    mask = (torch.arange(width) < torch.tensor([[len(p)] for p in prompts])).long()
    with torch.no_grad(), mixture.weighing():
        mixture.weigh(weights)
        together = mixture.model(input_ids=ids, attention_mask=mask).logits
    limits, ends = [6] * 5, end_ids(mixture.lm.model, tokenizer)
    found = mixture.answers(prompts, weights, limits=limits, ends=ends, batch=3)
    sources = [WeightSource(folder) for folder in experts.values()]
    for k, row in enumerate(weights):
        merged = load()
        with torch.no_grad():
            for name, parameter in merged.named_parameters():
                for weight, source in zip(row, sources, strict=False):
                    delta = source.added(name, 0, parameter.shape[0])
                    if delta is not None:
                        parameter += weight * delta
            alone = merged(input_ids=torch.tensor([prompts[k]])).logits[0]
        assert torch.allclose(together[k, : len(prompts[k])], alone, atol=2e-4)
        assert found[k] == generate(merged, [prompts[k]], max_new_tokens=6, ends=ends)[0]


def test_soft_changes_the_answers_and_is_scored_so(make_router, recipe):
    """With few pulls the policy is undecided: a mixture answers where the likeliest expert alone would have."""
    options = {"rule": "tag", "policy": {"algorithm": "reinforce", "pulls": 64, "learning_rate": 0.02}}
    hard, soft = make_router(**options), make_router("router-20260101T000000-0002", soft=True, **options)
    assert recipe("router", hard) == 0 and recipe("router", soft) == 0
    assert report(hard)["policy"]["routing_all"] == report(soft)["policy"]["routing_all"]
    assert report(hard)["policy"]["accuracy_all"] != report(soft)["policy"]["accuracy_all"]
    kinds = {json.loads(line)["by"] for line in (soft / "router-answers.jsonl").read_text().splitlines()}
    assert kinds == {"red", "cat", "base", "policy (soft)"}


# ---- its parts


def test_tfidf_is_scikit_learns():
    from seesaw_runner.routing.tfidf import Tfidf
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = [row["messages"][0]["content"] for s in SKILLS for k in ("id", "ood") for row in rows_of(s, k, 6, 1)]
    texts += ["What is 27 + 45?", "  Zwei\tWörter, ÄRGER!  ", "北京 的 weather", ""]
    ours = Tfidf.fit(texts)
    theirs = [
        TfidfVectorizer(analyzer="word", ngram_range=(1, 2), sublinear_tf=True).fit(texts),
        TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), sublinear_tf=True).fit(texts),
    ]
    assert [list(t.get_feature_names_out()) for t in theirs] == list(ours.terms)
    for text in [*texts, "a new paint 27 for the Wörter"]:
        dense = np.zeros(ours.width)
        index, value = ours.row(text)
        dense[index] = value
        assert dense == pytest.approx(np.concatenate([t.transform([text]).toarray()[0] for t in theirs]))


def test_bandit_learns_the_better_arm_of_each_context_and_repeats_itself():
    from seesaw_runner.routing.bandit import train_bandit
    from seesaw_runner.run_folder import StageError

    rows = [(np.array([k % 3]), np.array([1.0])) for k in range(30)]
    rewards = np.array([[float(arm == k % 3) for arm in range(4)] for k in range(30)])
    for algorithm in ("reinforce", "grpo"):
        how = {"algorithm": algorithm, "pulls": 1000, "learning_rate": 0.2, "seed": 1, "tell": lambda *_: None}
        model = train_bandit(rows, 3, rewards, **how)
        assert model.probabilities(rows).argmax(1).tolist() == [k % 3 for k in range(30)]
        assert np.array_equal(train_bandit(rows, 3, rewards, **how).weight, model.weight)
        other = train_bandit(rows, 3, rewards, **{**how, "learning_rate": 0.05})
        assert not np.array_equal(other.weight, model.weight)
    rewards[4, 2] = np.nan
    with pytest.raises(StageError, match="1 rewards are no numbers, first that of prompt 5 under expert 3"):
        train_bandit(rows, 3, rewards, **how)


def test_intervals_and_tests_by_known_numbers():
    from scipy.stats import binomtest
    from seesaw_runner.routing.statistics import mcnemar, paired_difference, share

    low, high = binomtest(45, 60).proportion_ci(method="wilson")
    assert (share(45, 60)["low"], share(45, 60)["high"]) == pytest.approx((low, high))
    assert mcnemar(9, 2) == pytest.approx(binomtest(2, 11).pvalue) and mcnemar(0, 0) == 1
    before, after = [False] * 20 + [True] * 80, [True] * 18 + [False] * 2 + [True] * 76 + [False] * 4
    found = paired_difference(before, after, 0)
    spread = 1.96 * np.std([*[1] * 18, *[-1] * 4, *[0] * 78]) * 10
    assert found["estimate"] == 14 and (found["gained"], found["lost"]) == (18, 4)
    assert (found["low"], found["high"]) == pytest.approx((14 - spread, 14 + spread), abs=1.1)


def test_keywords_stand_alone_and_ties_fall_back():
    from seesaw_runner.routing.asked import Arms, Asked
    from seesaw_runner.routing.rules import KeywordRule

    rule = KeywordRule(Arms(("a", "b"), "base"), {"a": ["sum", "求和"], "b": ["call"]})
    texts = ["The SUM of 2", "summary", "call the sum", "recall", "请求和 数", "call me"]
    picked = rule.probabilities([Asked(t, [], None) for t in texts]).argmax(1)
    assert picked.tolist() == [0, 2, 2, 2, 0, 1]


# ---- the checkpoint


@pytest.fixture
def trained(make_router, recipe):
    run = make_router(rule="tfidf", policy={"algorithm": "reinforce", "pulls": 320, "features": "hidden"}, probes=8)
    assert recipe("router", run) == 0
    return last_checkpoint(run)


def test_a_checkpoint_routes_by_itself_and_starts_no_stage(trained, make_run, sft, experts, capsys, tmp_path):
    from seesaw_runner.checkpoints.saving import intact, weights_hash
    from seesaw_runner.routing.__main__ import main
    from seesaw_runner.routing.checkpoint import load_router
    from seesaw_runner.run_folder import StageError
    from seesaw_runner.training.loading import load_model, load_tokenizer

    assert intact(trained)
    suffixes = {p.suffix for p in trained.rglob("*") if p.is_file()}
    assert suffixes <= {".json", ".safetensors", ".jinja"}
    for skill, folder in experts.items():
        copied = trained / "experts" / skill / "adapter_model.safetensors"
        assert copied.read_bytes() == (folder / "adapter_model.safetensors").read_bytes()
    capsys.readouterr()
    assert main([str(trained), "paint the moon"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("the expert of red answers (rule: tfidf)") and "base" in said
    assert main([str(trained), "feed the moon", "--router", "policy", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["expert"] == "cat" and sum(found["probabilities"].values()) == pytest.approx(1)
    for load in (load_tokenizer, lambda f: load_model(f, torch.float32, torch.device("cpu"))):
        with pytest.raises(StageError, match="is a router: a base and several experts, not one model"):
            load(str(trained))
    start = {"checkpoint": str(trained), "label": "M1", "run": None, "step": None}
    run = make_run("copy-20260101T000000-0009", start=start)
    assert sft(run) == 1 and "is a router (a base and several experts)" in outcome(run)["message"]
    # Whatever is changed is noticed, and hashes tell routers apart.
    before = weights_hash(trained)
    about = (trained / "router.json").read_text()
    (trained / "router.json").write_text(about.replace('"soft": false', '"soft": true'))
    with pytest.raises(StageError, match="do not belong together"):
        load_router(trained)
    (trained / "router.json").write_text(about)
    expert = trained / "experts" / "cat" / "adapter_model.safetensors"
    tensors = load_file(expert)
    save_file({name: tensor * 2 for name, tensor in tensors.items()}, expert)
    assert main([str(trained), "x"]) == 1 and "The expert of cat in" in capsys.readouterr().err
    assert weights_hash(trained) == before and main([str(tmp_path), "x"]) == 1
