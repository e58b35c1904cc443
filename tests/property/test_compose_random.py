"""Random constraints of texts, patterns and choices against a judge of their meaning: every short text.

(With JSON and special tokens inside, through masks: `test_composite_random`.)
"""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import constrain
from constrain import Choice, OneOf, Regex, Repeat, Sequence, Text
from tests.reference.composite import Judge
from tests.reference.grammar import SlowMachine
from tests.reference.vocabularies import byte_vocabulary

_PIECES = st.sampled_from(["a", "b", "ab", "é", "ba", ""])
_PATTERNS = ["a*", "(?:a|b)*b", "a|ab", "é?", "a(?=b)b", "^a$", r"\Ba|b\b", "(?<!a)b", "[^a]{1,2}"]
_STOPS = st.lists(st.sampled_from(["a", "b", "ab", "aba", "é", "bb"]), min_size=1, max_size=2)


@st.composite
def _texts(draw: st.DrawFn) -> Text:
    until = draw(st.none() | _STOPS)
    excluding = draw(st.just([]) | _STOPS)
    if until is not None:
        excluding = [one for one in excluding if not any(one in stop for stop in until)]
    most = draw(st.none() | st.integers(0, 2))
    return Text(until=until, excluding=excluding, max_chars=most)


_LEAVES = (
    _PIECES
    | st.sampled_from(_PATTERNS).map(Regex)
    | st.lists(_PIECES, min_size=1, max_size=3).map(Choice)
    | _texts()
)


def _around(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=1, max_size=3)
    repeats = st.builds(
        lambda part, least, more, separator: Repeat(
            part, least, None if more is None else least + more, separator
        ),
        inner,
        st.integers(0, 2),
        st.none() | st.integers(0, 1),
        st.none() | inner,
    )
    return several.map(lambda parts: Sequence(*parts)) | several.map(lambda p: OneOf(*p)) | repeats


_SPECS = st.recursive(_LEAVES, _around, max_leaves=6).map(lambda part: Sequence(part))
_WORDS = ["".join(word) for n in range(5) for word in itertools.product("abé", repeat=n)]


@settings(max_examples=150, deadline=None)
@given(_SPECS)
def test_languages_and_prefixes(spec: Any) -> None:
    vocabulary = byte_vocabulary().vocabulary
    judge = Judge(spec, vocabulary, {})
    language = {word for word in _WORDS if judge.accepts(word.encode())}
    try:
        program = spec.program()
    except constrain.UnsatisfiableError:
        assert not language
        return
    slow = SlowMachine(program)
    compiled = constrain.compile(spec, vocabulary)
    prefixes = {word[:end] for word in language for end in range(len(word) + 1)}
    for word in _WORDS:
        matcher = compiled.matcher()
        alive = all(matcher.try_advance(byte) for byte in word.encode())
        assert (alive and matcher.is_accepting) == (word in language), word
        assert alive or word not in prefixes, word
        if len(word) <= 3:
            assert slow.accepts(word.encode()) == (word in language), word
