"""Names that torch.compile and DistributedDataParallel have put a prefix before: read without it, and said."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seesaw_runner.weights.names import WRAPPERS

if TYPE_CHECKING:
    from seesaw_runner.checkpoints.files import Checkpoint

_MAKERS = {"_orig_mod": "torch.compile", "module": "DistributedDataParallel"}


def prefixes(names) -> dict[str, int]:
    """Prefix → how many of the names begin with it; those without one are not counted."""
    found: dict[str, int] = {}
    for name in names:
        match = WRAPPERS.match(name)
        if match:
            found[match[0]] = found.get(match[0], 0) + 1
    return found


def check_wrappers(checkpoint: Checkpoint) -> None:
    """Adds a finding: a note where all names have one prefix, a warning where they are mixed."""
    found = prefixes(checkpoint.tensors)
    if not found:
        return
    names = " and ".join(found)
    makers = " and ".join(maker for part, maker in _MAKERS.items() if part in names)
    count, total = sum(found.values()), len(checkpoint.tensors)
    if count == total and len(found) == 1:
        checkpoint.info(
            f"the names of its tensors begin with {names}, which {makers} adds; they are read without it",
            "Nothing has to be done; to save them without it, save the model inside of the wrapper",
        )
        return
    checkpoint.warn(
        f"the names of {count} of its {total} tensors begin with {names}, which {makers} adds, and the others do not; "
        "all are read without it",
        "Make sure that all tensors are of one save",
    )
