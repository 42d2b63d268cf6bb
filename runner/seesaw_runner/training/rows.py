"""Training rows as the trainer takes them: the stage's own, and those of the replay buffer."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from seesaw_runner.run_folder import StageError, attempt_number, say


def read_training_rows(path: str, encoder, journal, *, scored: bool, group_field: str | None = None) -> list:
    """Encoded rows; the ones that cannot be used are counted, and the first of each reason is told. StageError when
    none is left.

    group_field: each row must have a text in this field; it becomes the row's `group`.
    """
    from seesaw_runner.data.rows import read_rows

    rows, bad = [], {}
    for source in read_rows(path):
        row = encoder.encode(source.value, last_only=False) if source.error is None else None
        reason = str(source.error) if row is None else row.reason
        if reason is None and group_field is not None:
            row.group = source.value.get(group_field)
            if not isinstance(row.group, str):
                reason = f"The row has no text in the field {group_field}, which the batches are balanced by."
        if reason is None:
            rows.append(row)
        else:
            bad.setdefault(reason if row is not None else "The row is no valid JSON object.", []).append(
                (source.line, reason)
            )
    for places in list(bad.values())[:10]:
        journal.append(
            "warning",
            code="row-skipped",
            severity="warning",
            where=f"{path}:{places[0][0]}",
            message=f"{len(places)} training rows are left out. Line {places[0][0]}: {places[0][1]}",
            fix="Correct or remove these rows.",
        )
    cut = [row for row in rows if row.cut]
    if cut:
        journal.append(
            "warning",
            code="row-cut",
            severity="warning",
            where=path,
            message=f"{len(cut)} of {len(rows)} training rows are cut to {encoder.max_length} tokens, so the end of "
            "their answers is not learned.",
            fix="Raise max_length (up to the model's context), or shorten these rows.",
        )
    if not rows:
        first = next(iter(bad.values()), [(1, "the file has no rows")])[0]
        code = "template" if "chat template" in first[1] else "bad-data"
        raise StageError(code, f"No row of {path} can be trained on. Line {first[0]}: {first[1]}", f"{path}:{first[0]}")
    return rows


def replay_rows(stage, encoder) -> tuple[Any, list]:
    """The frozen buffer of this run and its encoded rows as (hash, row). Built once, by rank 0; later attempts and the
    other processes read buffer.json.
    """
    spec, path = stage.spec, stage.run / "buffer.json"
    if not spec.get("replay"):
        return None, []
    from seesaw_runner.replay.buffer import Buffer, ReplayError

    try:
        if path.exists() and attempt_number(stage.attempt) > 1:
            buffer = Buffer.load(path)
        elif stage.rank == 0:
            buffer = _build(stage, encoder)
            buffer.save(path)
        else:
            buffer = _wait_for(stage, path)
        values = buffer.values(spec["pipeline"]["root"])
    except ReplayError as error:
        raise StageError("bad-data", f"{error}.", str(path)) from error
    out = []
    for row, value in zip(buffer.rows, values, strict=True):
        encoded = encoder.encode(value, last_only=False)
        if encoded.reason is None:
            out.append((row.hash, encoded))
        else:
            stage.warn("row-skipped", f"A replay row is left out: {encoded.reason}", where=f"{row.source}:{row.line}")
    if not out:  # an empty buffer would be an ignored option
        raise StageError(
            "bad-data",
            f"No row of the buffer {buffer.buffer} can be trained on; the journal says why. Raise max_length, or "
            "draw from other stages.",
            str(path),
        )
    return buffer, out


def _build(stage, encoder):
    """The buffer, with the models that its options ask for."""
    from seesaw_runner.replay.buffer import build_buffer

    spec, replay = stage.spec, stage.spec["replay"]
    rater = _reward_model(stage, replay)
    diversity = replay.get("diversity") or {}
    states, width = None, 0
    if any((diversity.get(name) or {}).get("features") == "hidden" for name in ("k_center", "clusters")):
        from seesaw_runner.replay.hidden_states import states_of

        states, width = states_of(stage.model, encoder), int(stage.model.config.get_text_config().hidden_size)
    try:
        buffer = build_buffer(
            replay,
            skills=spec["skills"],
            seed=int(spec["seed"]),
            root=spec["pipeline"]["root"],
            trusted=bool(spec["trusted"]),
            rater=rater,
            states=states,
            width=width,
        )
    finally:
        if rater is not None:
            rater.close()
    for source in buffer.sources:
        if source.get("quota", 0) > source["taken"]:
            stage.warn(
                "replay-short",
                f"The buffer {buffer.buffer} holds {source['taken']} rows of {source['stage']}, not the "
                f"{source['quota']} of its quota: no more are good enough and different from each other.",
                where=source["data"],
            )
    if rater is not None and rater.cut:
        stage.warn(
            "row-cut",
            f"{rater.cut} rows are longer than the reward model {rater.name} can read: it scored their beginnings.",
            severity="info",
        )
    if replay.get("near"):
        _tell_near(stage, buffer)
    for told in buffer.coverage:
        say(
            f"{told['stage']}: rows left out are {told['mean']:.3f} from the nearest kept one on average "
            f"({told['max']:.3f} at most); taken by chance, {told['random']['mean']:.3f} ({told['random']['max']:.3f})"
        )
        if told["compared"] < (kept := next(s["kept"] for s in buffer.sources if s["stage"] == told["stage"])):
            stage.warn(
                "replay-thinned",
                f"{told['compared']} of the {kept} candidates of {told['stage']} were compared with each other, taken "
                "by chance: more do not fit into memory, or the model cannot read them.",
                severity="info",
            )
    return buffer


def _tell_near(stage, buffer) -> None:
    """What the rows near the named ones are like; and that a probe which had a say in what is trained on is not
    independent of the training any more."""
    from seesaw_runner.replay.buffer import probe_hashes
    from seesaw_runner.replay.nearness import named_rows, spoken

    near = stage.spec["replay"]["near"]
    for told in buffer.nearness:
        say(
            f"{told['stage']}: {told['rows']} rows were taken first, their prompts {told['mean']:.3f} similar to the "
            f"nearest named one on average; taken by chance, {told['random']['mean']:.3f}"
        )
    if not any(told["rows"] for told in buffer.nearness):
        stage.warn(
            "near-none",
            f"No row of the buffer {buffer.buffer} was taken for its nearness to {spoken(near['lines'])}: none has a "
            "word of them, or the shares are too small.",
            where=near["rows"],
        )
        return
    probes = named_rows(near).probes(probe_hashes(stage.spec["skills"]))
    if probes:
        stage.warn(
            "near-probes",
            f"Rows of the buffer {buffer.buffer} were chosen by probes ({spoken(probes)}), which are thus no longer "
            "independent of the training; the drift of the others tells more.",
            where=f"{near['rows']}:{probes[0]}",
            severity="info",
        )


def _reward_model(stage, replay: dict):
    """What scores rows where `quality` names a reward model, else None. StageError without one in run.json."""
    name = (replay.get("quality") or {}).get("reward_model")
    if name is None:
        return None
    from seesaw_runner.replay.reward_model import FILE, RewardModel
    from seesaw_runner.training.model_notes import tell_parts

    found = (stage.spec.get("models") or {}).get(name)
    if found is None:
        raise StageError(
            "bad-argument",
            f"The buffer {replay['buffer']} names the reward model {name!r}, which run.json has no checkpoint for.",
            "replay",
        )
    return RewardModel(
        found["checkpoint"],
        name=name,
        identity=found["weights_hash"],
        scores=stage.run / FILE,
        device=stage.device.torch,
        dtype=stage.device.frozen_dtype,
        told=stage.loading,
        stopping=lambda: stage.watch.signal is not None,
        place=lambda: stage.placement(found["checkpoint"]),
        placed=lambda model: tell_parts(stage, model, found["checkpoint"]),
    )


def _wait_for(stage, path: Path):
    """The buffer that rank 0 builds: a reward model must not run in every process, and all must draw the same rows."""
    from seesaw_runner.replay.buffer import Buffer

    while not path.exists():
        if stage.watch.signal is not None:
            raise StageError("cancelled", "Stopped while the replay buffer was being built; nothing was learned yet.")
        time.sleep(0.2)
    return Buffer.load(path)


def labels(row, every_token: bool) -> list[int]:
    """Ids to learn, −100 elsewhere."""
    if every_token:
        return list(row.ids)
    learned = set(row.scored)
    return [token if k in learned else -100 for k, token in enumerate(row.ids)]
