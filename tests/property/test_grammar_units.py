"""Masks of grammars whose places have tables: each token of random vocabularies is tried.

The grammars have wide places (many bytes possible), terminals whose end is open, ambiguity between
terminals, ignored terminals, and recursion; the vocabularies have tokens that cross the borders of
terminals in all ways.
"""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import constrain
from tests.reference.brute import mask_bits, tried_mask

_GRAMMARS = [
    # Words and keywords without space between them, so that a word may end anywhere.
    'start: WORD (("or" | "in" | "+") WORD)*\nWORD: /[a-z]+/\n%ignore " "',
    # Nested brackets around words and numbers.
    'start: item\nitem: WORD | NUM | "(" [item ("," item)*] ")"\n'
    "WORD: /[a-z_][a-z0-9_]*/\nNUM: /[0-9]+(\\.[0-9]+)?/\n%ignore /[ \\n]+/",
    # Strings with escapes, joined words, a terminal that is a prefix of another.
    'start: (STR | WORD | "if" start "else" start)+\nSTR: /"([^"\\\\]|\\\\.)*"/\nWORD: /[a-z]{1,3}/',
    # Left recursion and operators.
    'start: start ("-" | "--") start | "-" start | ID\nID: /[a-e0-9]+/\n%ignore /[ ]/',
    # Lookahead behind a wide terminal.
    'start: (WORD ";" | WORD)+\nWORD: /[a-z]+(?!;;)/',
    # Lookahead that is met or broken only behind the net that it is in.
    'start: item ("," item)*\nitem: WORD | "(" item NUM? ")"\nWORD: /[a-z]+(?![0-9])/\n'
    "NUM: /[0-9a-c]+(?!,)/\n%ignore / +/",
    # Text until a stop, then more of the grammar.
    'start: TEXT "<<" start ">>" TEXT | TEXT\nTEXT: /([^<>]|<[^<>])+/',
]
_PIECES = ["or", "in", "if", "else", "a", "b", "abc", "zz", "0", "12", "1.5", " ", "  ", "\n"]
_PIECES += ["(", ")", ",", '"', "\\", "-", "--", "+", ";", "<", "<<", ">>", "é", "_", "."]


def _vocabulary(seed: int, size: int) -> list[bytes]:
    rng = random.Random(seed)
    tokens = {bytes([byte]) for byte in range(32, 127)} | {"é".encode(), b"\xc3", b"\xa9", b"\n"}
    while len(tokens) < size:
        tokens.add("".join(rng.choices(_PIECES, k=rng.randint(1, 5))).encode())
    return sorted(tokens)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(_GRAMMARS), st.integers(0, 5), st.integers(0, 10**6))
def test_masks_equal_trying_every_token(grammar: str, world: int, seed: int) -> None:
    tokens = _vocabulary(world, 700)
    vocabulary = constrain.Vocabulary([*tokens, None], eos_token_ids=[len(tokens)])
    compiled = constrain.compile(constrain.Lark(grammar), vocabulary)
    matcher = compiled.matcher()
    bitmask = constrain.allocate_bitmask(1, vocabulary.size)
    rng = random.Random(seed)
    for _ in range(12):
        tried = tried_mask(matcher, vocabulary.size)
        masked = mask_bits(matcher, bitmask, vocabulary.size)
        different = np.flatnonzero(tried != masked)
        assert not len(different), (matcher.tokens, [tokens[t] for t in different[:5]])
        allowed = [t for t in np.flatnonzero(tried) if t != len(tokens)]
        if not allowed:
            break
        # Long tokens, which cross borders, as often as short ones.
        longest = max(rng.sample(allowed, min(3, len(allowed))), key=lambda t: len(tokens[t]))
        matcher.advance(int(rng.choice([longest, rng.choice(allowed)])))
