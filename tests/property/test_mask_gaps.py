"""Blank space and digits in masks: each has tables of its own, held here to trying every token.

Tokens are made of blanks, punctuation and digits, many enough that tables take over. Real
tokenizers have runs of more than a hundred blanks; here the limits of bounded whitespace are met by
walking on inside blanks, and those of numbers by tokens of several digits.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import constrain
from tests.reference import brute

NUMBERS = [
    {"type": "integer"},
    {"type": "integer", "minimum": 15, "maximum": 40_000},
    {"type": "integer", "exclusiveMaximum": 123_456_789},
    {"type": "number", "minimum": -90, "maximum": 90},
    {"type": "number", "multipleOf": 0.01, "minimum": 0},
    {"type": "number", "multipleOf": 5},
    {"type": "number", "not": {"type": "integer"}},
    {"anyOf": [{"type": "integer", "maximum": 99}, {"type": "number", "minimum": 1000}]},
    {"oneOf": [{"minimum": 12.5}, {"multipleOf": 4}], "type": "number"},
    {"enum": [1234, 12.75, 100000]},
]
SHAPES = [
    lambda inner: {"type": "array", "items": inner},
    lambda inner: {"type": "object", "properties": {"1": inner, "12": inner}},
    lambda inner: {"additionalProperties": inner, "minProperties": 2, "type": "object"},
    lambda inner: {"prefixItems": [inner], "items": {"type": ["object", "array"]}, "minItems": 2},
    lambda inner: {"type": "array", "items": inner, "uniqueItems": True},
]
schemas = st.builds(
    lambda shape, inner: shape(inner), st.sampled_from(SHAPES), st.sampled_from(NUMBERS)
)
BLANKS = [" ", "  ", "    ", "\n", "\n\n", "\n  ", "\t", "\r\n", " " * 7, "\n" + " " * 40]
PARTS = ["{", "}", "[", "]", ",", ":", '"', '"1', "0", "12", "345", "-", ".", "e", "E+", "t", "n"]


def tokens_of(rng: random.Random, count: int) -> list[bytes]:
    """Random tokens: blanks, then parts, then blanks, each of them perhaps missing."""
    made = []
    for _ in range(count):
        parts = [rng.choice(BLANKS)] * (rng.random() < 0.5)
        parts += [rng.choice(PARTS) for _ in range(rng.randrange(4))]
        parts += [rng.choice(BLANKS)] * (rng.random() < 0.3)
        made.append("".join(parts).encode())
    # A node above many tokens behind blanks.
    made += [f'{blank}"{rng.randrange(1000)}'.encode() for blank in (" ", "\n ") for _ in range(40)]
    return made


@settings(max_examples=40, deadline=None)
@given(
    schema=schemas,
    seed=st.integers(0, 10**6),
    numbers=st.sampled_from(["any", "plain"]),
    whitespace=st.sampled_from(["bounded", "any", "compact"]),
    order=st.sampled_from(["any", "declared"]),
)
def test_masks_of_gaps_and_numbers(schema, seed, numbers, whitespace, order):
    rng = random.Random(seed)
    tokens = [bytes([i]) for i in range(256)] + tokens_of(rng, 250)
    vocabulary = constrain.Vocabulary(tokens, [len(tokens)], size=len(tokens) + 1)
    spec = constrain.JsonSchema(
        schema, numbers=numbers, whitespace=whitespace, property_order=order
    )
    matcher = constrain.compile(spec, vocabulary).matcher()
    row = constrain.allocate_bitmask(1, vocabulary.size)
    for _ in range(20):
        mask = brute.mask_bits(matcher, row, vocabulary.size)
        truth = brute.tried_mask(matcher, vocabulary.size)
        wrong = [
            (vocabulary.token_bytes(int(i)), bool(mask[i])) for i in (mask != truth).nonzero()[0]
        ]
        assert not wrong, (schema, [vocabulary.token_bytes(t) for t in matcher.tokens], wrong[:5])
        allowed = truth.nonzero()[0]
        # Digits and blanks lead to more of both, brackets soon to the end.
        onward = [t for t in allowed if t < len(tokens) and tokens[t][-1:] in b'0123456789 \n,"']
        matcher.advance(int(rng.choice(onward if onward and rng.random() < 0.9 else list(allowed))))
        if matcher.is_finished:
            return


@pytest.mark.parametrize("text", ["12", "-89", "89.5", "1e1", "0.25", "100", "3999"])
def test_digits_are_not_taken_for_granted(text):
    """Where further digits lead out of bounds, the mask says so."""
    tokens = [bytes([i]) for i in range(256)] + [str(i).encode() for i in range(100, 1000)]
    vocabulary = constrain.Vocabulary(tokens, [len(tokens)], size=len(tokens) + 1)
    row = constrain.allocate_bitmask(1, vocabulary.size)
    for inner in NUMBERS:
        spec = constrain.JsonSchema({"type": "array", "items": inner}, numbers="any")
        matcher = constrain.compile(spec, vocabulary).matcher()
        for byte in b"[" + text.encode():
            if not matcher.try_advance(byte):
                break
            mask = brute.mask_bits(matcher, row, vocabulary.size)
            assert (mask == brute.tried_mask(matcher, vocabulary.size)).all(), (inner, text)


@pytest.mark.parametrize("most", [5, 6, 7, 8, 12])
@pytest.mark.parametrize("extra", [{}, {"minLength": 1}, {"pattern": "ab|^c|d$"}])
def test_lengths_about_that_of_the_longest_token(most, extra):
    """Where no token can reach a bound on lengths, the bound is left out; not a character sooner."""
    words = [
        b"abcdef",
        b"aaaaaa",
        b'ab",',
        b"\xc3\xa9\xc3\xa9",
        b'cde"]',
        b"\\u0061",
        b"bbbbb",
        b'd"',
    ]
    tokens = [bytes([i]) for i in range(256)] + words
    vocabulary = constrain.Vocabulary(tokens, [len(tokens)], size=len(tokens) + 1)
    row = constrain.allocate_bitmask(1, vocabulary.size)
    spec = constrain.JsonSchema(
        {"type": "array", "items": {"type": "string", "maxLength": most, **extra}}
    )
    for text in (b'["', b'["abcdef', b'["b\xc3\xa9bd', b'["\\u0061a'):
        matcher = constrain.compile(spec, vocabulary).matcher()
        for byte in text:
            if not matcher.try_advance(byte):
                break
            mask = brute.mask_bits(matcher, row, vocabulary.size)
            assert (mask == brute.tried_mask(matcher, vocabulary.size)).all(), text
