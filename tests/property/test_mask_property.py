"""Masks equal those built by trying every token, on random vocabularies, specs and walks."""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

import constrain

_PATH = Path(__file__).parents[1] / "reference" / "masks.py"
_SPEC = importlib.util.spec_from_file_location("reference_masks", _PATH)
reference = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(reference)

SCHEMAS = [
    True,
    {"type": "string", "maxLength": 3},
    {"type": "object", "properties": {"a": {"type": "string"}, "ab": {"type": "integer"}}},
    {
        "type": "object",
        "properties": {"a": {"enum": ["x", "xy", "\n"]}, "b": {"type": "array"}},
        "required": ["b"],
        "additionalProperties": False,
    },
    {"type": "array", "items": {"oneOf": [{"minLength": 2}, {"pattern": "^a"}]}},
    {"type": "array", "uniqueItems": True, "items": {"type": "string"}},
    {"propertyNames": {"maxLength": 2}, "minProperties": 2, "type": "object"},
    {"anyOf": [{"type": "number", "minimum": -3, "maximum": 12}, {"type": "null"}]},
    {"not": {"type": "object"}, "type": ["object", "boolean", "string"], "minLength": 1},
]
PATTERNS = ["(ab|a)*", "[^x]+", '"[a-c]*":?', "a{2,5}(b|é)?", ".*", "\\d+(,\\d+)*"]
ALPHABET = [*'ab"xy\\n{}[]:, 0123e-.truefalsnl', "é", "\n", "\\u00e9", '":"', '",']

specs = st.one_of(
    st.sampled_from(SCHEMAS).map(lambda s: constrain.JsonSchema(s, numbers="any")),
    st.sampled_from(PATTERNS).map(constrain.Regex),
)
pieces = st.lists(st.sampled_from(ALPHABET), min_size=1, max_size=5).map(
    lambda parts: "".join(parts).encode()
)
# Parts of characters too.
texts = st.one_of(pieces, st.tuples(pieces, st.integers(0, 2)).map(lambda p: p[0][p[1] :]))


@settings(max_examples=60, deadline=None)
@given(
    spec=specs,
    extra=st.lists(st.one_of(st.none(), texts), max_size=120),
    seed=st.integers(0, 10**6),
    padding=st.integers(0, 40),
)
def test_mask_equals_trying_every_token(spec, extra, seed, padding):
    tokens = [bytes([i]) for i in range(256)] + extra
    eos = len(tokens)
    vocabulary = constrain.Vocabulary(tokens, [eos], size=eos + 1 + padding)
    matcher = constrain.compile(spec, vocabulary).matcher()
    bitmask = constrain.allocate_bitmask(1, vocabulary.size)
    rng = random.Random(seed)
    for _ in range(25):
        bitmask[:] = -1
        try:
            matcher.fill_bitmask(bitmask)
        except constrain.UnsatisfiableError:
            assert not reference.allowed_by_trying(matcher, vocabulary.size)
            return
        allowed = reference.allowed_bits(bitmask[0])
        assert allowed == reference.allowed_by_trying(matcher, vocabulary.size)
        assert (eos in allowed) == matcher.is_accepting
        # Long tokens are where mistakes hide.
        long = [t for t in allowed if t >= 256]
        matcher.advance(rng.choice(long if long and rng.random() < 0.7 else allowed))
        if matcher.is_finished:
            return


# Where the text of a string that ends inside a token decides about the rest of the same token.
WITHIN_TOKENS = [
    True,
    {"type": "array", "uniqueItems": True},
    {"type": "array", "uniqueItems": True, "items": {"enum": ["x", "y", 1, ["x"]]}},
    {"type": "array", "not": {"uniqueItems": True}, "maxItems": 3},
    {"type": "array", "items": {"uniqueItems": True}, "uniqueItems": True},
    {"type": "array", "oneOf": [{"uniqueItems": True}, {"contains": {"const": "x"}}]},
    {"type": "object", "additionalProperties": {"type": ["integer", "array"]}},
    {"type": "object", "patternProperties": {"^a": {"type": "integer"}, "b$": {"minimum": 1}}},
    {"type": "object", "properties": {"a": True}, "maxProperties": 2, "minProperties": 2},
    {"type": "object", "propertyNames": {"enum": ["a", "b", "ab"]}},
    {"type": "object", "not": {"required": ["a"]}, "minProperties": 1},
    {"type": "array", "items": {"additionalProperties": {"type": "integer"}}, "uniqueItems": True},
]
KEYS = ["a", "b", "ab", "\\u0061", "x", ""]
member = st.tuples(st.sampled_from(KEYS), st.sampled_from(["1", '"x"', "[]", '["x","x"]'])).map(
    lambda m: f'"{m[0]}":{m[1]}'
)
item = st.sampled_from(['"x"', '"y"', '"\\u0078"', "1", "1.0", '["x"]', '{"a":1}', '{"a":1,"b":1}'])
# Several members or items, cut anywhere: a"x","x"]}  and  ":1,"a":  and the like.
crowded = st.builds(
    lambda parts, start, end: ",".join(parts)[start : -end or None].encode(),
    st.one_of(
        st.lists(member, min_size=1, max_size=3),
        st.lists(item, min_size=1, max_size=4),
        st.lists(item, min_size=2, max_size=3).map(lambda i: ["[" + ",".join(i) + "]"]),
        st.lists(member, min_size=2, max_size=3).map(lambda m: ["{" + ",".join(m) + "}"]),
    ),
    st.integers(0, 4),
    st.integers(0, 2),
)


