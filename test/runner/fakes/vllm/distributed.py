"""See fakes/vllm."""

from __future__ import annotations


def cleanup_dist_env_and_memory(shutdown_ray: bool = False) -> None:
    from vllm import _log

    _log(cleanup=True)
