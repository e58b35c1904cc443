"""Lexical tables made from classes of characters equal those made by walking bytes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from constrain.regex import compile_ecma, compile_python
from tests.native.class_tables_runner import Pattern, runner

CHARACTERS = [*'ab1- "\\/\nuU8dDeE0', "\u00e9", "\u0436", "\u4e2d", "\u4e2e", "\U0001f600", "\x7f"]
ESCAPES = [
    "\\n",
    "\\u00e9",
    "\\u4e2d",
    "\\ud83d\\ude00",
    "\\ud83d",
    "\\ude00",
    '\\"',
    "\\\\",
    "\\u",
]
ENDS = ['"', '",', '":', '"}]', '","', '" : "', '"x', '"]]']
CLASSES = ["a", "b", "1", "[ab]", "[^a]", ".", "\\d", "\\w", "\\W", "\\s", "[\u4e00-\u9fff]"]
CLASSES += ["\u00e9", "[^\u0400-\u04ff]", "[\\u{1F600}-\\u{1F64F}]", "[\\ud7ff\\ue000]", '["\\\\/]']

pieces = st.one_of(st.sampled_from(CHARACTERS), st.sampled_from(ESCAPES), st.sampled_from(ENDS))
tokens = (
    st.lists(pieces, min_size=1, max_size=6)
    .flatmap(
        lambda parts: st.tuples(
            st.just("".join(parts).encode()), st.integers(0, 2), st.integers(0, 2)
        )
    )
    .map(lambda t: t[0][t[1] : len(t[0]) - t[2]])
)
vocabularies = st.lists(tokens, min_size=1, max_size=150)


def _pattern(parts: list[tuple[str, str]], anchors: tuple[str, str]) -> tuple[int, ...]:
    text = anchors[0] + "".join(a + b for a, b in parts) + anchors[1]
    return tuple(compile_ecma(text))


patterns = st.builds(
    Pattern,
    st.builds(
        _pattern,
        st.lists(
            st.tuples(
                st.sampled_from([*CLASSES, "(a|b1|\u00e9)", "(?!a1)", "(?=\\w)", "\\b"]),
                st.sampled_from(["", "*", "+", "{1,3}", "{2}"]),
            ).map(
                lambda p: (p[0], "" if (p[0][0] == "(" and "?" in p[0]) or p[0] == "\\b" else p[1])
            ),
            min_size=1,
            max_size=4,
        ),
        st.tuples(st.sampled_from(["^", ""]), st.sampled_from(["$", ""])),
    ),
    st.booleans(),
)


@settings(max_examples=150, deadline=None)
@given(
    vocabulary=vocabularies,
    goals=st.lists(patterns, max_size=2),
    tracked=st.lists(patterns, max_size=2),
    raw=st.booleans(),
    least=st.integers(0, 5),
    most=st.one_of(st.none(), st.integers(0, 6), st.integers(7, 300)),
    seed=st.integers(0, 10**6),
)
def test_tables_by_class_equal_tables_by_byte(
    vocabulary, goals, tracked, raw, least, most, seed
) -> None:
    driver = runner()
    driver.vocabulary([bytes([b]) for b in range(256)] + vocabulary)
    if most is not None and most < least:
        most = least
    made, by_class, _ = driver.walk(
        goals, tracked, raw=raw, least=least, most=most, seed=seed, steps=6
    )
    assert by_class <= made


def test_the_comparison_compares() -> None:
    """Every table of a walk is made by classes, and they have the tokens that they should."""
    driver = runner()
    driver.vocabulary([b"a", b"b", b"ab", b'a"', b'b",', b'"', b'""', b"\\u0061", b"\xc3", b"\xa9"])
    # a, b, ab, a", b", and " end or stay inside a string of any length; "" ends it and goes wrong;
    # the lone continuation byte begins nothing.
    assert driver.walk([], steps=0) == (1, 1, 8)
    assert driver.walk([], least=1, steps=0) == (1, 1, 7)
    assert driver.walk([], most=1, steps=0) == (1, 1, 7)
    assert driver.walk([Pattern(tuple(compile_python("a*")))], steps=0) == (1, 1, 4)
    assert driver.walk([], raw=True, steps=0) == (1, 1, 9)
