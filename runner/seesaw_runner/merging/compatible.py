"""May these models be merged? Names, shapes, types, tied heads, settings and vocabularies, before a number is read."""

from __future__ import annotations

import json
from pathlib import Path

from seesaw_runner.run_folder import StageError
from seesaw_runner.weights.source import WeightSource, same_root

#: Parts of config.json that decide what the tensors mean.
_MEANING = (
    *("model_type", "hidden_act", "num_attention_heads", "num_key_value_heads", "head_dim"),
    *("rope_theta", "rope_scaling", "rope_parameters", "rms_norm_eps"),
)


def check_models(models: list[WeightSource], base: WeightSource, *, uses_base: bool) -> tuple[WeightSource, list[str]]:
    """What the result is compared with (the base, or the first model where they are unlike and the base is not needed),
    and what a person should know. StageError `bad-checkpoint` names the tensor and the models.
    """
    first, reference, notes = models[0], base, []
    others = [*models[1:], base] if uses_base else models[1:]
    for other in others:
        _same_kind(first, other)
        _same_tensors(first, other)
    if not uses_base:
        try:
            _same_tensors(first, base)
        except StageError:
            reference = first
            notes.append(f"{base.label} has other tensors, so the report compares with {first.label} instead.")
    notes += _vocabularies(first, others)
    if len({m.tied for m in models}) == 1 and first.tied:
        notes.append("The output head is tied to the embedding and stays tied: one tensor is merged and stored.")
    for model in models if uses_base else []:
        if model.adapters and not same_root(model, base):
            notes.append(
                f"The adapter {model.label} was trained on {model.root.folder}, not on {base.label}: the change "
                f"that is merged includes the difference of the two."
            )
    return reference, notes


def storage_types(models: list[WeightSource], wanted: str | None) -> dict[str, str]:
    """The type that every tensor of the result is stored in: the wanted one, else the models' own."""
    if wanted:
        return dict.fromkeys(models[0].names, wanted)
    found = {}
    for name in models[0].names:
        kinds = {model.dtype(name): model for model in models}
        if len(kinds) > 1:
            listed = " and ".join(f"{kind} in {model.label}" for kind, model in kinds.items())
            raise StageError(
                "bad-checkpoint",
                f"{name} is stored as {listed}. Write options.dtype (float32, bfloat16 or float16) to say how the "
                f"result is stored.",
                "options.dtype",
            )
        (found[name],) = kinds
    return found


def _same_kind(one: WeightSource, other: WeightSource) -> None:
    """Tensors of one shape may still mean something else."""
    for key in _MEANING:
        a, b = one.config.get(key), other.config.get(key)
        if a is not None and b is not None and a != b:
            raise StageError(
                "bad-checkpoint",
                f"{one.label} and {other.label} are unlike models: {key} is {json.dumps(a)} and {json.dumps(b)} in "
                f"their config.json. Only models of one architecture can be merged.",
                str(other.folder),
            )
    if one.tied != other.tied:
        tied, free = (one, other) if one.tied else (other, one)
        raise StageError(
            "bad-checkpoint",
            f"lm_head.weight is tied to the embedding in {tied.label} and a tensor of its own in {free.label}. Untie "
            f"it where it is tied (save the model with tie_word_embeddings false), or merge models of one kind.",
            str(free.folder),
        )


def _same_tensors(one: WeightSource, other: WeightSource) -> None:
    for a, b in ((one, other), (other, one)):
        absent = [name for name in a.names if name not in b]
        if absent:
            more = f" (and {len(absent) - 1} more)" if len(absent) > 1 else ""
            raise StageError(
                "bad-checkpoint",
                f"{absent[0]}{more} is in {a.label} and not in {b.label}. Only models of one architecture can be "
                f"merged.",
                str(b.folder),
            )
    for name in one.names:
        if one.shape(name) != other.shape(name):
            grown = "embed" in name or name.endswith(("lm_head.weight", "wte.weight"))
            why = "Their vocabularies differ: resize one to the other's first." if grown else "They are unlike models."
            raise StageError(
                "bad-checkpoint",
                f"{name} is {list(one.shape(name))} in {one.label} and {list(other.shape(name))} in "
                f"{other.label}. {why}",
                str(other.folder),
            )


def _vocabularies(one: WeightSource, others: list[WeightSource]) -> list[str]:
    """Rows of the embedding must stand for the same tokens. Models without a tokenizer.json cannot be compared."""
    mine, notes = _vocabulary(one), []
    for other in others:
        theirs = _vocabulary(other)
        if mine is None or theirs is None:
            silent = one if mine is None else other
            notes.append(f"{silent.label} has no tokenizer.json, so its vocabulary could not be compared.")
            continue
        for token, number in mine.items():
            if token in theirs and theirs[token] != number:
                raise _other_token(
                    token, f"is token {number} in {one.label} and {theirs[token]} in {other.label}", other
                )
        for a, b, tokens in ((one, other, mine.keys() - theirs.keys()), (other, one, theirs.keys() - mine.keys())):
            if tokens:
                raise _other_token(min(tokens), f"is a token of {a.label} and not of {b.label}", other)
    return sorted(set(notes))


def _other_token(token: str, what: str, other: WeightSource) -> StageError:
    return StageError(
        "bad-checkpoint",
        f"{json.dumps(token, ensure_ascii=False)} {what}: the rows of their embeddings do not mean the same. Give the "
        f"models one vocabulary first.",
        str(other.folder),
    )


def _vocabulary(source: WeightSource) -> dict[str, int] | None:
    """Token → id. An adapter folder may come without a tokenizer; its base's is then its own."""
    for folder in (source.folder, source.root.folder):
        path = Path(folder) / "tokenizer.json"
        if not path.is_file():
            continue
        try:
            about = json.loads(path.read_text(encoding="utf-8"))
            vocab = about["model"]["vocab"]
            found = dict(vocab) if isinstance(vocab, dict) else {row[0]: k for k, row in enumerate(vocab)}
            return found | {row["content"]: row["id"] for row in about.get("added_tokens") or []}
        except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
            raise StageError(
                "bad-checkpoint", f"{path} cannot be read ({error}). Get the file again.", str(path)
            ) from error
    return None
