"""A router on disk: `router.json` and `router.safetensors` hold everything needed to route, `experts/<skill>/` a copy
of each adapter. The base is named, not copied. Nothing is pickled.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from seesaw_runner.checkpoints.saving import weights_hash, write_json
from seesaw_runner.routing.asked import Arms, Asked, Router
from seesaw_runner.routing.experts import Expert
from seesaw_runner.routing.hidden import Hidden
from seesaw_runner.routing.linear import Linear, Policy
from seesaw_runner.routing.rules import KeywordRule, TagRule, TfidfRule
from seesaw_runner.routing.tfidf import Tfidf
from seesaw_runner.run_folder import StageError

FORMAT = 1
ABOUT, WEIGHTS = "router.json", "router.safetensors"


@dataclass
class SavedRouter:
    """`chosen`: the name of one of `routers`. `base`: folder of the model that the experts stand on."""

    arms: Arms
    routers: dict[str, Router]
    chosen: str
    soft: bool
    base: str
    domain_field: str
    experts: list[Path]

    def probabilities(self, asked: Sequence[Asked]) -> np.ndarray:
        return self.routers[self.chosen].probabilities(asked)


def save_router(folder: Path, saved: SavedRouter, experts: Sequence[Expert]) -> None:
    """Writes all of it into a temporary checkpoint folder. The experts' hashes are in router.json, and that text's in
    the weight file, so that the file's hash tells two routers apart that differ in anything.
    """
    tensors: dict[str, np.ndarray] = {}
    blocks = {name: _block(name, router, tensors) for name, router in saved.routers.items()}
    tfidf = next((r.features for r in saved.routers.values() if _features(r, Tfidf)), None)
    if tfidf is not None:
        tensors["tfidf.idf"] = tfidf.idf
    about = {
        "v": FORMAT,
        "chosen": saved.chosen,
        "soft": saved.soft,
        "domain_field": saved.domain_field,
        "fallback": saved.arms.fallback,
        "base": saved.base,
        "experts": [
            {
                "skill": e.skill,
                "folder": f"experts/{e.skill}",
                "label": e.label,
                "from": str(e.folder),
                "weights_hash": e.weights_hash,
            }
            for e in experts
        ],
        "routers": blocks,
        "tfidf": {"words": tfidf.terms[0], "characters": tfidf.terms[1]} if tfidf is not None else None,
    }
    for expert in experts:
        target = folder / "experts" / expert.skill
        target.mkdir(parents=True)
        for file in sorted(expert.folder.iterdir()):
            if file.is_file() and file.name.startswith("adapter_"):
                shutil.copyfile(file, target / file.name)
    write_json(folder / ABOUT, about)
    text = (folder / ABOUT).read_text(encoding="utf-8")
    # One key: safetensors writes several in no fixed order, and equal routers shall have equal hashes.
    save_file(tensors, folder / WEIGHTS, metadata={"router.json": _digest(text)})


def load_router(folder: str | Path) -> SavedRouter:
    """StageError `bad-checkpoint` for a folder that holds no router, or a damaged or newer one."""
    folder = Path(folder)
    try:
        text = (folder / ABOUT).read_text(encoding="utf-8")
        about: dict[str, Any] = json.loads(text)
        version = int(about["v"])
    except FileNotFoundError as error:
        raise _bad(folder, f"{folder} holds no router: there is no {ABOUT} in it") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _bad(folder, f"{folder / ABOUT} cannot be read ({error})") from error
    if version > FORMAT:
        raise _bad(folder, f"{folder / ABOUT} has format {version}, newer than this runner ({FORMAT}). Update Seesaw")
    try:
        with safe_open(folder / WEIGHTS, framework="np") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}
            said = (file.metadata() or {}).get("router.json")
    except (OSError, SafetensorError) as error:
        raise _bad(folder, f"{folder / WEIGHTS} cannot be read ({error}). Copy the checkpoint again") from error
    if said != _digest(text):
        raise _bad(folder, f"{ABOUT} and {WEIGHTS} in {folder} do not belong together. Copy the checkpoint again")
    arms = Arms(tuple(e["skill"] for e in about["experts"]), about["fallback"])
    tfidf = about["tfidf"] and Tfidf((about["tfidf"]["words"], about["tfidf"]["characters"]), tensors["tfidf.idf"])
    routers = {name: _router(name, block, arms, tensors, tfidf) for name, block in about["routers"].items()}
    places = [folder / e["folder"] for e in about["experts"]]
    for place, expert in zip(places, about["experts"], strict=True):
        if weights_hash(place) != expert["weights_hash"]:
            raise _bad(folder, f"The expert of {expert['skill']} in {place} was changed. Copy the checkpoint again")
    return SavedRouter(arms, routers, about["chosen"], about["soft"], about["base"], about["domain_field"], places)


def _features(router: Router, kind: type) -> bool:
    return isinstance(getattr(router, "features", None), kind)


def _block(name: str, router: Router, tensors: dict[str, np.ndarray]) -> dict[str, Any]:
    if isinstance(router, KeywordRule):
        return {"kind": router.kind, "keywords": router.keywords}
    if isinstance(router, TagRule):
        return {"kind": router.kind}
    tensors[f"{name}.weight"], tensors[f"{name}.bias"] = router.linear.weight, router.linear.bias
    if _features(router, Hidden):
        tensors[f"{name}.mean"], tensors[f"{name}.scale"] = router.features.mean, router.features.scale
    return {"kind": router.kind, "features": router.features.kind}


def _router(name: str, block: dict[str, Any], arms: Arms, tensors: dict[str, np.ndarray], tfidf) -> Router:
    if block["kind"] == "tag":
        return TagRule(arms)
    if block["kind"] == "keywords":
        return KeywordRule(arms, block["keywords"])
    linear = Linear(tensors[f"{name}.weight"], tensors[f"{name}.bias"])
    if block["kind"] == "tfidf":
        return TfidfRule(arms, tfidf, linear)
    hidden = block["features"] == "hidden"
    features = Hidden(tensors[f"{name}.mean"], tensors[f"{name}.scale"]) if hidden else tfidf
    return Policy(block["kind"], features, linear)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _bad(folder: Path, message: str) -> StageError:
    return StageError("bad-checkpoint", f"{message}.", str(folder))
