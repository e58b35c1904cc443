"""Classes of code points, and automata over them as bytes, against sets read one code point at a time."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constrain.grammar.alphabet import INVALID, Alphabet, TooManyStatesError
from constrain.regex.charsets import ANY, CharSet, complement, from_pairs, from_python_class

EDGES = [0, 0x40, 0x7F, 0x80, 0xE9, 0x7FF, 0x800, 0xFFF, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF]
CODE_POINTS = st.sampled_from(EDGES) | st.integers(0, 0x10FFFF)
PAIRS = st.tuples(CODE_POINTS, CODE_POINTS).map(lambda pair: (min(pair), max(pair)))
KNOWN = [
    ANY,
    (),
    from_python_class("w", False),
    complement(from_python_class("s", False)),
    (97, 97),
]
SETS = st.lists(st.lists(PAIRS, max_size=4).map(from_pairs) | st.sampled_from(KNOWN), max_size=4)


def _has(chars: CharSet, point: int) -> bool:
    return any(a <= point <= b for a, b in zip(chars[::2], chars[1::2]))


def _read(rows: list[list[tuple[int, int, int]]], state: int, data: bytes) -> list[int]:
    """The states behind each byte, -1 once nothing reads it."""
    found = []
    for byte in data:
        row = rows[state] if state >= 0 else []
        state = next((target for a, b, target in row if a <= byte <= b), -1)
        found.append(state)
    return found


@given(sets=SETS, points=st.lists(CODE_POINTS, min_size=1, max_size=20))
@settings(max_examples=120, deadline=None)
def test_each_code_point_leads_where_its_class_does(sets: list[CharSet], points: list[int]) -> None:
    alphabet = Alphabet(sets)
    # State 0 leads to one state for each class; what is inside of a character comes behind these.
    row = [(label, label, label + 1) for label in range(alphabet.size)]
    rows = alphabet.expand([row, *([] for _ in row)], 100_000)
    for point in (p for p in (*points, *EDGES) if not 0xD800 <= p <= 0xDFFF):
        *inside, last = _read(rows, 0, chr(point).encode())
        assert all(state > alphabet.size for state in inside)
        label = last - 1
        assert 0 < label < alphabet.size
        for chars in sets:
            assert bool(alphabet.mask(chars) >> label & 1) == _has(chars, point)
    for byte in (0x80, 0xBF, 0xC0, 0xC1, 0xF5, 0xFF):
        assert _read(rows, 0, bytes([byte])) == [INVALID + 1]
    for chars in sets:
        assert not alphabet.mask(chars) >> INVALID & 1


@given(sets=SETS, point=CODE_POINTS.filter(lambda p: not 0xD800 <= p <= 0xDFFF))
@settings(max_examples=60, deadline=None)
def test_what_absorbs_takes_the_first_byte_that_decides(sets: list[CharSet], point: int) -> None:
    alphabet = Alphabet(sets)
    for chars in sets:
        inside = alphabet.mask(chars)
        row = [(s, s, 0 if inside >> s & 1 else 1) for s in range(alphabet.size)]
        rows = alphabet.expand([[], [], row], 100_000, 0)
        states = _read(rows, 2, chr(point).encode())
        if 0 in states:
            assert _has(chars, point)
        else:
            assert states[-1] == 1


def test_limits() -> None:
    alphabet = Alphabet([from_python_class("w", False)])
    row = [(0, alphabet.size - 1, 0)]
    assert len(alphabet.expand([row], 10)) <= 10
    row = [(label, label, label) for label in range(alphabet.size)]
    with pytest.raises(TooManyStatesError):
        alphabet.expand([row, [], [], []], 10)