@settings(max_examples=150, deadline=None)
@given(
    schema=st.sampled_from(WITHIN_TOKENS),
    extra=st.lists(crowded, max_size=80),
    seed=st.integers(0, 10**6),
)
def test_tokens_that_hold_several_keys_or_items(schema, extra, seed):
    tokens = [bytes([i]) for i in range(256)] + [t for t in extra if t]
    vocabulary = constrain.Vocabulary(tokens, [len(tokens)])
    spec = constrain.JsonSchema(schema, numbers="any")
    matcher = constrain.compile(spec, vocabulary).matcher()
    bitmask = constrain.allocate_bitmask(1, vocabulary.size)
    rng = random.Random(seed)
    # Starts that make a crowded token possible soon.
    for byte in rng.choice(
        [b"", b"[", b"[[", b'{"', b'["', b'["x', b'[{"', b'{"a":1,"', b'{"ab":["x']
    ):
        if not matcher.try_advance(byte):
            break
    for _ in range(20):
        bitmask[:] = -1
        matcher.fill_bitmask(bitmask)
        allowed = reference.allowed_bits(bitmask[0])
        assert allowed == reference.allowed_by_trying(matcher, vocabulary.size)
        long = [t for t in allowed if t >= 256]
        matcher.advance(rng.choice(long if long and rng.random() < 0.8 else allowed))
        if matcher.is_finished:
            return


@settings(max_examples=30, deadline=None)
@given(
    spec=specs,
    extra=st.lists(texts, max_size=60),
    seed=st.integers(0, 10**6),
)
def test_states_do_not_depend_on_how_one_got_there(spec, extra, seed):
    """Forks, rollbacks, replays and byte-wise tokenizations agree."""
    tokens = [bytes([i]) for i in range(256)] + extra
    vocabulary = constrain.Vocabulary(tokens, [len(tokens)])
    compiled = constrain.compile(spec, vocabulary)
    matcher = compiled.matcher()
    rng = random.Random(seed)
    marks: list[tuple[list[int], list[int]]] = []
    for _ in range(15):
        ids = reference.allowed_by_trying(matcher, vocabulary.size)
        if not ids or matcher.is_finished:
            break
        marks.append((matcher.tokens, ids))
        matcher.advance(rng.choice(ids))
    fork = matcher.fork()
    for tokens_then, ids in reversed(marks):
        fork.rollback(len(fork.tokens) - len(tokens_then))
        assert fork.tokens == tokens_then
        assert reference.allowed_by_trying(fork, vocabulary.size) == ids
        text = b"".join(vocabulary.tokens[t] for t in tokens_then)
        bytewise = compiled.matcher()
        assert bytewise.validate(list(text)) == len(text)
        for byte in text:
            bytewise.advance(byte)
        assert reference.allowed_by_trying(bytewise, vocabulary.size) == ids


def test_rows_at_every_offset_in_memory():
    """Rows may begin anywhere in memory that holds int32."""
    vocabulary = constrain.Vocabulary([bytes([i]) for i in range(256)], [256], size=5000)
    matcher = constrain.compile(constrain.Regex("[^x]*"), vocabulary).matcher()
    good = constrain.allocate_bitmask(1, vocabulary.size)
    matcher.fill_bitmask(good)
    memory = constrain.allocate_bitmask(1, 5000 + 64 * 32)[0]
    for offset in range(64):
        memory[:] = -1
        row = memory[offset : offset + good.shape[1]]
        matcher.fill_bitmask(row)
        assert (row == good[0]).all()
        assert (memory[:offset] == -1).all()
        assert (memory[offset + good.shape[1] :] == -1).all()
