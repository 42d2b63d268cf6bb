"""Early warnings: numbers, decisions and states against the fixtures that both languages read."""

import json
from pathlib import Path

import numpy as np
import pytest
from seesaw_runner.flags import bootstrap, margins
from seesaw_runner.flags.detectors import DETECTORS
from seesaw_runner.flags.measurable import why_not_measurable
from seesaw_runner.flags.panel import Noise, SeriesStart, density_at_zero
from seesaw_runner.flags.settings import FlagSettings, flag_actions, flag_settings
from seesaw_runner.flags.statistics import (
    bounds,
    holm_level,
    mcnemar_p,
    quantile,
    skewness,
    smallest_drop,
    t_cdf,
    t_quantile,
    wilson_lower,
)
from seesaw_runner.flags.verdict import LookScores, Setup, Verdict
from seesaw_runner.flags.watch import PastLook, Watch
from seesaw_runner.run_folder import StageError

FOLDER = Path(__file__).parents[1] / "fixtures/protocol/flags"
SERIES = sorted(FOLDER.glob("series-*.json"))


def read(name):
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def start_of(s):
    given = s["start"]
    correct = [c == "1" for c in given["correct"]]
    arrays = np.array(given["nll"]), np.array(given["margins"])
    return SeriesStart(
        s["skill"], s["split"], *arrays, correct, Noise(**given["noise"]), s["seed"], given.get("groups")
    )


def setup_of(s):
    return Setup(s["alpha"], s["series"], s["looks"], s["tolerance"], s["tolerance_nats"], s["scale"])


def look_of(at):
    return LookScores(at["step"], at["progress"], np.array(at["nll"]), np.array(at["margins"]))


# ---- the fixtures


@pytest.mark.parametrize("path", SERIES, ids=lambda p: p.stem)
def test_detectors_decide_what_the_fixture_says(path):
    s = json.loads(path.read_text())
    for name, want in s["expected"].items():
        detector = DETECTORS[name](start_of(s), setup_of(s))
        for j, at in enumerate(s["at"]):
            v = detector.look(look_of(at))
            about = (name, at["step"])
            assert (v.alarm, v.clear) == (want["alarm"][j], want["clear"][j]), about
            assert v.threshold == pytest.approx(want["threshold"], rel=1e-9, abs=1e-9), about
            for field in ("estimate", "low", "high", "spent"):
                assert getattr(v, field) == pytest.approx(want[field][j], rel=1e-9, abs=1e-9), (*about, field)


def test_there_are_series_of_every_kind():
    assert len(SERIES) >= 12
    alarms = {p.stem: {d: any(v["alarm"]) for d, v in json.loads(p.read_text())["expected"].items()} for p in SERIES}
    assert all(alarms["series-drifting"].values()) and not any(alarms["series-copies"].values())
    assert not any(alarms["series-improving"].values()) and not alarms["series-temperature"]["shift"]


@pytest.mark.parametrize("path", SERIES, ids=lambda p: p.stem)
def test_watch_walks_through_the_states_of_the_fixture(path):
    """With a check that never confirms anything."""
    s = json.loads(path.read_text())
    start = start_of(s)
    start.correct = [True] * len(start.nll)
    for name, want in s["expected"].items():
        if name == "nll" and s["start"]["noise"]["nll_q99"] > s["tolerance_nats"]:
            continue  # too noisy for no tolerance at all, so it is not watched
        level = s["alpha"] if name == "limit" else s["alpha"] / s["series"]  # its limit is that of the whole run
        settings = FlagSettings(level, s["tolerance"], s["tolerance_nats"], name, scale=s["scale"])
        watch = Watch(settings, s["looks"], [start])
        assert watch.measurable == [s["id"]], name
        states, asked = [], []
        for j, at in enumerate(s["at"]):
            look = watch.look(s["id"], look_of(at))
            if look.needs_check:
                asked.append(j)
                watch.test(at["step"], s["id"], start.correct, start.correct)
            states.append(watch.state(s["id"]))
        assert (states, asked) == (want["states"], want["checks"]), name


def test_pieces():
    pieces = read("pieces")
    for case in pieces["fnv1a"]:
        assert bootstrap.fnv1a(case["text"]) == case["hash"]
    for case in pieces["draws"]:
        assert bootstrap.draws(case["seed"], 0, len(case["rows"]), case["n"]).tolist() == case["rows"]
    last = pieces["last_draws"]
    assert bootstrap.draws(last["seed"], last["from"], 8, last["n"]).tolist() == last["rows"]
    for case in pieces["density"]:
        assert density_at_zero(np.array(case["margins"], float)) == pytest.approx(case["density"], rel=1e-9)


