"""Random small grammars against an enumeration of their languages: texts, prefixes, completions."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import constrain
from constrain.specs import Gbnf
from tests.reference.brute import mask_bits, tried_mask
from tests.reference.vocabularies import byte_vocabulary, small_vocabulary

_NAMES = ["root", "x", "y", "z"]
_LONGEST = 8
Rules = dict[str, list[tuple[str, ...]]]


@st.composite
def _grammars(draw: st.DrawFn) -> Rules:
    names = _NAMES[: draw(st.integers(1, 4))]
    symbol = st.sampled_from(['"a"', '"b"', *names])
    option = st.lists(symbol, max_size=3).map(tuple)
    return {name: draw(st.lists(option, min_size=1, max_size=3)) for name in names}


def _language(rules: Rules) -> set[str]:
    """All texts of the root up to a length, by the least fixpoint."""
    found: dict[str, set[str]] = {name: set() for name in rules}
    changed = True
    while changed:
        changed = False
        for name, options in rules.items():
            for option in options:
                texts = {""}
                for symbol in option:
                    more = {symbol[1]} if symbol[0] == '"' else found[symbol]
                    texts = {a + b for a in texts for b in more if len(a) + len(b) <= _LONGEST}
                if not texts <= found[name]:
                    found[name] |= texts
                    changed = True
    return found["root"]


def _text(rules: Rules) -> str:
    return "\n".join(
        f"{name} ::= " + " | ".join(" ".join(option) or '""' for option in options)
        for name, options in rules.items()
    )


@settings(max_examples=60, deadline=None)
@given(_grammars())
def test_language_prefixes_and_completions(rules: Rules) -> None:
    language = _language(rules)
    try:
        compiled = constrain.compile(Gbnf(_text(rules)), byte_vocabulary().vocabulary)
    except constrain.UnsatisfiableError:
        assert not language
        return
    prefixes = {text[:end] for text in language for end in range(len(text) + 1)}
    for length in range(6):
        for text in map("".join, itertools.product("ab", repeat=length)):
            matcher = compiled.matcher()
            alive = all(matcher.try_advance(byte) for byte in text.encode())
            assert (alive and matcher.is_accepting) == (text in language)
            if not alive:
                assert text not in prefixes
                continue
            rest = matcher.completion(200)
            assert rest is not None
            if len(text) + len(rest) <= _LONGEST:
                assert text + rest.decode() in language


@settings(max_examples=25, deadline=None)
@given(_grammars(), st.randoms(use_true_random=False))
def test_masks_are_those_of_trying_every_token(rules: Rules, rnd: object) -> None:
    vocabulary = small_vocabulary()
    try:
        compiled = constrain.compile(Gbnf(_text(rules)), vocabulary.vocabulary)
    except constrain.UnsatisfiableError:
        return
    size = vocabulary.vocabulary.size
    row = constrain.allocate_bitmask(1, size)
    matcher = compiled.matcher()
    for _ in range(6):
        mask = mask_bits(matcher, row, size)
        assert mask.any()
        assert (mask == tried_mask(matcher, size)).all()
        allowed = [i for i in np.flatnonzero(mask) if i not in vocabulary.eos_ids]
        if not allowed:
            break
        matcher.advance(int(rnd.choice(allowed)))  # type: ignore[attr-defined]
