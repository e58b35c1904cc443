"""Masks of a tool call grammar in large vocabularies, compared with trying every token.

Free text, a special token, JSON of three schemas between texts of the grammar: string values whose
end is the end of the document, keys and items that may not repeat, numbers, several documents that
begin alike, and text that may follow a document in two ways.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import constrain
from constrain import JsonSchema, OneOf, Repeat, Sequence, Text, Token
from tests.reference.brute import describe_difference, mask_bits, tried_mask
from tests.reference.vocabularies import TestVocabulary, greedy

_SEARCH = {
    "type": "object",
    "properties": {"query": {"type": "string"}, "limit": {"type": "integer", "maximum": 50}},
    "required": ["query"],
    "additionalProperties": False,
}
_SEND = {
    "type": "object",
    "properties": {
        "to": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        "urgent": {"type": "boolean"},
    },
    "required": ["to"],
    "additionalProperties": False,
}
_SET = {"type": "object", "additionalProperties": {"type": ["string", "number"]}}
_CALLS = [
    '{"name": "search", "arguments": {"query": "what \\"is\\" café }", "limit": 12}}',
    '{"name": "send", "arguments": {"to": ["a@b.c", "d"], "urgent": true}}',
    '{"name": "set", "arguments": {"temperature": 20.5, "mode": "eco\\u00e9"}}',
    '{"name": "say", "arguments": "hello, you}"} and done',
    '"any of two"',
]


def _spec(special: int) -> Any:
    def tool(name: str, schema: Any) -> Any:
        return Sequence(f'{{"name": "{name}", "arguments": ', JsonSchema(schema), "}")

    said = Sequence(tool("say", {"type": "string"}), Repeat(" and done", 0, 1))
    either = OneOf(JsonSchema({"type": "string"}), JsonSchema({"type": ["string", "integer"]}))
    tools = OneOf(tool("search", _SEARCH), tool("send", _SEND), tool("set", _SET), said, either)
    call = Sequence(tools, Repeat("\n", 0, 2))
    return Sequence(Text(until=Token(special)), Repeat(call, 1, None, Token(special)))


@pytest.mark.parametrize("name", ["deepseek", "sentencepiece"])
def test_masks_of_tool_calls(name: str, load_vocabulary: Callable[[str], TestVocabulary]) -> None:
    words = load_vocabulary(name)
    vocabulary = words.vocabulary
    encode = greedy(words.tokens)
    silent = [i for i, text in enumerate(vocabulary.tokens) if text is None]
    special = next(i for i in silent if i not in vocabulary.eos_token_ids)
    matcher = constrain.compile(_spec(special), vocabulary).matcher()
    rng = random.Random(7)
    tokens = encode("Let me see.")
    for call in _CALLS:
        tokens += [special, *encode(call)]
    checked = set(rng.sample(range(len(tokens)), 14)) | {0, len(tokens)}
    bitmask = constrain.allocate_bitmask(1, vocabulary.size)
    for at, token in enumerate([*tokens, None]):
        mask = mask_bits(matcher, bitmask, vocabulary.size)
        if at in checked:
            truth = tried_mask(matcher, vocabulary.size)
            difference = describe_difference(mask, truth, words)
            assert np.array_equal(mask, truth), (matcher.tokens, difference)
        if token is not None:
            assert mask[token], (matcher.tokens, token)
            matcher.advance(token)
    assert matcher.is_accepting
