"""Early warnings: the numbers against known values, the states, and that false alarms keep within their budget."""

import random

import pytest
from seesaw_runner.probing.flags import (
    SeriesStart,
    Watch,
    bounds,
    holm_level,
    mcnemar_p,
    quantile,
    skewness,
    t_cdf,
    t_quantile,
    wilson_lower,
)


def series(name="math", rows=64, right=64, noise=1e-6):
    return SeriesStart(name, "id", rows, [k < right for k in range(rows)], noise)


def watch(*starts, alpha=0.1, tolerance=0.2, looks=4):
    return Watch(alpha=alpha, tolerance=tolerance, looks=looks, series=starts or [series()])


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


def test_not_measurable_has_reasons():
    w = watch(series("few", rows=31, right=31), series("absent", right=12), series("noisy", noise=0.3), series("fine"))
    found = {body["skill"]: body["reason"] for kind, body in w.not_measurable() if kind == "flag.raised"}
    assert set(found) == {"few", "absent", "noisy"} and w.measurable == ["fine.id"]
    assert "31 probe rows" in found["few"] and "12 of 64" in found["absent"] and "noise" in found["noisy"]
    assert w.not_measurable() == [] and not w.look(5, "few.id", [9.0] * 31).events


def test_level_is_split_over_series_and_looks():
    assert watch(series("a"), series("b"), series("c", right=0), looks=5).level == pytest.approx(0.1 / 10)


def test_drifting_confirmed_recovered():
    w, r = watch(), random.Random(0)
    rows = lambda mean: [r.gauss(mean, 0.3) for _ in range(64)]  # noqa: E731
    assert w.look(1, "math.id", rows(0.0)).events == []
    look = w.look(2, "math.id", rows(1.0))
    ((kind, body),) = look.events
    assert (
        kind == "flag.raised"
        and body["state"] == "drifting"
        and look.needs_check
        and body["lower"] > body["threshold"] == 0.2 + 1e-6
    )
    before = [True] * 64
    kind, body = w.test(2, "math.id", before, before)
    assert kind == "flag.changed" and body["state"] == "drifting" and body["test"]["p"] == 1
    assert w.look(3, "math.id", rows(1.0)).needs_check  # still drifting: asked again, at half the level
    kind, body = w.test(3, "math.id", before, [k >= 30 for k in range(64)])
    assert (
        body["state"] == "confirmed" and body["test"]["lost"] == 30 and body["test"]["level"] == pytest.approx(0.05 / 4)
    )
    assert not w.look(4, "math.id", rows(1.0)).needs_check
    assert w.look(5, "math.id", rows(0.0)).events == []
    ((kind, body),) = w.look(6, "math.id", rows(0.0)).events
    assert kind == "flag.changed" and body["state"] == "recovered"
    assert w.look(7, "math.id", rows(1.0)).events[0][1]["state"] == "drifting"


def test_one_quiet_look_is_no_recovery():
    w = watch()
    w.look(1, "math.id", [1.0, 1.2] * 32)
    assert w.look(2, "math.id", [0.0, 0.01] * 32).events == [] and w.look(3, "math.id", [1.0, 1.2] * 32).events == []
    assert w.look(4, "math.id", [0.0, 0.01] * 32).events == []


def test_improvement_never_alarms_and_impossible_rows_do():
    w = watch()
    assert w.look(1, "math.id", [-5.0, -6.0] * 32).events == []
    assert w.look(2, "math.id", [float("inf")] * 64).events[0][1]["state"] == "drifting"


BAD = [1.0, 1.2] * 32


def journalled(w, *steps, attempt=1, lost=40):
    """Looks and tests as the prober makes them; gives the events of the journal."""
    events = []
    for step in steps:
        look = w.look(step, "math.id", BAD)
        events += look.events
        if look.needs_check:
            events.append(w.test(step, "math.id", [True] * 64, [k >= lost for k in range(64)]))
    return [{"type": kind, "attempt": attempt, **body} for kind, body in events]


