"""The batch plan: exact replay share, every row in turn, and what each process of a distributed run gets."""

from collections import Counter

import pytest
from seesaw_runner.probing.callback import eval_steps, lean_steps, probe_steps
from seesaw_runner.training.plan import PlanSampler, make_plan, replay_counts, total_steps


def lengths(n):
    return [10 + (7 * k) % 23 for k in range(n)]


def test_every_row_is_drawn_before_any_is_drawn_again():
    plan = make_plan(lengths=lengths(37), own=37, steps=25, batch=4, accumulation=2, seed=1)
    assert len(plan.order) == 25 * 8 and plan.steps == 25
    counts = Counter(plan.order)
    assert set(counts) == set(range(37)) and max(counts.values()) - min(counts.values()) <= 1


def test_replay_share_is_exact_and_spread():
    plan = make_plan(lengths=lengths(60), own=50, steps=40, batch=7, accumulation=2, world=2, ratio=0.1, seed=5)
    assert plan.replay_total() == round(0.1 * 40 * 28)
    assert sum(sum(plan.replay_of(s).values()) for s in range(1, 41)) == plan.replay_total()
    batches = [plan.order[k : k + 7] for k in range(0, len(plan.order), 7)]
    assert {sum(i >= 50 for i in b) for b in batches} <= {0, 1}


@pytest.mark.parametrize("ratio", [0.05, 0.3, 0.5, 0.99])
def test_replay_counts_sum(ratio):
    import random

    counts = replay_counts(30, 8, ratio, random.Random(0))
    assert sum(counts) == round(ratio * 240) and max(counts) - min(counts) <= 1 and max(counts) <= 8


def test_same_seed_same_plan_and_batches_are_of_like_length():
    one, two, other = (make_plan(lengths=lengths(400), own=400, steps=40, batch=8, seed=s) for s in (1, 1, 2))
    assert one.order == two.order != other.order

    def spread(order):
        batches = ([lengths(400)[i] for i in order[k : k + 8]] for k in range(0, 320, 8))
        return sum(max(b) - min(b) for b in batches)

    import random

    mixed = random.Random(0).sample(range(400), 320)
    assert spread(one.order) < 0.6 * spread(mixed)


@pytest.mark.parametrize(("world", "accumulation"), [(1, 1), (2, 3)])
def test_accelerate_gives_each_process_its_part_of_the_step(world, accumulation):
    """accelerate's shards of torch's batches, put together again, are exactly the plan's step."""
    from accelerate.data_loader import BatchSamplerShard
    from torch.utils.data import BatchSampler

    plan = make_plan(lengths=lengths(30), own=30, steps=5, batch=4, accumulation=accumulation, world=world, seed=2)
    shards = [list(BatchSamplerShard(BatchSampler(PlanSampler(plan), 4, False), world, rank)) for rank in range(world)]
    assert all(len(s) == 5 * accumulation for s in shards)
    for step in range(5):
        seen = [i for s in shards for b in s[step * accumulation : (step + 1) * accumulation] for i in b]
        assert Counter(seen) == Counter(plan.rows_of(step + 1))


def test_nothing_to_draw_from_is_a_sentence():
    with pytest.raises(ValueError, match="no usable training row"):
        make_plan(lengths=[], own=0, steps=1, batch=1)
    with pytest.raises(ValueError, match="buffer"):
        make_plan(lengths=[3], own=1, steps=1, batch=1, ratio=0.5)


def test_steps_and_probe_points():
    assert total_steps(100, 32, -1, 2.0) == 7 and total_steps(100, 32, 5, 2.0) == 5
    assert probe_steps(20, 80) == [10, 20, 40, 60, 80] and probe_steps([3, 200], 50) == [3, 50]
    assert probe_steps(100, 250) == [10, 20, 40, 80, 100, 200, 250] and probe_steps(10, 25) == [10, 20, 25]
    assert probe_steps(30, 15) == [10, 15] and probe_steps(0, 50) == [50]
    # Nothing said: about 20 looks, at least 20 steps apart, and the early ones.
    assert probe_steps(None, 60) == [10, 20, 40, 60]
    assert probe_steps(None, 1010)[:5] == [10, 20, 40, 51, 102] and len(probe_steps(None, 1010)) == 23
    assert probe_steps("log", 40) == [1, 2, 3, 6, 12, 24, 40]
    assert eval_steps(None, 9) == [9] and eval_steps([3, 8], 9) == [3, 8, 9]
    # The point before the last is left out where it is nearer to the end than half the spacing.
    assert eval_steps(4, 9) == [4, 9] and eval_steps(4, 10) == [4, 8, 10] and eval_steps(100, 120) == [120]


def test_lean_points_are_the_early_ones_and_where_nothing_is_said_three_of_four():
    """Every fourth regular point scores all sets, the first ones not: there the watched ones are enough."""
    silent = {"every": None, "eval_every": None}
    assert lean_steps(silent, 120) == {10, 20, 40, 60, 100}, "80 is whole, 120 is the end"
    assert lean_steps({"every": None, "eval_every": [60]}, 120) == {10, 20, 40, 100}, "a check needs every set"
    assert lean_steps({"every": 20, "eval_every": None}, 80) == {10}, "who says how often gets every set as often"
    assert lean_steps({"every": [3, 6], "eval_every": None}, 80) == set()
