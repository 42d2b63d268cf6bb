"""The options of the recipe `router`, read and checked as far as they can be before anything is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from seesaw_runner.checks.base import Check
from seesaw_runner.rollouts.engines import ENGINES
from seesaw_runner.rollouts.judges import skill_check
from seesaw_runner.routing.asked import BASE, Arms
from seesaw_runner.routing.bandit import ALGORITHMS
from seesaw_runner.training.options import Options

RULES = ("tag", "keywords", "tfidf")


@dataclass(frozen=True)
class Settings:
    """`folders`, `labels`: of the experts, by skill. `checks`: of every skill. `algorithm` None: no policy."""

    arms: Arms
    folders: dict[str, Path]
    labels: dict[str, str]
    checks: dict[str, Check]
    field: str
    rule: str
    keywords: dict[str, list[str]]
    algorithm: str | None
    features: str
    pulls: int
    learning_rate: float
    soft: bool
    margin: float
    paraphrases: dict[str, str]
    max_new_tokens: int
    engine: str


def read_settings(stage) -> Settings:
    """StageError `bad-argument` names the option and what fits."""
    options, spec = stage.options, stage.spec
    experts = options.take("experts", None, dict)
    if not experts:
        raise options.error("experts", "is missing: name an expert for each skill")
    if BASE in experts:
        raise options.error("experts", f"has a skill called {BASE}, which is the name of the model without an expert")
    skills = {one["id"]: skill_check(spec, one["id"]) for one in spec["skills"]}
    for skill, name in experts.items():
        if skill not in skills:
            skill_check(spec, skill)
        if not isinstance(name, str):
            raise options.error(f"experts.{skill}", f"must be a stage or an adapter's folder, but is {name!r}")
    fallback = options.take("fallback", BASE, str, among=(BASE, *experts))
    rule = options.take("rule", "tfidf", str, among=RULES)
    keywords = options.take("keywords", None, dict)
    if rule == "keywords" and not keywords:
        raise options.error("keywords", "is missing: the rule `keywords` needs words for each skill")
    if keywords and rule != "keywords":
        raise options.error("keywords", f"is only of the rule keywords, and the rule is {rule}")
    for skill, words in (keywords or {}).items():
        if skill not in experts:
            raise options.error(f"keywords.{skill}", f"is of no expert; the experts are {', '.join(experts)}")
        if not isinstance(words, list) or not words or not all(isinstance(w, str) and w.strip() for w in words):
            raise options.error(f"keywords.{skill}", "must be a list of words")
    paraphrases = options.take("paraphrases", None, dict) or {}
    for skill, path in paraphrases.items():
        if skill not in skills:
            raise options.error(f"paraphrases.{skill}", f"is of no skill; the skills are {', '.join(skills)}")
        if not isinstance(path, str) or not Path(path).is_file():
            raise options.error(f"paraphrases.{skill}", f"must be a file, but is {path!r}")
    algorithm, features, pulls, learning_rate = _policy(options)
    return Settings(
        arms=Arms(tuple(experts), fallback),
        folders={skill: stage.model_folder(name, f"experts.{skill}") for skill, name in experts.items()},
        labels={skill: spec["models"][name]["label"] for skill, name in experts.items()},
        checks=skills,
        field=options.take("domain_field", "data_source", str),
        rule=rule,
        keywords=keywords or {},
        algorithm=algorithm,
        features=features,
        pulls=pulls,
        learning_rate=learning_rate,
        soft=options.take("soft", False, bool),
        margin=options.take("margin", 5.0, float, least=0.0),
        paraphrases=paraphrases,
        max_new_tokens=options.take("max_new_tokens", 256, int, least=1),
        engine=options.take("engine", "auto", str, among=ENGINES),
    )


def _policy(options: Options) -> tuple[str | None, str, int, float]:
    given = options.take("policy", None, dict) or {}
    inner = Options("router", given)
    inner.error = lambda name, what: options.error(f"policy.{name}", what)
    algorithm = inner.take("algorithm", "reinforce", str, among=(*ALGORITHMS, "none"))
    features = inner.take("features", "tfidf", str, among=("tfidf", "hidden"))
    pulls = inner.take("pulls", 2000, int, least=1)
    learning_rate = inner.take("learning_rate", 0.1, float)
    if learning_rate <= 0:
        raise inner.error("learning_rate", f"is {learning_rate:g}, but must be more than 0")
    for name in given:
        if name not in inner.known:
            raise inner.error(name, f"does not exist; policy has {', '.join(inner.known)}")
        if algorithm == "none" and name != "algorithm" and given[name] is not None:
            raise inner.error(name, "has no effect, since no policy is trained (`algorithm: none`)")
    return (None if algorithm == "none" else algorithm), features, pulls, learning_rate