def test_levels_spent_stay_spent_after_a_resume():
    events = journalled(watch(), 1, 2, lost=1)
    again = watch()
    again.restore([*events, {"type": "run.started", "attempt": 2, "resumed_from": 2}])
    (body,) = journalled(again, 3)
    assert body["type"] == "flag.changed" and body["test"]["level"] == pytest.approx(0.05 / 2**3)


def test_flags_after_the_resumed_step_are_raised_again_as_before():
    """Readers take them back, so a runner that kept them in mind would never say them again; and repeating an exact
    resume is no further test: same level, same verdict as a run that was not interrupted."""
    started = {"type": "run.started", "attempt": 2, "resumed_from": 1}
    events = journalled(watch(looks=6), 2, 3)
    assert [e["state"] for e in events] == ["drifting", "confirmed"]
    again = watch(looks=6)
    again.restore([*events, started])
    assert again.state("math.id") == "calm"
    repeated = journalled(again, 2, 3)
    drop = ("attempt",)
    assert [{k: v for k, v in e.items() if k not in drop} for e in repeated] == [
        {k: v for k, v in e.items() if k not in drop} for e in events
    ]
    # From scratch: also what was said at step 0.
    fresh = watch(series("absent", right=0))
    said = [{"type": k, "attempt": 1, **b} for k, b in watch(series("absent", right=0)).not_measurable()]
    fresh.restore([*said, {"type": "run.started", "attempt": 2, "resumed_from": None}])
    assert [k for k, _ in fresh.not_measurable()] == ["flag.raised"]


def test_confirmed_is_said_with_the_test_that_shows_it():
    """With many series Holm's level is low, and it rises when another one is confirmed: an old p-value must not confirm
    at a point whose own test shows nothing."""
    w = watch(*[series(str(k)) for k in range(6)])
    w.look(1, "0.id", BAD)
    before = [True] * 64
    lost = lambda n: [k >= n for k in range(64)]  # noqa: E731
    assert w.test(1, "0.id", before, lost(6))[1]["state"] == "drifting"  # p = 1/64, p̃ = 1/32
    for k in range(1, 6):
        w.look(1, f"{k}.id", BAD)
        assert w.test(1, f"{k}.id", before, lost(60))[1]["state"] == "confirmed"
    w.look(2, "0.id", BAD)
    body = w.test(2, "0.id", before, lost(0))[1]
    assert body["test"]["p"] == 1 and body["state"] == "drifting"


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


def test_rescoring_the_same_weights_never_alarms():
    r = random.Random(1)
    for _ in range(200):
        w = watch(*[series(str(k), noise=2e-5) for k in range(8)], looks=10)
        for step in range(10):
            assert not any(w.look(step, f"{k}.id", [r.gauss(0, 1e-5) for _ in range(64)]).events for k in range(8))


SHAPES = {
    "normal": lambda r: r.gauss(0, 0.5),
    "right": lambda r: r.expovariate(2.0) - 0.5,
    "left": lambda r: 0.5 - r.expovariate(2.0),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_false_alarms_keep_within_the_budget(shape):
    """Every series sits exactly at its threshold and looks are independent, the worst harmless world: of 200 runs of
    8 series × 5 looks at most alpha = 10 % may alarm (27 is the 95 % point of Binomial(200, 0.1)). Student's t alone
    alarms in half of the runs of the left-skewed shape."""
    r, alarms = random.Random(2), 0
    draw = SHAPES[shape]
    for _ in range(200):
        w = watch(*[series(str(k), noise=0.0) for k in range(8)], looks=5)
        alarms += any(
            w.look(step, f"{k}.id", [0.2 + draw(r) for _ in range(32)]).events for step in range(5) for k in range(8)
        )
    assert alarms <= 27


def test_a_skill_that_improves_on_most_rows_is_calm():
    """Healthy improvement is skewed too: most rows gain a little, some a lot, a few lose."""
    r, alarms = random.Random(5), 0
    for _ in range(200):
        w = watch(*[series(str(k)) for k in range(4)], looks=5)
        rows = [[r.gauss(0.05, 0.2) - r.expovariate(2.0) for _ in range(64)] for _ in range(4)]
        alarms += any(w.look(t, f"{k}.id", [v * t / 5 for v in rows[k]]).events for t in range(1, 6) for k in range(4))
    assert alarms == 0
