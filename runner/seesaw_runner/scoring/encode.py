"""Chat rows → token ids and a mask of the tokens that are scored or trained.

The mask comes from the template's `{% generation %}` block when it has one. Otherwise the ids of the prompt (rendered
with the generation prompt) are compared with the ids of the whole row: scoring starts at the first differing index.
Cutting at `len(prompt)` would be wrong whenever the generation prompt is no prefix of the whole (it opens `<think>`),
or a token spans the seam. What a row cannot do is said on the row; the others go on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from seesaw_runner.data.row_shapes import row_format, to_messages
from seesaw_runner.scoring.tokenbytes import TokenBytes


@dataclass
class EncodedRow:
    """One row. `ids`: the whole sequence up to the last scored token. `scored`: positions in `ids`, ascending, never 0.

    `prompt_ids`: what a generation starts from. `reference`: the answer's text; `ends`: end of each scored token in the
    reference's UTF-8 bytes. `reason` is set when the row cannot be used; `note` when it can but something is worth
    saying. `group`: what the batches of a training are balanced by, where they are.
    """

    ids: list[int] = field(default_factory=list)
    scored: list[int] = field(default_factory=list)
    prompt_ids: list[int] = field(default_factory=list)
    prompt: str = ""
    reference: str = ""
    ends: list[int] = field(default_factory=list)
    reason: str | None = None
    note: str | None = None
    cut: bool = False
    group: str | None = None


class RowError(ValueError):
    """This row cannot be encoded; the message is the reason shown next to it."""


def messages_of(value: Any) -> list[dict] | tuple[str, str]:
    """The chat of a row, or `(prompt, answer)` when the row is plain text (no template, as TRL does it).

    `preference` rows use the chosen answer. RowError says what is missing.
    """
    kind = row_format(value)
    if kind == "text":
        return "", value["text"]
    if kind == "prompt-completion" and isinstance(value["prompt"], str) and isinstance(value["completion"], str):
        return value["prompt"], value["completion"]
    if kind in ("unknown", "not-an-object"):
        raise RowError(
            "The row has none of the known shapes (messages, prompt and completion, chosen, conversations, "
            "instruction, text)."
        )
    turns = to_messages(value)
    if not any(turn["role"] == "assistant" for turn in turns):
        raise RowError("The row has no assistant message, so there is nothing to score or train on.")
    return turns


class Encoder:
    """Encodes rows with one tokenizer. `method` is `generation-block` or `prefix`, one for all rows."""

    def __init__(self, tokenizer, max_length: int | None = None):
        self.tokenizer = tokenizer
        self.max_length = max_length
        self.bytes = TokenBytes(tokenizer)
        template = tokenizer.chat_template
        text = template if isinstance(template, str) else ""
        self.method = "generation-block" if re.search(r"\{%-?\s*generation\s*-?%\}", text) else "prefix"
        specials = sorted(
            {str(t.content) for t in tokenizer.added_tokens_decoder.values() if t.special}, key=len, reverse=True
        )
        self._special_text = re.compile("|".join(map(re.escape, specials))) if specials else None

    # ---- one row

    def encode(self, value: Any, *, last_only: bool = True) -> EncodedRow:
        """Encodes one row. `last_only`: only the last assistant turn is scored (probes); otherwise every one
        (training).
        """
        try:
            chat = messages_of(value)
            row = self._plain(*chat) if isinstance(chat, tuple) else self._chat(chat, value, last_only)
            self._must_have_embeddings(row.ids)
            return self._finish(row)
        except RowError as error:
            return EncodedRow(reason=str(error))

    def _must_have_embeddings(self, ids: Sequence[int]) -> None:
        absent = getattr(self.tokenizer, "without_embedding", frozenset())
        found = next((i for i in ids if i in absent), None) if absent else None
        if found is not None:
            text = self.tokenizer.convert_ids_to_tokens(found)
            raise RowError(f"The row has the token {text} (id {found}), for which the model has no embedding.")

    def encode_all(self, values: Sequence[Any], *, last_only: bool = True) -> list[EncodedRow]:
        return [self.encode(v, last_only=last_only) for v in values]

    def prompt(self, value: Any) -> EncodedRow:
        """What a generation for this row starts from: `prompt_ids` and `prompt`, whether or not the row has an answer.

        The answer, if there is one, is the last assistant turn; it and what follows are left out.
        """
        try:
            row = self._prompt(value)
            self._must_have_embeddings(row.prompt_ids)
            return row
        except RowError as error:
            return EncodedRow(reason=str(error))

    def _prompt(self, value: Any) -> EncodedRow:
        if row_format(value) in ("unknown", "not-an-object"):
            messages_of(value)  # says what is missing
        text = value.get("prompt")
        if (
            isinstance(text, str)
            and isinstance(value.get("completion", ""), str)
            and not isinstance(value.get("chosen"), list)
        ):
            ids = self.tokenizer(text, add_special_tokens=True)["input_ids"]
            while ids and ids[-1] == self.tokenizer.eos_token_id:
                ids = ids[:-1]
            return EncodedRow(prompt_ids=list(ids), prompt=text)
        if not self.tokenizer.chat_template:
            raise RowError(
                "The tokenizer has no chat template. Add one to the base model, or use prompt and completion texts."
            )
        messages = to_messages(value)
        answers = [k for k, m in enumerate(messages) if m["role"] == "assistant"]
        messages = messages[: answers[-1]] if answers else messages
        if not messages:
            raise RowError("The row has no turn before its answer, so there is nothing to continue.")
        tools = value.get("tools") if isinstance(value.get("tools"), list) else None
        rendered = self._render(messages, tools, generation_prompt=True)
        if self._special_text and any(self._special_text.search(str(m.get("content"))) for m in messages):
            return EncodedRow(prompt_ids=self._piecewise(rendered, messages)[0], prompt=rendered)
        return EncodedRow(prompt_ids=self._tokens(rendered), prompt=rendered)

    # ---- plain text

    def _plain(self, prompt: str, answer: str) -> EncodedRow:
        """Prompt and answer without a template: joined, closed by the end token, split where the ids part."""
        whole = self.tokenizer(prompt + answer, add_special_tokens=True)["input_ids"]
        eos = self.tokenizer.eos_token_id
        if eos is not None and (not whole or whole[-1] != eos):
            whole = [*whole, eos]
        head = self.tokenizer(prompt, add_special_tokens=True)["input_ids"] if prompt else whole[:0]
        if head and head[-1] == eos:
            head = head[:-1]
        start = _common_prefix(head, whole)
        row = EncodedRow(
            ids=whole, scored=list(range(start, len(whole))), prompt_ids=whole[:start], prompt=prompt, reference=answer
        )
        if start < len(head):
            blank = " The prompt ends in a blank." if prompt[-1:].isspace() else ""
            row.note = (
                f"A token spans the seam between prompt and answer (index {start}); it is scored with the "
                f"answer.{blank}"
            )
        return row

    # ---- chat

    def _chat(self, messages: list[dict], value: dict, last_only: bool) -> EncodedRow:
        if not self.tokenizer.chat_template:
            raise RowError(
                "The tokenizer has no chat template. Add one to the base model, or use prompt and completion texts."
            )
        last = max(k for k, m in enumerate(messages) if m["role"] == "assistant")
        messages = messages[: last + 1]
        tools = value.get("tools") if isinstance(value.get("tools"), list) else None
        # Only probes are continued from their prompt; rendering it for every training row would double the work.
        prompt_text = self._render(messages[:last], tools, generation_prompt=True) if last and last_only else ""
        if self._special_text and any(self._special_text.search(str(m.get("content"))) for m in messages):
            ids, mask = self._piecewise(self._render(messages, tools), messages)
            prompt_ids = ids[: _last_run(mask)[0]]
        elif self.method == "generation-block":
            ids, mask = self._by_block(messages, tools)
            prompt_ids = self._tokens(prompt_text)
        else:
            return self._by_prefix(messages, tools, self._render(messages, tools), prompt_text, last_only)
        if not any(mask):
            raise RowError("The chat template marks no assistant token in this row ({% generation %} around nothing).")
        start, end = _last_run(mask)
        scored = range(start, end) if last_only else (k for k, m in enumerate(mask) if m)
        row = EncodedRow(ids=ids, scored=list(scored), prompt_ids=prompt_ids, prompt=prompt_text)
        row.reference = str(messages[-1]["content"])
        if last_only and prompt_ids != ids[:start]:
            same = _common_prefix(prompt_ids, ids)
            if same < len(prompt_ids):
                row.note = f"The generation prompt is no prefix of the whole row: the ids differ from index {same} on."
        return row

    def _render(self, messages: list[dict], tools, generation_prompt: bool = False) -> str:
        try:
            return self.tokenizer.apply_chat_template(
                messages, tools=tools, tokenize=False, add_generation_prompt=generation_prompt
            )
        except Exception as error:
            raise _rejected(error) from error

    def _tokens(self, text: str) -> list[int]:
        return self.tokenizer(text, add_special_tokens=False)["input_ids"]

    def _by_block(self, messages: list[dict], tools) -> tuple[list[int], list[int]]:
        try:
            out = self.tokenizer.apply_chat_template(
                messages, tools=tools, tokenize=True, return_dict=True, return_assistant_tokens_mask=True
            )
        except Exception as error:
            raise _rejected(error) from error
        return list(out["input_ids"]), list(out["assistant_masks"])

    def _by_prefix(self, messages, tools, text, prompt_text, last_only) -> EncodedRow:
        """Scored spans by comparing ids; see the module's head. The end mark counts, blank text after it does not."""
        ids = self._tokens(text)
        scored: list[int] = []
        note = None
        turns = [k for k, m in enumerate(messages) if m["role"] == "assistant"]
        for k in turns[-1:] if last_only else turns:
            upto = ids if k == len(messages) - 1 else self._tokens(self._render(messages[: k + 1], tools))
            if upto != ids[: len(upto)] and _common_prefix(upto, ids) < len(upto) - 1:
                note = f"Assistant message {k + 1} is rendered differently once more messages follow; it is not scored."
                continue
            before = self._tokens(self._render(messages[:k], tools, generation_prompt=True)) if k else []
            start = _common_prefix(before, upto)
            if start < len(before):
                note = f"The generation prompt is no prefix of the whole row: the ids differ from index {start} on."
            scored += range(start, self._trim(upto, start))
        prompt_ids = self._tokens(prompt_text)
        return EncodedRow(ids, scored, prompt_ids, prompt_text, str(messages[-1]["content"]), note=note)

    def _trim(self, ids: list[int], start: int) -> int:
        """End of the span: just behind its last special token when only blanks follow it."""
        end = len(ids)
        while end > start and ids[end - 1] not in self.bytes.special and not self.bytes(ids[end - 1]).strip():
            end -= 1
        return end if end > start and ids[end - 1] in self.bytes.special else len(ids)

    def _piecewise(self, text: str, messages: list[dict]) -> tuple[list[int], list[int]]:
        """A message that contains a mark such as `<|end|>` as text: the contents are tokenized with the marks switched
        off.

        Tokens never span a seam here, so such rows may differ by one token from a joint tokenization; nothing else is
        safe.
        """
        ids: list[int] = []
        mask: list[int] = []
        at = 0
        for message in messages:
            content = str(message["content"])
            found = text.find(content, at)
            if found < 0:
                raise RowError(
                    "A message contains a special token as text, and the template changes the message; cannot "
                    "keep them apart."
                )
            self._append(ids, mask, text[at:found], 0)
            scored = message["role"] == "assistant"
            plain = self.tokenizer(content, add_special_tokens=False, split_special_tokens=True)["input_ids"]
            ids += plain
            mask += [int(scored)] * len(plain)
            at = found + len(content)
            if scored:  # the end mark belongs to the answer
                mark = self._special_text.match(text, at)
                if mark:
                    self._append(ids, mask, mark[0], 1)
                    at = mark.end()
        self._append(ids, mask, text[at:], 0)
        return ids, mask

    def _append(self, ids: list[int], mask: list[int], text: str, scored: int) -> None:
        if text:
            new = self._tokens(text)
            ids += new
            mask += [scored] * len(new)

    # ---- both

    def _finish(self, row: EncodedRow) -> EncodedRow:
        """Drops what cannot be predicted (index 0), cuts to `max_length`, finds byte offsets."""
        limit = self.max_length or len(row.ids)
        kept = [k for k in row.scored if 0 < k < limit]
        if not kept:
            if row.scored and row.scored[0] >= limit:
                raise RowError(
                    f"The answer starts behind max_length = {limit} tokens. Raise max_length or shorten the prompt."
                )
            raise RowError("The row has no token to score: its answer is empty.")
        if row.scored[-1] >= limit:
            row.cut = True
            row.note = f"Cut to max_length = {limit} tokens ({len(row.ids)} were given)."
        row.scored = kept
        row.ids = row.ids[: kept[-1] + 1]
        row.reference, row.ends = self._byte_ends([row.ids[k] for k in row.scored], row.reference)
        return row

    def _byte_ends(self, ids: list[int], reference: str) -> tuple[str, list[int]]:
        """End offset of each token in the reference's bytes.

        When the tokens spell something else than the row's text (a template that trims, a cut row, a reasoning block),
        the reference becomes what the tokens spell, so that offsets always fit the text shown.
        """
        pieces = [b"" if i in self.bytes.special else self.bytes(i) for i in ids]
        spelled = b"".join(pieces)
        wanted = reference.encode("utf-8", "replace")
        lead = spelled.find(wanted) if wanted and wanted in spelled else -1
        if lead < 0 or spelled[:lead].strip() or spelled[lead + len(wanted) :].strip():
            wanted, lead = spelled, 0
            reference = spelled.decode("utf-8", "replace")
            if (
                reference.encode("utf-8", "replace") != spelled
            ):  # cut inside a character: offsets refer to whole characters
                wanted = reference.encode("utf-8", "replace")
        ends, total = [], 0
        for piece in pieces:
            total += len(piece)
            ends.append(min(max(total - lead, 0), len(wanted)))
        return reference, ends


def _rejected(error: Exception) -> RowError:
    """Templates raise whatever they like, also on purpose (raise_exception)."""
    return RowError(
        f"The chat template rejects this row: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
    )


def _common_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    """Number of leading ids that agree."""
    n = min(len(a), len(b))
    for k in range(n):
        if a[k] != b[k]:
            return k
    return n


def _last_run(mask: Sequence[int]) -> tuple[int, int]:
    """Start and end of the last run of ones; (0, 0) when there is none."""
    end = len(mask)
    while end and not mask[end - 1]:
        end -= 1
    start = end
    while start and mask[start - 1]:
        start -= 1
    return start, end
