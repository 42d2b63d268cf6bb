"""The trace file: what is written is what is read, tables as in the contract, summaries token-weighted."""

import json
import math
import sqlite3
import struct

import pytest
from seesaw_runner.scoring.trace import TraceRow, perplexity, read_meta, read_trace, summaries, write_trace


def rows():
    one = TraceRow(
        1, "h1", "p", "ab", ["x", "y"], None, [7, 8, 4], [1, 2, 2], [-0.5, -2.0, -0.25], [0.1, 0.2, 0.3], [0, 3, 0]
    )
    one.topk_ids, one.topk_logprob, one.segment = [7, 1, 2, 8, 4, 9], [-0.5, -1, -0.7, -2, -0.25, -3], [0, 0, 1]
    one.kl = {"start": [0.0, 0.5, 0.25], "base": [0.0, 0.0, 1.0]}
    one.correct, one.generated, one.finish = False, "ac", "stop"
    two = TraceRow(
        2,
        "h2",
        "p2",
        "c",
        ["x"],
        None,
        [9],
        [1],
        [-1.0],
        [0.4],
        [1],
        [1, 9],
        [-0.4, -1.0],
        [0],
        {"start": [1.0], "base": [0.5]},
        True,
        "c",
        "length",
    )
    return [one, two, TraceRow(3, "h3", "", "", [], "The row has no answer.")]


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "traces" / "step-000003" / "s.id.trace"
    write_trace(
        file,
        {"step": 3, "skill": "s", "noise": {"nll_q99": 1e-6}},
        rows(),
        ["answer", "terminator"],
        {7: b"a", 8: b"\xf0", 4: b"<|end|>"},
    )
    return file


def test_reads_back(path):
    trace = read_trace(path)
    assert trace.meta == {"schema": "1.0", "step": 3, "skill": "s", "noise": {"nll_q99": 1e-6}} == read_meta(path)
    assert trace.segments == ["answer", "terminator"] and trace.vocab[8] == b"\xf0"
    for got, want in zip(trace.rows, rows(), strict=True):
        assert (got.ids, got.ends, got.rank, got.segment, got.topk_ids) == (
            want.ids,
            want.ends,
            want.rank,
            want.segment,
            want.topk_ids,
        )
        assert got.logprob == pytest.approx(want.logprob) and got.kl == {
            k: pytest.approx(v, abs=1e-7) for k, v in want.kl.items()
        }
        assert (got.correct, got.generated, got.finish, got.reason, got.tags) == (
            want.correct,
            want.generated,
            want.finish,
            want.reason,
            want.tags,
        )
    assert not list(path.parent.glob(".*"))


def test_columns_and_blobs_are_those_of_the_contract(path):
    db = sqlite3.connect(path)
    columns = lambda t: [c[1] for c in db.execute(f"PRAGMA table_info({t})")]  # noqa: E731
    assert (
        columns("probe")
        == "row line hash prompt reference tags status reason tokens nll mean_entropy kl_start kl_base worst "
        "correct generated finish".split()
    )
    assert (
        columns("tokens") == "row ids ends logprob entropy rank topk_ids topk_logprob segment kl_start kl_base".split()
    )
    assert (
        columns("summary")
        == "kind name rows tokens nll perplexity mean_entropy kl_start kl_base correct checked".split()
    )
    ids, segment, topk = db.execute("SELECT ids, segment, topk_logprob FROM tokens WHERE row=0").fetchone()
    assert struct.unpack("<3I", ids) == (7, 8, 4) and segment == b"\0\0\1" and len(topk) == 4 * 6
    status, reason, worst, nll, kl, correct = db.execute(
        "SELECT status, reason, worst, nll, kl_start, correct FROM probe WHERE row=0"
    ).fetchone()
    assert (
        (status, reason, worst, correct) == ("ok", None, 1, 0)
        and nll == pytest.approx(2.75)
        and kl == pytest.approx(0.75)
    )
    assert db.execute("SELECT status, reason, correct FROM probe WHERE row=2").fetchone() == (
        "skipped",
        "The row has no answer.",
        None,
    )
    assert db.execute("SELECT count(*) FROM tokens").fetchone() == (2,)
    assert json.loads(db.execute("SELECT tags FROM probe WHERE row=0").fetchone()[0]) == ["x", "y"]


def test_summaries():
    found = {(s[0], s[1]): s[2:] for s in summaries(rows(), ["answer", "terminator"])}
    assert set(found) == {("all", "all"), ("segment", "answer"), ("segment", "terminator"), ("tag", "x"), ("tag", "y")}
    count, tokens, nll, ppl, entropy, kl_start, _, correct, checked = found["all", "all"]
    assert (count, tokens, correct, checked) == (2, 4, 1, 2) and nll == pytest.approx(3.75 / 2)
    assert (
        ppl == pytest.approx(math.exp(3.75 / 4))
        and entropy == pytest.approx(0.25)
        and kl_start == pytest.approx(1.75 / 4)
    )
    assert found["segment", "terminator"][:4] == (1, 1, pytest.approx(0.25), pytest.approx(math.exp(0.25)))


def test_perplexity_is_token_weighted():
    """Case L10's rule, and an overflow that stays a number."""
    assert perplexity(100 * 1.0 + 10 * 4.0, 110) == pytest.approx(math.exp(140 / 110))
    assert perplexity(1e6, 1) == math.inf and perplexity(0, 0) is None


def test_nothing_is_left_when_writing_fails(tmp_path):
    bad = rows()
    bad[0].ids = [-1, 2, 3]
    with pytest.raises(struct.error):
        write_trace(tmp_path / "t.trace", {}, bad, ["answer"], {})
    assert list(tmp_path.iterdir()) == []
