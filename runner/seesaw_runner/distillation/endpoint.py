"""A teacher behind an OpenAI-compatible endpoint that returns the log-probabilities of a prompt (vLLM's extension).

Sent are token ids, never text: what is scored is exactly what the student said. The key, if one is needed, is read from
the environment and goes into the request's header only.
"""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Sequence

import torch

from seesaw_runner.distillation.teachers import Rolled, Target
from seesaw_runner.run_folder import StageError

RETRIES = 3
#: Answers of a server that has another vocabulary are noticed on this many tokens.
COMPARED = 64


class EndpointTeacher:
    """domain: for messages. spell(id): how this run's tokenizer spells a token, compared with what the server says.
    `failures`: requests that failed for good, one after another, until one succeeds.
    """

    def __init__(self, domain: str, settings: dict, *, top_k: int, vocabulary: int, spell, stopping=lambda: False):
        self.domain, self.top_k, self.vocabulary, self.spell, self.stopping = domain, top_k, vocabulary, spell, stopping
        self.url = settings["endpoint"].rstrip("/") + "/completions"
        self.name = settings["model"]
        self.timeout = float(settings.get("timeout") or 60)
        self.headers = {"Content-Type": "application/json"}
        if settings.get("key_env"):
            key = os.environ.get(settings["key_env"])
            if not key:
                raise StageError(
                    "bad-argument",
                    f"The teacher of {domain} needs the key in the environment variable {settings['key_env']}, which "
                    "is not set where the stage runs. Set it there; it is not to be written into a file.",
                    f"options.teachers.{domain}",
                )
            self.headers["Authorization"] = f"Bearer {key}"
        self.failures = 0
        self.last_error = ""
        self._compared = 0

    def score(self, rows: Sequence[Rolled]) -> list[Target | None]:
        """Targets over the teacher's likeliest tokens; None for every row when the server does not answer."""
        body = {
            "model": self.name,
            "prompt": [row.ids for row in rows],
            "max_tokens": 1,
            "temperature": 0,
            "prompt_logprobs": self.top_k,
        }
        answer = self._ask(body)
        if answer is None:
            self.failures += 1
            return [None] * len(rows)
        self.failures = 0
        choices = sorted(answer.get("choices") or [], key=lambda choice: choice.get("index", 0))
        if len(choices) != len(rows):
            raise self._error(f"answered {len(choices)} of {len(rows)} prompts")
        return [self._target(row, choice) for row, choice in zip(rows, choices, strict=True)]

    def _ask(self, body: dict) -> dict | None:
        for attempt in range(RETRIES):
            if self.stopping():
                return None
            try:
                request = urllib.request.Request(self.url, json.dumps(body).encode(), self.headers)
                with urllib.request.urlopen(request, timeout=self.timeout) as reply:
                    return json.load(reply)
            except urllib.error.HTTPError as error:
                self.last_error = f"HTTP {error.code}: {error.read(300).decode('utf-8', 'replace').strip()}"
                if 400 <= error.code < 500 and error.code not in (408, 429):
                    raise self._error(f"refuses the request ({self.last_error})") from error
            except (OSError, ValueError) as error:  # no connection, a time-out, an answer cut short
                self.last_error = f"{type(error).__name__}: {error}"
            if attempt + 1 < RETRIES:
                time.sleep(min(8.0, 0.5 * 4**attempt))
        return None

    def _target(self, row: Rolled, choice: dict) -> Target | None:
        places = choice.get("prompt_logprobs")
        if not isinstance(places, list) or len(places) != len(row.ids):
            raise self._error(
                "returns no log-probabilities of the prompt (prompt_logprobs, as vLLM has them). Let the server allow "
                "them"
            )
        ids, logprobs = [], []
        for place in places[row.start :]:
            if not place:
                return None
            best = sorted(((float(v["logprob"]), int(i), v) for i, v in place.items()), key=lambda p: -p[0])
            best = best[: self.top_k]
            for _, i, v in best:
                self._compare(i, v.get("decoded_token"))
            ids.append([i for _, i, _ in best])
            logprobs.append([p for p, _, _ in best])
        width = min(map(len, ids))
        kept = torch.tensor([line[:width] for line in logprobs]).log_softmax(-1)
        return Target(kept, torch.tensor([line[:width] for line in ids]))

    def _compare(self, token: int, spelled: str | None) -> None:
        if not 0 <= token < self.vocabulary:
            raise self._error(f"has a token {token}, and the student's vocabulary ends at {self.vocabulary - 1}")
        if spelled is None or self._compared >= COMPARED:
            return
        self._compared += 1
        ours = self.spell(token)
        # A token that is part of a character, or a special one, is spelled differently by everyone.
        if ours.strip() and "\ufffd" not in ours + spelled and ours.strip() != spelled.strip():
            raise self._error(f"spells token {token} as {spelled!r}, the student as {ours!r}: another tokenizer")

    def _error(self, what: str) -> StageError:
        return StageError(
            "bad-argument", f"The teacher of {self.domain} at {self.url} {what}.", f"options.teachers.{self.domain}"
        )
