"""Random walks under the masks of every named format: they finish, and say valid calls."""

from __future__ import annotations

import random
from typing import Any

import jsonschema
import numpy as np
import pytest

import constrain
from constrain.tools.definitions import make_tools
from constrain.tools.named_formats import FORMATS
from tests.reference.tool_vocabularies import family_vocabulary

SCHEMAS: dict[str, dict[str, Any]] = {
    "search": {
        "type": "object",
        "properties": {
            "query": {"type": "string", "minLength": 1, "maxLength": 12},
            "limit": {"type": "integer", "minimum": 1, "maximum": 20},
            "exact": {"type": "boolean"},
            "sites": {"type": "array", "items": {"type": "string", "maxLength": 5}, "maxItems": 2},
            "range": {
                "type": "object",
                "properties": {"from": {"type": "number"}, "to": {"type": "number"}},
                "required": ["from"],
                "additionalProperties": False,
            },
            "kind": {"enum": ["web", "news", None, 3]},
        },
        "required": ["query", "limit"],
        "additionalProperties": False,
    },
    "search_all": {
        "type": "object",
        "properties": {"day": {"type": "string", "pattern": "^[0-9]{4}-[01][0-9]$"}},
        "additionalProperties": False,
    },
    "stop": {"type": "object", "properties": {}, "additionalProperties": False},
}
TOOLS = make_tools([{"name": name, "parameters": one} for name, one in SCHEMAS.items()])
NAMES = sorted({one.name for one in FORMATS.values()})
TOKENS = 80  # beside those that the shortest call needs


def walk(compiled: Any, rng: random.Random) -> list[int]:
    """Tokens drawn from the masks until the end, which the budget brings about."""
    vocabulary = compiled.vocabulary
    matcher = compiled.matcher()
    bitmask = constrain.allocate_bitmask(1, vocabulary.size)
    ids: list[int] = []
    needed = matcher.tokens_needed
    assert needed is not None
    for left in range(needed + TOKENS, 0, -1):
        matcher.fill_bitmask(bitmask, 0, remaining=left)
        bits = np.unpackbits(bitmask[0].view(np.uint8), bitorder="little")[: vocabulary.size]
        allowed = np.flatnonzero(bits)
        assert len(allowed), (ids, "nothing is allowed")
        # what only few texts have comes as often as letters do
        marks = [one for one in allowed if not 97 <= one <= 122]
        chosen = int(rng.choice(marks if marks and rng.random() < 0.5 else list(allowed)))
        matcher.advance(chosen)
        if chosen in vocabulary.eos_token_ids:
            return ids
        ids.append(chosen)
    assert matcher.is_accepting
    return ids


@pytest.mark.parametrize("name", NAMES)
def test_walks_end_in_valid_calls(name: str) -> None:
    form, rng = FORMATS[name], random.Random(name)
    vocabulary = family_vocabulary(form.special_tokens)
    calls = 0
    for turn in range(12):
        choice = rng.choice(["auto", "required", "search", ["search_all", "stop"]])
        reasoning = rng.choice([None, "optional", "required"]) if form.reasoning else None
        spec = constrain.ToolCalls(
            TOOLS,
            format=form,
            tool_choice=choice,
            parallel=turn % 3 > 0,
            reasoning=reasoning,
            arguments_order=rng.choice(["any", "declared"]),
            escapes=rng.choice(["plain", "any"]),
            whitespace=rng.choice(["template", "bounded"]),
        )
        compiled = constrain.compile(spec, vocabulary)
        text = vocabulary.decode(walk(compiled, rng), special_tokens=True).decode("utf-8")
        message = spec.parse(text)
        assert message.failures == (), (text, message.failures)
        if choice != "auto":
            assert message.calls, text
        if turn % 3 == 0:
            assert len(message.calls) <= 1, text
        if reasoning == "required" and not form.text:
            assert form.reasoning is not None
            assert form.reasoning.end.strip() in text
        for call in message.calls:
            calls += 1
            assert call.error is None, (text, call.error)
            jsonschema.validate(call.arguments, SCHEMAS[call.name])
            if isinstance(choice, list):
                assert call.name in choice
    assert calls >= 6
