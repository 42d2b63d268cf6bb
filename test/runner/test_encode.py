"""Masks, prompts and byte offsets: generation block, prefix comparison, seams, split characters, marks in user text."""

import pytest
from conftest import chat
from seesaw_runner.scoring.encode import Encoder
from seesaw_runner.scoring.tokenbytes import TokenBytes

PLAIN_CHATML = (
    "{% for m in messages %}<|user|>{{ m['role'] + '\n' + m['content'] }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|user|>assistant\n{% endif %}"
)


@pytest.fixture
def other_template(tokenizer):
    """A copy of the tokenizer with another template."""
    import copy

    def make(template):
        new = copy.deepcopy(tokenizer)
        new.chat_template = template
        return new

    return make


def text_of(tokenizer, row):
    return [tokenizer.decode([row.ids[p]]) for p in row.scored]


def test_generation_block(tokenizer):
    encoder = Encoder(tokenizer)
    row = encoder.encode(chat("say red", "red cat"))
    assert encoder.method == "generation-block" and row.reason is None and row.note is None
    assert "".join(text_of(tokenizer, row)) == "red cat<|end|>" and row.ends[-2:] == [7, 7]
    assert row.ids[: row.scored[0]] == row.prompt_ids and row.prompt.endswith("<|assistant|>")


def test_only_the_last_answer_of_a_probe_but_all_of_a_training_row(tokenizer):
    value = {"messages": [*chat("a", "red")["messages"], *chat("b", "cat")["messages"]]}
    encoder = Encoder(tokenizer)
    assert "".join(text_of(tokenizer, encoder.encode(value))) == "cat<|end|>"
    assert "".join(text_of(tokenizer, encoder.encode(value, last_only=False))) == "red<|end|>cat<|end|>"


def test_prefix_comparison_without_a_block(other_template):
    tokenizer = other_template(PLAIN_CHATML)
    encoder = Encoder(tokenizer)
    value = {"messages": [*chat("a", "red")["messages"], *chat("b", "cat")["messages"]]}
    row = encoder.encode(value, last_only=False)
    assert (
        encoder.method == "prefix" and "".join(text_of(tokenizer, row)) == "red<|end|>cat<|end|>"
    )  # never the newline behind the mark


def test_generation_prompt_that_is_no_prefix(other_template):
    """Case T03: the generation prompt opens <think>; cutting at its length would score nothing."""
    tokenizer = other_template(PLAIN_CHATML.replace("assistant\n{% endif", "assistant\n<think>\n{% endif"))
    row = Encoder(tokenizer).encode(chat("a", "four"))
    assert "".join(text_of(tokenizer, row)) == "four<|end|>" and "differ from index" in row.note
    assert len(row.prompt_ids) > row.scored[0]


def test_token_across_the_seam(tokenizer):
    """Case T08: the blank at the prompt's end joins the first word of the answer."""
    row = Encoder(tokenizer).encode({"prompt": "say ", "completion": "red"})
    joint = tokenizer("say red")["input_ids"]
    assert row.ids == [*joint, 4] and "seam" in row.note and "blank" in row.note
    assert row.scored[0] == next(k for k, i in enumerate(tokenizer("say ")["input_ids"]) if i != joint[k])
    assert row.reference == "red" and row.ends[-1] == 3


def test_parts_of_characters(tokenizer):
    """Case T07: byte offsets grow inside a character, and the bytes join to the text."""
    text = "ok 😀 café ²"
    row = Encoder(tokenizer).encode(chat("x", text))
    data = text.encode()
    assert row.reference == text and row.ends[-1] == len(data) == row.ends[-2] and row.ends == sorted(row.ends)
    spell = TokenBytes(tokenizer)
    assert b"".join(spell(row.ids[p]) for p in row.scored[:-1]) == data
    starts = [0, *row.ends[:-1]]
    assert all(
        data[a:b] == spell(row.ids[p]) for a, b, p in zip(starts[:-1], row.ends[:-1], row.scored[:-1], strict=False)
    )


def test_a_mark_typed_by_a_user_is_text(tokenizer):
    row = Encoder(tokenizer).encode(chat("stop at <|end|> please", "red"))
    assert row.reason is None and row.ids.count(4) == 2  # one after each turn, none inside the user's text
    answer = Encoder(tokenizer).encode(chat("x", "the mark is <|end|> so"))
    assert answer.reference == "the mark is <|end|> so" and answer.ids.count(4) == 2


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ([1], "known shapes"),
        ({"messages": [{"role": "user", "content": "x"}]}, "no assistant"),
        (chat("x", ""), None),
        ({"prompt": "", "completion": ""}, "no token"),
    ],
)
def test_rows_that_cannot_be_used_say_why(tokenizer, value, reason):
    row = Encoder(tokenizer).encode(value)
    assert (row.reason is None) if reason is None else (reason in row.reason)


def test_template_errors_belong_to_the_row(other_template):
    template = (
        "{% if messages[0]['content'] == 'bad' %}{{ raise_exception('Roles must alternate') }}{% endif %}"
        + PLAIN_CHATML
    )
    good, bad = Encoder(other_template(template)).encode_all([chat("fine", "red"), chat("bad", "red")])
    assert good.reason is None and "rejects this row: Roles must alternate" in bad.reason


def test_max_length(tokenizer):
    encoder = Encoder(tokenizer, max_length=8)
    assert "max_length = 8" in encoder.encode(chat("x" * 40, "red")).reason
    row = encoder.encode(chat("s", "red cat sun map tree lake bird"))
    assert len(row.ids) == 8 and "Cut" in row.note


def test_end_token_counts_even_when_it_is_the_pad_token(other_template):
    """Case T02: masks follow positions, not ids."""
    tokenizer = other_template(None)
    tokenizer.pad_token = tokenizer.eos_token
    row = Encoder(tokenizer).encode({"prompt": "say", "completion": " red"})
    assert row.ids[row.scored[-1]] == tokenizer.eos_token_id
