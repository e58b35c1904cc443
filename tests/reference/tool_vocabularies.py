"""Vocabularies for formats of tool calls, and texts with special tokens as ids."""

from __future__ import annotations

import re
from functools import cache

import constrain
from constrain.tools.formats import ToolFormat
from tests.reference.vocabularies import Tokens, UnavailableError, greedy, load

_WORDS = [
    "name",
    "arguments",
    '": "',
    '", "',
    '{"',
    '"}',
    "tool",
    "_call",
    "function",
    "get",
    "the",
    " ",
]
_FAMILIES = {
    "hermes": "tokenizer-qwen3",
    "qwen3-coder": "tokenizer-qwen3",
    "llama3-json": "tokenizer-llama3_1",
    "functionary-v3.1": "tokenizer-llama3_1",
    "functionary-v3.2": "tokenizer-llama3_1",
    "harmony": "tokenizer-gptoss",
    "deepseek-r1": "tokenizer-deepseek_v3",
    "deepseek-v3.1": "tokenizer-deepseek_v3",
    "gemma4": "tokenizer-gemma3",
    "mistral": "tekken",
    "mistral-list": "tekken",
    "mistral-call-id": "tekken",
}


@cache
def family_vocabulary(special: tuple[str, ...]) -> constrain.Vocabulary:
    """Single bytes, some words, and these special tokens; the last id ends a sequence."""
    tokens: Tokens = [bytes([one]) for one in range(256)]
    tokens += [word.encode() for word in _WORDS if len(word) > 1]
    names = {name: len(tokens) + number for number, name in enumerate(special)}
    tokens += [None] * (len(special) + 1)
    return constrain.Vocabulary(tokens, eos_token_ids=[len(tokens) - 1], special_tokens=names)


def real_vocabulary(form: ToolFormat) -> constrain.Vocabulary | None:
    """The vocabulary of a real tokenizer of the format's family, None where none is installed."""
    name = _FAMILIES.get(form.name)
    if name is None:
        return None
    try:
        return load(name).vocabulary
    except UnavailableError:
        return None


def encode(vocabulary: constrain.Vocabulary, text: str, plain: tuple[str, ...] = ()) -> list[int]:
    """Longest tokens first; special tokens as their ids, except within the texts of `plain`."""
    table = greedy(list(vocabulary.tokens))
    names = sorted(vocabulary.special_tokens, key=len, reverse=True)
    pattern = "|".join(re.escape(one) for one in (*plain, *names))
    ids: list[int] = []
    at = 0
    for found in re.finditer(pattern, text) if pattern else ():
        ids += table(text[at : found.start()])
        token_id = None if found.group() in plain else vocabulary.special_tokens[found.group()]
        ids += table(found.group()) if token_id is None else [token_id]
        at = found.end()
    return ids + table(text[at:])
