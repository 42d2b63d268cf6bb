"""The trace file: one SQLite database per checkpoint × skill × split, as `.github/contracts.md` §7 lays it out.

Written in one transaction under a temporary name and renamed, so a reader sees a whole trace or none. The reader half
is for tests and for taking over results of the previous stage; VS Code reads the same files with better-sqlite3.
"""

from __future__ import annotations

import errno
import json
import math
import os
import sqlite3
import struct
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SCHEMA = "1.0"

_TABLES = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
CREATE TABLE probe(row INTEGER PRIMARY KEY, line INTEGER, hash TEXT, prompt TEXT, reference TEXT, tags TEXT, status
TEXT,
  reason TEXT, tokens INTEGER, nll REAL, mean_entropy REAL, kl_start REAL, kl_base REAL, worst INTEGER, correct INTEGER,
  generated TEXT, finish TEXT);
CREATE TABLE tokens(row INTEGER PRIMARY KEY, ids BLOB, ends BLOB, logprob BLOB, entropy BLOB, rank BLOB, topk_ids BLOB,
  topk_logprob BLOB, segment BLOB, kl_start BLOB, kl_base BLOB);
CREATE TABLE segment(idx INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE summary(kind TEXT, name TEXT, rows INTEGER, tokens INTEGER, nll REAL, perplexity REAL, mean_entropy REAL,
  kl_start REAL, kl_base REAL, correct INTEGER, checked INTEGER, PRIMARY KEY(kind, name)) WITHOUT ROWID;
CREATE TABLE vocab(id INTEGER PRIMARY KEY, text BLOB);
"""


@dataclass
class TraceRow:
    """One probe. Lists have one entry per scored token; `topk_*` are flat, row-major [tokens, k]. None where not
    computed.
    """

    line: int
    hash: str
    prompt: str
    reference: str
    tags: list[str] = field(default_factory=list)
    reason: str | None = None
    ids: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    logprob: list[float] = field(default_factory=list)
    entropy: list[float] = field(default_factory=list)
    rank: list[int] = field(default_factory=list)
    topk_ids: list[int] = field(default_factory=list)
    topk_logprob: list[float] = field(default_factory=list)
    segment: list[int] = field(default_factory=list)
    kl: dict[str, list[float]] = field(default_factory=dict)
    correct: bool | None = None
    generated: str | None = None
    finish: str | None = None

    @property
    def nll(self) -> float:
        """Sum over the tokens, nats."""
        return -math.fsum(self.logprob) if self.ids else 0.0


def write_trace(
    path: str | Path, meta: dict[str, Any], rows: Sequence[TraceRow], segments: Sequence[str], vocab: dict[int, bytes]
) -> None:
    """Writes a whole trace. `meta` values become JSON. Raises OSError (disk full …) with nothing left under the final
    name.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.unlink(missing_ok=True)
    try:
        with closing(sqlite3.connect(temporary, isolation_level=None)) as db:
            db.execute("PRAGMA page_size=1024")
            db.execute("PRAGMA journal_mode=OFF")
            db.execute("PRAGMA synchronous=OFF")
            db.executescript(_TABLES)
            db.execute("BEGIN")
            db.executemany(
                "INSERT INTO meta VALUES(?,?)",
                [(k, json.dumps(v, sort_keys=True)) for k, v in {"schema": SCHEMA, **meta}.items()],
            )
            db.executemany("INSERT INTO segment VALUES(?,?)", list(enumerate(segments)))
            db.executemany(
                f"INSERT INTO probe VALUES({','.join('?' * 17)})", (_probe(i, r) for i, r in enumerate(rows))
            )
            db.executemany(
                f"INSERT INTO tokens VALUES({','.join('?' * 11)})", (_tokens(i, r) for i, r in enumerate(rows) if r.ids)
            )
            db.executemany(f"INSERT INTO summary VALUES({','.join('?' * 11)})", summaries(rows, segments))
            db.executemany("INSERT INTO vocab VALUES(?,?)", sorted(vocab.items()))
            db.execute("COMMIT")
        _sync(temporary)
        os.replace(temporary, path)
    except sqlite3.OperationalError as error:
        if "full" in str(error):  # SQLITE_FULL
            raise OSError(errno.ENOSPC, f"No space left while writing {path.name}.") from error
        if "I/O" in str(error):
            _write_something(path.parent)  # SQLite does not say what the system said, a quota for one
        raise
    finally:
        temporary.unlink(missing_ok=True)


def _write_something(folder: Path) -> None:
    """Raises the OSError with which `folder` takes no more bytes, if it does not."""
    with tempfile.TemporaryFile(dir=folder) as handle:
        for _ in range(128):
            handle.write(b"\0" * 65536)
        handle.flush()
        os.fsync(handle.fileno())


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _probe(index: int, r: TraceRow) -> tuple:
    n = len(r.ids)
    kl = {name: math.fsum(v) for name, v in r.kl.items()}
    worst = min(range(n), key=lambda k: r.logprob[k]) if n else None
    correct = None if r.correct is None else int(r.correct)
    return (
        index,
        r.line,
        r.hash,
        r.prompt,
        r.reference,
        json.dumps(r.tags),
        "ok" if r.reason is None else "skipped",
        r.reason,
        n,
        r.nll,
        math.fsum(r.entropy) / n if n else None,
        kl.get("start"),
        kl.get("base"),
        worst,
        correct,
        r.generated,
        r.finish,
    )


def _tokens(index: int, r: TraceRow) -> tuple:
    def u32(values: Iterable[int]) -> bytes:
        return _pack("I", values)

    def f32(values: Iterable[float]) -> bytes:
        return _pack("f", values)

    start, base = r.kl.get("start"), r.kl.get("base")
    return (
        index,
        u32(r.ids),
        u32(r.ends),
        f32(r.logprob),
        f32(r.entropy),
        u32(r.rank),
        u32(r.topk_ids),
        f32(r.topk_logprob),
        bytes(r.segment),
        None if start is None else f32(start),
        None if base is None else f32(base),
    )


def _pack(kind: str, values: Iterable) -> bytes:
    """Little-endian array; 4 bytes an item for both kinds."""
    values = list(values)
    return struct.pack(f"<{len(values)}{kind}", *values)


class _Sums:
    """Running sums of one summary line."""

    def __init__(self) -> None:
        self.rows = self.tokens = self.correct = self.checked = 0
        self.nll, self.entropy, self.kl = [], [], defaultdict(list)

    def add(self, r: TraceRow, picked: Sequence[int]) -> None:
        self.rows += 1
        self.tokens += len(picked)
        self.nll += [-r.logprob[k] for k in picked]
        self.entropy += [r.entropy[k] for k in picked]
        for name, values in r.kl.items():
            self.kl[name] += [values[k] for k in picked]
        if r.correct is not None:
            self.checked += 1
            self.correct += int(r.correct)

    def line(self, kind: str, name: str) -> tuple:
        n, total = self.tokens, math.fsum(self.nll)
        kl = {k: math.fsum(v) / n for k, v in self.kl.items() if n}
        return (
            kind,
            name,
            self.rows,
            n,
            total / self.rows if self.rows else None,
            perplexity(total, n),
            math.fsum(self.entropy) / n if n else None,
            kl.get("start"),
            kl.get("base"),
            self.correct,
            self.checked,
        )


def perplexity(nll: float, tokens: int) -> float | None:
    """exp(sum of NLL / number of tokens): token-weighted, independent of batching; inf when that overflows a float."""
    if not tokens:
        return None
    try:
        return math.exp(nll / tokens)
    except OverflowError:
        return math.inf


def summaries(rows: Sequence[TraceRow], segments: Sequence[str]) -> list[tuple]:
    """Lines of the `summary` table. `nll` is the mean over rows of the summed NLL (of the segment's tokens), KL and
    entropy are means over tokens. Segment lines count only rows that have such a token."""
    whole, by_segment, by_tag = _Sums(), defaultdict(_Sums), defaultdict(_Sums)
    for r in rows:
        if r.reason is not None:
            continue
        every = range(len(r.ids))
        whole.add(r, every)
        for tag in dict.fromkeys(r.tags):
            by_tag[tag].add(r, every)
        for index in sorted(set(r.segment)):
            by_segment[index].add(r, [k for k in every if r.segment[k] == index])
    out = [whole.line("all", "all")]
    out += [by_segment[i].line("segment", name) for i, name in enumerate(segments) if i in by_segment]
    return out + [sums.line("tag", tag) for tag, sums in sorted(by_tag.items())]


# ---- reading


@dataclass
class Trace:
    """A trace read back. `rows[i].topk_ids` is flat, row-major."""

    meta: dict[str, Any]
    rows: list[TraceRow]
    segments: list[str]
    summary: dict[tuple[str, str], dict[str, Any]]
    vocab: dict[int, bytes]


def read_meta(path: str | Path) -> dict[str, Any]:
    """Only the fingerprint of a trace."""
    with closing(_open(path)) as db:
        return {k: json.loads(v) for k, v in db.execute("SELECT key, value FROM meta")}


def read_trace(path: str | Path) -> Trace:
    """Reads a whole trace. Raises sqlite3.DatabaseError for a file that is none."""
    with closing(_open(path)) as db:
        meta = {k: json.loads(v) for k, v in db.execute("SELECT key, value FROM meta")}
        segments = [name for _, name in db.execute("SELECT idx, name FROM segment ORDER BY idx")]
        vocab = dict(db.execute("SELECT id, text FROM vocab"))
        db.row_factory = sqlite3.Row
        summary = {(s["kind"], s["name"]): dict(s) for s in db.execute("SELECT * FROM summary")}
        scores = {t["row"]: t for t in db.execute("SELECT * FROM tokens")}
        rows = [_read_row(p, scores.get(p["row"])) for p in db.execute("SELECT * FROM probe ORDER BY row")]
    return Trace(meta, rows, segments, summary, vocab)


def _open(path: str | Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro&immutable=1", uri=True)


def _read_row(p: sqlite3.Row, t: sqlite3.Row | None) -> TraceRow:
    row = TraceRow(p["line"], p["hash"], p["prompt"], p["reference"], json.loads(p["tags"]), p["reason"])
    row.correct = None if p["correct"] is None else bool(p["correct"])
    row.generated, row.finish = p["generated"], p["finish"]
    if t is None:
        return row
    for name in ("ids", "ends", "rank", "topk_ids"):
        setattr(row, name, _unpack("I", t[name]))
    for name in ("logprob", "entropy", "topk_logprob"):
        setattr(row, name, _unpack("f", t[name]))
    row.segment = list(t["segment"])
    row.kl = {name: _unpack("f", t[f"kl_{name}"]) for name in ("start", "base") if t[f"kl_{name}"] is not None}
    return row


def _unpack(kind: str, blob: bytes) -> list:
    return list(struct.unpack(f"<{len(blob) // 4}{kind}", blob))
