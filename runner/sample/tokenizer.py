"""The sample's tokenizer: byte-level BPE with 1024 entries, every digit a token of its own, and a chat template.

`{% generation %}` marks the assistant's tokens, so that TRL's `assistant_only_loss` trains on answers only. The answer
includes `<|end|>`: a model that does not learn to stop fails its check.
"""

from __future__ import annotations

import random

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from sample import world
from sample.rows import train_rows
from sample.skills import SKILLS

VOCABULARY = 1024
PAD, BOS, USER, ASSISTANT, SYSTEM, END = SPECIAL = [
    "<|pad|>",
    "<|bos|>",
    "<|user|>",
    "<|assistant|>",
    "<|system|>",
    "<|end|>",
]
MAX_LENGTH = 256
CHAT_TEMPLATE = """\
{{- bos_token }}
{%- for message in messages %}
  {%- if message['role'] == 'assistant' %}
    {{- '<|assistant|>' }}
    {%- generation %}
      {{- message['content'] + '<|end|>' }}
    {%- endgeneration %}
  {%- elif message['role'] in ['user', 'system'] %}
    {{- '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}
  {%- else %}
    {{- raise_exception('This template knows the roles system, user and assistant, not ' + message['role']) }}
  {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
  {{- '<|assistant|>' }}
{%- endif %}
"""


def build_tokenizer(seed: int) -> PreTrainedTokenizerFast:
    """Trained on the world corpus and the training rows, never on a probe."""
    rng = random.Random(f"tokenizer-{seed}")
    texts = [world.text(rng) for _ in range(6000)]
    for skill in SKILLS:
        texts += [message["content"] for row in train_rows(skill, seed) for message in row["messages"]]
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    core.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    core.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=VOCABULARY, special_tokens=SPECIAL, initial_alphabet=sorted(alphabet), show_progress=False
        ),
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core,
        pad_token=PAD,
        bos_token=BOS,
        eos_token=END,
        model_max_length=MAX_LENGTH,
        padding_side="right",
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer
