"""vLLM in a process of its own: one JSON line in, one out.

The first line holds the keywords of `LLM`; the reply is `{"version"}`. Each further one is `{"prompts": [[id, …], …],
"params": [keywords of SamplingParams, …], "lora": [name, number, folder] | null}`; the reply `{"answers": [[[ids,
finish], …], …]}`. A failure is `{"error", "memory"}`. When the input ends, it ends.
"""

from __future__ import annotations

import json
import os
import sys

_MEMORY = ("out of memory", "no available memory for the cache", "free memory on device", "kv cache is needed")


def main() -> int:
    # What vLLM prints must not get among the replies.
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def say(reply: dict) -> None:
        replies.write(json.dumps(reply) + "\n")
        replies.flush()

    llm = None
    try:
        first = sys.stdin.readline()
        if not first:
            return 0
        import vllm

        llm = vllm.LLM(**json.loads(first))
        say({"version": getattr(vllm, "__version__", "of an unknown version")})
        for line in sys.stdin:
            say({"answers": answer(llm, json.loads(line))})
    except Exception as error:
        text = (str(error).strip().splitlines() or [type(error).__name__])[0]
        say({"error": text, "memory": is_memory(error)})
        return 1
    finally:
        release(llm)
    return 0


def answer(llm, request: dict) -> list[list]:
    """Ids and finish reason of every sample of every prompt."""
    from vllm import SamplingParams

    lora = None
    if request["lora"] is not None:
        from vllm.lora.request import LoRARequest

        lora = LoRARequest(*request["lora"])
    outputs = llm.generate(
        [{"prompt_token_ids": ids} for ids in request["prompts"]],
        [SamplingParams(**keywords) for keywords in request["params"]],
        use_tqdm=False,
        lora_request=lora,
    )
    return [[[list(one.token_ids), one.finish_reason] for one in output.outputs] for output in outputs]


def is_memory(error: BaseException) -> bool:
    """vLLM says it in several ways: CUDA's own error, no room for the cache, less free than it may take."""
    text = str(error).lower()
    return any(part in text for part in _MEMORY)


def release(llm) -> None:
    """Ends vLLM's own processes, as its documentation says (`LLM.shutdown` of newer versions, else the engine's)."""
    if llm is None:
        return
    try:
        if hasattr(llm, "shutdown"):
            llm.shutdown()
        else:
            core = getattr(getattr(llm, "llm_engine", None), "engine_core", None)
            if core is not None:
                core.shutdown()
        from vllm.distributed import cleanup_dist_env_and_memory

        cleanup_dist_env_and_memory()
    except Exception as error:  # this process ends anyway
        print(f"vLLM did not end in order: {error}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
