"""Which expert answers a prompt: `python -m seesaw_runner.routing CHECKPOINT "prompt text" [--tag SKILL]`.

The base model is only loaded where the router sees hidden states. Exit code 1: the checkpoint cannot be used.
"""

from __future__ import annotations

import argparse
import json
import sys

from seesaw_runner.routing.asked import Asked
from seesaw_runner.routing.checkpoint import SavedRouter, load_router
from seesaw_runner.routing.hidden import Hidden
from seesaw_runner.run_folder import StageError


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m seesaw_runner.routing", description=(__doc__ or "").partition(":")[0] + "."
    )
    parser.add_argument("checkpoint", help="a checkpoint folder of a router stage")
    parser.add_argument("prompt", help="what a person would ask")
    parser.add_argument("--tag", help="what the prompt says it is about; the rule `tag` goes by it")
    parser.add_argument("--router", choices=("rule", "policy"), help="not the chosen one, but this one")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of lines")
    given = parser.parse_args(argv)
    try:
        saved = load_router(given.checkpoint)
        name = given.router or saved.chosen
        if name not in saved.routers:
            raise StageError("bad-argument", f"This checkpoint has no {name}; it has {', '.join(saved.routers)}.")
        router = saved.routers[name]
        asked = Asked(given.prompt, _ids(saved, router, given.checkpoint, given.prompt), given.tag)
        found = router.probabilities([asked])[0]
    except StageError as error:
        print(error, file=sys.stderr)
        return 1
    arms = saved.arms.names
    best = arms[int(found.argmax())]
    if given.json:
        probabilities = {arm: float(p) for arm, p in zip(arms, found, strict=True)}
        print(json.dumps({"router": name, "expert": best, "soft": saved.soft, "probabilities": probabilities}))
        return 0
    who = "the base model answers" if best not in saved.arms.skills else f"the expert of {best} answers"
    print(f"{who}{' most' if saved.soft else ''} ({name}: {router.kind})")
    for k in found.argsort()[::-1]:
        print(f"  {found[k]:6.1%}  {arms[k]}")
    return 0


def _ids(saved: SavedRouter, router, folder: str, text: str) -> list[int]:
    """The prompt as tokens where the router needs them; then it also gets the base model to look through."""
    features = getattr(router, "features", None)
    if not isinstance(features, Hidden):
        return []
    from seesaw_runner.routing.hidden import mean_states
    from seesaw_runner.scoring.causal_lm import CausalLM
    from seesaw_runner.scoring.encode import Encoder
    from seesaw_runner.training.device import choose
    from seesaw_runner.training.loading import load_model, load_tokenizer

    device = choose()
    tokenizer = load_tokenizer(saved.base)
    lm = CausalLM(load_model(saved.base, device.dtype, device.torch))
    features.states = lambda ids: mean_states(lm, ids, 1)
    row = Encoder(tokenizer).prompt({"messages": [{"role": "user", "content": text}]})
    if row.reason is not None:
        raise StageError("bad-data", f"The prompt cannot be read: {row.reason}", folder)
    return row.prompt_ids


if __name__ == "__main__":
    sys.exit(main())