def test_a_large_panel_is_worked_on_in_parts(monkeypatch):
    x = np.random.default_rng(3).normal(size=48)
    whole = bootstrap.Bootstrap(7, 48).studentised(x)
    monkeypatch.setattr(bootstrap, "CHUNK", 48 * 999)  # four parts and a rest
    assert bootstrap.Bootstrap(7, 48).studentised(x) == pytest.approx(whole, rel=1e-12)
    assert bootstrap.resamples(7, 48).sum(1).tolist() == [48] * bootstrap.RESAMPLES


def test_margins_and_decision_tokens():
    rows = read("margins")["rows"]
    for row in rows:
        n = len(row["ids"])
        names = margins.decision_segments({"check": {"kind": row["check"]}, "decision": row["setting"]})
        decisive = margins.decisive_tokens(row["segments"], names)
        assert [k for k, yes in enumerate(decisive) if yes] == row["decision"], row
        shape = (n, len(row["topk_ids"]) // n)
        top = np.array(row["topk_ids"]).reshape(shape), np.array(row["topk_logprob"], float).reshape(shape)
        found = margins.token_margins(row["ids"], np.array(row["logprob"], float), row["rank"], *top)
        if row["all"] is None:
            assert found is None
            continue
        assert margins.row_margins(found, [0, n]).tolist() == pytest.approx([row["all"]])
        decided = margins.row_margins(found, [0, n], np.array(decisive))
        assert decided.tolist() == pytest.approx([row["margin_decision"]])
    assert {row["all"] is None for row in rows} == {True, False}


def test_what_is_no_number_is_lost():
    nan, inf = float("nan"), float("inf")
    found = margins.token_margins([1, 2], [nan, -inf], [0, 5], [[1, 3], [4, 5]], [[nan, nan], [-0.1, -3.0]])
    assert found.tolist() == [-50, -50]
    assert margins.row_nll([-1.0, nan, -2.0, -3.0, -inf], [0, 2, 4, 5]).tolist() == [1000, 5, 1000]


def test_reasons():
    cases = read("reasons")["cases"]
    assert any(case["reason"] is None for case in cases) and len(cases) >= 10
    for case in cases:
        assert why_not_measurable(**{k: v for k, v in case.items() if k != "reason"}) == case["reason"], case


class Scripted:
    """A detector whose verdicts are those of a table: states do not ask where they come from."""

    unit = "points"

    def __init__(self, steps):
        self.steps = steps

    def look(self, scores):
        alarm, clear = self.steps[scores.step]
        return Verdict(5.0, 3.0, 1.0 if clear else 7.0, "points", 2.0, alarm, 0.1)

    def pass_over(self, progress):
        raise AssertionError("no look is missing")


@pytest.mark.parametrize("case", read("states")["cases"], ids=lambda c: c["name"])
def test_states(case):
    n, nothing = 40, np.zeros(40)
    bits = lambda text: [c == "1" for c in text]  # noqa: E731

    def opened():
        starts = []
        for name in case["series"]:
            skill, split = name.split(".")
            starts.append(SeriesStart(skill, split, nothing, nothing, [True] * n, Noise()))
        watch = Watch(FlagSettings(), 20, starts)
        scripts = {name: {} for name in case["series"]}
        for name, script in scripts.items():
            watch._series[name].detector = Scripted(script)
        return watch, scripts

    watch, scripts = opened()
    journal, asks, seen, attempt = [], [], [], 1
    for step in case["steps"]:
        if "resumed" in step:
            attempt += 1
            journal.append({"type": "run.started", "attempt": attempt, "resumed_from": step["resumed"]})
            watch, scripts = opened()
            seen = [one for one in seen if one["step"] <= step["resumed"]]
            for one in seen:
                scripts[one["series"]][one["step"]] = (one["alarm"], one["clear"])
            scores = [(one["step"], one["series"], LookScores(one["step"], 0.5, nothing, nothing)) for one in seen]
            watch.restore(journal, [PastLook(at, 0.5, {name: look}) for at, name, look in scores])
            continue
        seen.append(step)
        scripts[step["series"]][step["step"]] = (step["alarm"], step["clear"])
        look = watch.look(step["series"], LookScores(step["step"], 0.5, nothing, nothing))
        journal += [{"type": kind, "attempt": attempt, **body} for kind, body in look.events]
        if look.needs_check:
            asks.append([step["step"], step["series"]])
            kind, body = watch.test(step["step"], step["series"], bits(step["before"]), bits(step["now"]))
            journal.append({"type": kind, "attempt": attempt, **body})
    flags = [e for e in journal if e["type"] != "run.started"]
    assert asks == case["asks"] and len(flags) == len(case["events"])
    for event, want in zip(flags, case["events"], strict=True):
        assert {k: event[k] for k in want if k != "test"} == {k: v for k, v in want.items() if k != "test"}
        assert ("test" in event) == ("test" in want)
        if "test" in want:
            assert event["test"] == pytest.approx(want["test"])


# ---- small formulas


@pytest.mark.parametrize(
    ("p", "df", "t"), [(0.975, 31, 2.0395134), (0.95, 1, 6.3137515), (0.995, 63, 2.6561450), (0.9999, 10, 5.6938201)]
)
def test_t_quantile_of_the_tables(p, df, t):
    assert t_quantile(p, df) == pytest.approx(t, abs=1e-6) and t_quantile(1 - p, df) == pytest.approx(-t, abs=1e-6)
    assert t_cdf(t, df) == pytest.approx(p, abs=1e-7)


def test_t_quantile_against_scipy():
    stats = pytest.importorskip("scipy.stats")
    for df in (1, 2, 5, 31, 63, 500):
        for p in (0.6, 0.9, 0.99, 0.9995, 1 - 1e-6):
            assert t_quantile(p, df) == pytest.approx(stats.t.ppf(p, df), rel=1e-6)


def test_small_formulas():
    assert wilson_lower(0, 0) == 0 and wilson_lower(13, 64) == pytest.approx(0.12273, abs=1e-4)
    assert mcnemar_p(0, 0) == 1 and mcnemar_p(5, 0) == 1 / 32 and mcnemar_p(3, 1) == 5 / 16
    assert quantile([1, 2, 3, 4], 0.5) == 2.5 and quantile([], 0.5) == 0
    assert holm_level([0.001, 1, 1], 0) == pytest.approx(0.05 / 3)
    assert holm_level([0.001, 0.02, 1], 1) == pytest.approx(0.05 / 2)
    assert holm_level([0.03, 0.04, 1], 1) == 0  # the smaller one was not rejected
    mean, lower, upper = bounds([1.0, 2.0, 3.0, 4.0], 0.05)
    assert (
        mean == 2.5
        and lower == pytest.approx(2.5 - 2.3533634 * 0.6454972)
        and upper == pytest.approx(2.5 + 1.6377444 * 0.6454972)
    )


def test_smallest_drop_is_what_the_exact_test_can_show():
    assert smallest_drop(0, 0.05, 0) is None and smallest_drop(3, 0.05, 0) is None  # ½³ is no evidence
    assert smallest_drop(32, 0.05, 0) == pytest.approx(6.182557 / 38.182557, rel=1e-5)  # (1.6449 + 0.8416)² = 6.1826
    r = np.random.default_rng(1)
    for n, level in ((64, 0.05 / 4), (128, 0.05 / 16), (200, 0.05)):
        drop = smallest_drop(n, level, 0.05)
        found = 0
        for _ in range(400):
            lost, gained, _ = r.multinomial(n, [drop + 0.025, 0.025, 1 - drop - 0.05])
            found += mcnemar_p(int(lost), int(gained)) <= level
        assert 0.7 < found / 400 < 0.92, (n, level, drop, found)


def test_mcnemar_against_exact_values():
    stats = pytest.importorskip("scipy.stats")
    for lost in range(12):
        for gained in range(12):
            n = lost + gained
            want = stats.binomtest(lost, n, 0.5, alternative="greater").pvalue if n else 1
            assert mcnemar_p(lost, gained) == pytest.approx(want, rel=1e-12)


def test_skewness_and_the_corrected_bound():
    stats = pytest.importorskip("scipy.stats")
    values = [0.3, 0.1, 0.2, 0.25, -2.0, 0.15, 0.3, 0.28]
    assert skewness(values) == pytest.approx(stats.skew(values, bias=False)) and skewness([1.0] * 5) == 0
    mean, lower, _ = bounds(values, 0.0025)
    plain = mean - t_quantile(0.9975, 7) * stats.sem(values)
    assert lower < plain
    assert bounds([-v for v in values], 0.05)[1] == pytest.approx(-mean - t_quantile(0.95, 7) * stats.sem(values))


# ---- settings


def test_settings_of_now_and_of_older_runs():
    now = {"alpha": 0.05, "tolerance": 3, "detector": "shift", "tolerance_nats": 0.5, "on_flag": "pause"}
    assert flag_settings(now) == FlagSettings(0.05, 3, 0.5, "shift")
    older = flag_settings({"alpha": 0.1, "tolerance": 0.3})  # nats, in those days
    assert older.tolerance_nats == 0.3 and older.tolerance == 2 and older.detector == "limit"
    assert flag_settings({}) == FlagSettings()
    with pytest.raises(StageError, match="no detector 'kl'.*soft"):
        flag_settings({"detector": "kl"})


def test_a_skill_says_itself_what_its_flags_do():
    skills = [{"id": "math"}, {"id": "tool", "on_flag": "stop"}]
    assert flag_actions({"flags": {"on_flag": "pause"}, "skills": skills}) == {"math": "pause", "tool": "stop"}
    assert flag_actions({"flags": {}, "skills": skills}) == {"math": "inform", "tool": "stop"}
    with pytest.raises(StageError, match="on_flag"):
        flag_actions({"flags": {"on_flag": "panic"}, "skills": skills})
