"""Plain escapes and spaced JSON: masks and single bytes against a reference, on random walks."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import constrain
from tests.reference.json_spelling import allows, respelled
from tests.reference.masks import allowed_bits, allowed_by_trying

SCHEMAS: list[Any] = [
    True,
    {"type": "string"},
    {"type": "string", "pattern": '^[a\n"]{2,3}$'},
    {"type": "string", "pattern": "^[\\u0000-\\u001f]$"},
    {"type": "string", "pattern": "^[\\u0010-\\u0013\\u0001/]{1,2}$"},
    {"enum": ["a\\b", 'say "a"', "\n", "\u001f", "\u0000a", "é/", "\U0001f600", {"a\tb": 1}]},
    {
        "type": "object",
        "properties": {'q"': {"const": "\r\n"}, "a": {"type": "integer"}, "\u000b": {}},
        "required": ['q"'],
        "additionalProperties": False,
    },
    {"type": "object", "propertyNames": {"pattern": "^[ab\\\\]+$"}, "minProperties": 2},
    {"oneOf": [{"type": "string", "minLength": 2}, {"type": "string", "pattern": "\\n"}]},
    {"type": "array", "uniqueItems": True, "items": {"enum": ["\\", "\t", 1, [2, 3]]}},
    {"type": "array", "items": {"type": "array", "maxItems": 2}, "minItems": 1},
    {"not": {"type": "object"}, "type": ["object", "array", "string"], "maxLength": 2},
    {"patternProperties": {"^\\t": {"type": "null"}}, "additionalProperties": {"type": "boolean"}},
]
PIECES = [
    *'ab"q\\nurt/{}[]:, 0123e-.f',
    "u00",
    "1f",
    "\\u00",
    "\n",
    "é",
    '", "',
    '": ',
    '",',
    "\\\\",
]

pieces = st.lists(st.sampled_from(PIECES), min_size=1, max_size=5).map(
    lambda parts: "".join(parts).encode()
)
texts = st.one_of(pieces, st.tuples(pieces, st.integers(0, 2)).map(lambda p: p[0][p[1] :]))


@settings(max_examples=120, deadline=None)
@given(
    schema=st.sampled_from(SCHEMAS),
    escapes=st.sampled_from(["plain", "plain", "any"]),
    whitespace=st.sampled_from(["spaced", "compact", "bounded"]),
    extra=st.lists(texts, max_size=80),
    seed=st.integers(0, 10**6),
)
def test_masks_and_bytes(
    schema: Any, escapes: str, whitespace: str, extra: list[bytes], seed: int
) -> None:
    rng = random.Random(seed)
    tokens = [bytes([i]) for i in range(256)] + extra
    vocabulary = constrain.Vocabulary([*tokens, None], [len(tokens)])
    plain, spaced = escapes == "plain", whitespace == "spaced"
    spec = constrain.JsonSchema(schema, escapes=escapes, whitespace=whitespace, numbers="any")
    other = constrain.JsonSchema(schema, whitespace="any" if spaced else whitespace, numbers="any")
    matcher = constrain.compile(spec, vocabulary).matcher()
    free = constrain.compile(other, vocabulary)
    row = constrain.allocate_bitmask(1, vocabulary.size)
    text = b""

    def allowed(begun: bytes) -> bool:
        return free.matcher().validate(list(begun)) == len(begun)

    for _ in range(14):
        if matcher.is_finished:
            break
        matcher.fill_bitmask(row, 0)
        ids = allowed_bits(row[0])
        assert ids == allowed_by_trying(matcher, vocabulary.size), text
        for byte in {*rng.sample(range(256), 12), *b' ,:"\\nu01fA/'}:
            wanted = allows(text + bytes([byte]), allowed, spaced=spaced, plain=plain)
            assert (byte in ids) == wanted, (text, bytes([byte]))
        inside = [token for token in ids if token < len(tokens)]
        if not inside:
            break
        longer = [token for token in inside if token >= 256 or token in b'\\un01"']
        token = rng.choice(longer if longer and rng.random() < 0.7 else inside)
        matcher.advance(token)
        text += tokens[token]
    # the shortest way out is a text of the same spelling
    needed = matcher.tokens_needed
    assert needed is not None
    while not matcher.is_accepting:
        matcher.fill_bitmask(row, 0, remaining=needed)
        token = next(token for token in allowed_bits(row[0]) if token < len(tokens))
        matcher.advance(token)
        text += tokens[token]
        needed -= 1
    assert allows(text, allowed, spaced=spaced, plain=plain), text
    if plain:
        assert respelled(text.decode()) == text.decode()


@settings(max_examples=100, deadline=None)
@given(
    value=st.recursive(
        st.one_of(st.text(), st.none(), st.integers()),
        lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(), inner)),
        max_leaves=8,
    )
)
def test_what_libraries_write_is_read(value: Any) -> None:
    """The texts of json.dumps, and no other spelling of their strings."""
    import json

    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return  # a lone surrogate
    tokens: list[bytes | None] = [bytes([i]) for i in range(256)]
    vocabulary = constrain.Vocabulary([*tokens, None], [256])
    for whitespace, separators in (("compact", (",", ":")), ("spaced", (", ", ": "))):
        spec = constrain.JsonSchema({"const": value}, escapes="plain", whitespace=whitespace)
        text = json.dumps(value, ensure_ascii=False, separators=separators).encode()
        matcher = constrain.compile(spec, vocabulary).matcher()
        assert matcher.validate(list(text)) == len(text)
        for byte in text:
            matcher.advance(byte)
        assert matcher.is_accepting
