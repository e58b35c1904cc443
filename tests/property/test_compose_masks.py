"""Random constraints with JSON and special tokens inside, through masks: every text is accepted or
refused as it literally means, however it is cut into tokens, and every mask is that of trying."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import constrain
from constrain import Choice, JsonSchema, OneOf, Regex, Repeat, Sequence, Text, Token, TokenRange
from tests.reference.brute import mask_bits, tried_mask
from tests.reference.composition import accepts, special

_TEXTS = [
    "a",
    "b",
    "1",
    "2",
    '"',
    "[",
    "]",
    ",",
    " ",
    "ab",
    "ba",
    "]a",
    '"a',
    "1,",
    '",',
    "a1",
    "b[",
]
_TOKENS: list[bytes | None] = [*(text.encode() for text in _TEXTS), b"\xc3", b"\xa9", "aé".encode()]
_X = len(_TOKENS)
_VOCABULARY = constrain.Vocabulary(
    [*_TOKENS, None, None, None, None],
    [_X + 3],
    special_tokens={"<x>": _X, "<y>": _X + 1, "<z>": _X + 2, "<end>": _X + 3},
)
_SCHEMAS = [
    {"type": "integer"},
    {"const": "a"},
    {"type": "array", "items": {"enum": [1, "a"]}, "maxItems": 2},
    {"anyOf": [{"type": "string", "maxLength": 1}, {"const": [1]}]},
]
_LEAVES = (
    st.sampled_from(["a", "b", "é", "1", ",", "", '"'])
    | st.sampled_from(["a*", "a|ab", "(?:1|a)*1", "é?b", '"[^"]*"']).map(Regex)
    | st.just(Choice(["a", "ab", "[1"]))
    | st.sampled_from(_SCHEMAS).map(lambda schema: JsonSchema(schema, whitespace="compact"))
    | st.sampled_from([Token(_X), Token(_X + 1), TokenRange(_X, _X + 2)])
    | st.sampled_from(
        [
            Text(until="ab"),
            Text(until=Token(_X)),
            Text(until=["]", Token(_X + 1)], max_chars=1),
            Text(excluding="a1"),
        ]
    )
)


def _around(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=2, max_size=3)
    repeats = st.builds(
        lambda part, least, more, separator: Repeat(
            part, least, None if more is None else least + more, separator
        ),
        inner,
        st.integers(0, 1),
        st.none() | st.integers(0, 2),
        st.none() | inner,
    )
    return several.map(lambda parts: Sequence(*parts)) | several.map(lambda p: OneOf(*p)) | repeats


_SPECS = st.recursive(_LEAVES, _around, max_leaves=6).map(lambda part: Sequence(part))


def _text(ids: list[int]) -> str | None:
    """The text of tokens, with specials as characters; None if it is not UTF-8."""
    data = b""
    for token_id in ids:
        data += _TOKENS[token_id] or b"" if token_id < _X else special(token_id).encode()
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


@settings(max_examples=120, deadline=None)
@given(_SPECS, st.randoms(use_true_random=False))
def test_masks_and_languages(spec: Any, rnd: random.Random) -> None:
    try:
        compiled = constrain.compile(spec, _VOCABULARY)
    except constrain.UnsatisfiableError:
        for _ in range(50):
            text = _text(rnd.choices(range(_X + 3), k=rnd.randrange(4)))
            assert text is None or not accepts(spec, text)
        return
    size = _VOCABULARY.size
    row = constrain.allocate_bitmask(1, size)
    for walk in range(3):
        matcher = compiled.matcher()
        ids: list[int] = []
        for _ in range(7):
            mask = mask_bits(matcher, row, size)
            assert (mask == tried_mask(matcher, size)).all(), ids
            text = _text(ids)
            if text is not None:
                assert matcher.is_accepting == accepts(spec, text), text
            allowed = [i for i in np.flatnonzero(mask) if i != _X + 3]
            if not allowed:
                break
            # What is forbidden must lead to no text: a short look is enough to catch mistakes.
            if text is not None and walk == 0:
                for token_id in range(_X + 3):
                    longer = _text([*ids, token_id])
                    if longer is not None and not mask[token_id]:
                        assert not accepts(spec, longer), longer
            ids.append(int(rnd.choice(allowed)))
            matcher.advance(ids[-1])
        _check_splittings(compiled, spec, ids, rnd)


def _check_splittings(compiled: Any, spec: Any, ids: list[int], rnd: random.Random) -> None:
    """Other tokens for the same bytes are as good."""
    data = b"".join((_TOKENS[i] or b"") if i < _X else b"\xff" + i.to_bytes(3, "big") for i in ids)
    spelled = {token: i for i, token in enumerate(_TOKENS) if token}
    spelled.update({b"\xff" + i.to_bytes(3, "big"): i for i in range(_X, _X + 3)})
    matcher = compiled.matcher()
    at = 0
    while at < len(data):
        options = [token for token in spelled if data.startswith(token, at)]
        token = rnd.choice(sorted(options))
        assert matcher.try_advance(spelled[token]), (ids, data[:at], token)
        at += len(token)
    text = _text(ids)
    if text is not None:
        assert matcher.is_accepting == accepts(spec, text)
